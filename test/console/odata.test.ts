/** Queries as public clients of the catalogue send them, over real sockets. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../src/domain/app-error.ts';
import { type Answer, follow, generatedProducts, openConsole } from './console-world.ts';

const parts = ['Attributes', 'Assets', 'Locations'];

async function openFilled(count = 45) {
  const world = await openConsole();
  const published = generatedProducts(count);
  world.products.add('Products', ...published.products);
  world.products.add('DeletedProducts', ...published.deleted);
  return { ...world, published: published.products };
}

function idsOf(answers: readonly Answer[]): string[] {
  return answers.flatMap(({ json }) => json.value.map(({ Id }: { Id: string }) => Id));
}

/** Sends a request as it stands, and gives all that comes back. */
async function sendLines(port: number, lines: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.end(`${lines.join('\r\n')}\r\n\r\n`);
  return text(socket);
}

const query = (entity: string, options: Record<string, string>) =>
  `/odata/v1/${entity}?${new URLSearchParams(options)}`;

describe('a client of the catalogue gets', () => {
  it('every match once, in order, with count and attributes, by following the links', async () => {
    const world = await openFilled();
    const asked = query('Products', {
      $filter: 'PublicationDate ge 2026-05-01T00:00:05.000Z',
      $orderby: 'PublicationDate asc',
      $top: '7',
      $count: 'True',
      $expand: 'Attributes',
    });
    const answers = await follow(world, asked);
    expect(idsOf(answers)).toEqual(world.published.slice(5).map(({ Id }) => Id));
    expect(answers.map(({ json }) => json['@odata.count'])).toEqual(answers.map(() => 40));
    expect(answers.map(({ json }) => json.value.length)).toEqual([7, 7, 7, 7, 7, 5]);
    expect(answers[0]?.json['@odata.context']).toBe('$metadata#Products(Attributes())');
    expect(answers.at(-1)?.json).not.toHaveProperty('@odata.nextLink');
  });

  it('twenty records without their parts when it says nothing', async () => {
    const world = await openFilled();
    const { json, headers } = await world.get('/odata/v1/Products');
    expect(Object.keys(json)).toEqual(['@odata.context', 'value', '@odata.nextLink']);
    expect(json['@odata.context']).toBe('$metadata#Products');
    expect(json['@odata.nextLink']).toBe(`${world.origin}/odata/v1/Products?%24skip=20`);
    expect(json.value).toHaveLength(20);
    const newest = world.published.at(-1);
    const left = Object.entries(newest ?? {}).filter(([name]) => !parts.includes(name));
    expect(JSON.stringify(json.value[0])).toBe(JSON.stringify(Object.fromEntries(left)));
    expect(headers['content-type']).toBe('application/json');
    expect(headers['request-id']).toMatch(/^[\da-f-]{36}$/);
  });

  it.each([
    '$expand=Attributes&$expand=Assets&$expand=Locations',
    '$expand=Attributes,Assets,Locations',
  ])('all parts by %s', async (expand) => {
    const world = await openFilled(1);
    const { json } = await world.get(`/odata/v1/Products?${expand}`);
    expect(json['@odata.context']).toBe('$metadata#Products(Attributes(),Assets(),Locations())');
    expect(json.value).toEqual(world.published);
  });

  it('only the properties it selects, however the list is written', async () => {
    const world = await openFilled(1);
    for (const select of [
      '$select=Id,Name,Geofootprint',
      '$select=Id&$select=Name&$select=Geofootprint',
    ]) {
      const { json } = await world.get(`/odata/v1/Products?${select}`);
      expect(Object.keys(json.value[0])).toEqual([
        '@odata.mediaContentType',
        'Id',
        'Name',
        'GeoFootprint',
      ]);
    }
    const all = await world.get('/odata/v1/Products?$select=*');
    expect(all.text).toBe((await world.get('/odata/v1/Products')).text);
  });

  it('deleted products, which know attributes only, with date and cause', async () => {
    const world = await openFilled(3);
    const { json } = await world.get('/odata/v1/DeletedProducts?$expand=Attributes');
    expect(json['@odata.context']).toBe('$metadata#DeletedProducts(Attributes())');
    expect(json.value).toHaveLength(3);
    expect(json.value[0]).toMatchObject({
      DeletionDate: expect.stringMatching(/Z$/),
      DeletionCause: expect.any(String),
      Attributes: expect.any(Array),
    });
    const refused = await world.get('/odata/v1/DeletedProducts?$expand=Assets');
    expect(refused.json.detail.message).toBe(
      'Expand parameter only accepts following values: Attributes.',
    );
  });

  it('the number alone under /$count, of all that match', async () => {
    const world = await openFilled(12);
    const day = { $filter: 'PublicationDate ge 2026-05-01T00:00:05.000Z' };
    const paths = ['/odata/v1/Products/$count', query('Products/$count', day)];
    const answers = await Promise.all(paths.map((path) => world.get(path)));
    expect(answers.map(({ status, text }) => [status, text])).toEqual([
      [200, '12'],
      [200, '7'],
    ]);
    expect(answers[0]?.headers).toMatchObject({
      'content-type': 'text/plain;charset=UTF-8',
      'request-id': expect.any(String),
    });
    expect((await world.get('/odata/v1/DeletedProducts/$count')).text).toBe('12');
    expect((await world.get('/odata/v1/Products/$count?$filter=foo')).status).toBe(400);
  });

  it('no records, but the count, for $top=0', async () => {
    const world = await openFilled(3);
    const { json } = await world.get('/odata/v1/Products?$top=0&$count=1');
    expect(json).toEqual({ '@odata.context': '$metadata#Products', '@odata.count': 3, value: [] });
  });

  it('one record by its id, in any case, or the catalogue’s way of saying that there is none', async () => {
    const world = await openFilled(3);
    const [product] = world.published;
    const path = `/odata/v1/Products(${product?.Id.toUpperCase()})?$expand=Attributes`;
    const { json } = await world.get(path);
    expect(json['@odata.context']).toBe('$metadata#Products(Attributes())/$entity');
    expect(json).toMatchObject({ Id: product?.Id, Attributes: product?.Attributes });
    const absent = await world.get('/odata/v1/Products(nothing-here)');
    expect(absent).toMatchObject({ status: 404, headers: { 'request-id': expect.any(String) } });
    expect(absent.json.detail).toEqual({
      message: 'Product with id nothing-here not found.',
      request_id: absent.headers['request-id'],
    });
  });
});

describe('links', () => {
  it('lead to the end of more than $skip can pass over', async () => {
    const world = await openConsole();
    const count = 12_345;
    const day = (i: number) =>
      new Date(Date.UTC(2020, 0, 1) + (i % 500) * 86_400_000).toISOString();
    world.products.add(
      'Products',
      ...Array.from({ length: count }, (_, i) => ({ Id: `id-${i}`, PublicationDate: day(i) })),
    );
    for (const orderby of ['', '&$orderby=PublicationDate%20desc']) {
      const answers = await follow(world, `/odata/v1/Products?$top=1000${orderby}`);
      expect(new Set(idsOf(answers)).size).toBe(count);
      expect(idsOf(answers)).toHaveLength(count);
      const links = answers.map(({ json }) => json['@odata.nextLink'] ?? '');
      expect(links[9]).toContain('%24skip=10000');
      expect(links[10]).toMatch(/%24skiptoken=\d+_\d+$/);
      expect(links[10]).not.toContain('%24skip=');
    }
  }, 20_000);

  it('go back to where they were asked, over HTTPS where a proxy in front speaks it', async () => {
    const world = await openFilled();
    const headers = { host: 'localhost:9999', 'x-forwarded-proto': 'https' };
    const { json } = await world.get('/odata/v1/Products?$top=1', { headers });
    expect(json['@odata.nextLink']).toBe(
      'https://localhost:9999/odata/v1/Products?%24top=1&%24skip=1',
    );
  });

  it('lead to the Host that was let in, whatever name the request line has', async () => {
    const world = await openFilled();
    for (const path of ['/odata/v1/Products?$top=1', '/api/products?limit=1']) {
      const lines = [`GET http://evil.example${path} HTTP/1.1`, 'Host: localhost:9999'];
      const answer = await sendLines(world.port, [...lines, 'Connection: close']);
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
      expect(answer).toMatch(/"http:\/\/localhost:9999\/(odata|api)\/[^"]+"\}$/);
      expect(answer).not.toContain('evil');
    }
  });

  it('with a token that is not ours are refused', async () => {
    const world = await openFilled(1);
    for (const token of ['x', '1_', '_1', '1e3_1', '9999999999999999_1', '1_9999999999999999']) {
      const answer = await world.get(`/odata/v1/Products?$skiptoken=${token}`);
      expect(answer).toMatchObject({ status: 400 });
      expect(answer.json.detail.message).toMatch(/\$skiptoken/);
    }
  });
});

describe('the index', () => {
  it('tells in a header how far it is behind, and nothing when it is not', async () => {
    const world = await openFilled(3);
    const paths = ['/odata/v1/Products', '/odata/v1/Products(x)', '/api/products'];
    const lags = async () => {
      const answers = await Promise.all(paths.map((path) => world.get(path)));
      return answers.map(({ headers }) => headers['earshot-index-lag']);
    };
    expect(await lags()).toEqual([undefined, undefined, undefined]);
    world.products.state.lastPosition += 997;
    expect(await lags()).toEqual(['997', '997', '997']);
  });

  it('that cannot be read is 503 with Retry-After, without a word of its own', async () => {
    const world = await openFilled(3);
    world.products.failure = new AppError('unavailable', 'disk /var/secret is gone');
    const answer = await world.get('/odata/v1/Products');
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect(answer.json.detail.request_id).toBe(answer.headers['request-id']);
    const problem = await world.get('/api/products');
    expect(problem).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect(problem.json).toMatchObject({ status: 503, detail: expect.stringMatching(/later/) });
    expect(answer.text + problem.text).not.toContain('secret');
  });
});
