/** The query by list, and the attributes of a collection, as clients of the catalogue ask for them. */
import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { generatedProducts, openConsole, type Sent } from './console-world.ts';

const path = '/odata/v1/Products/OData.CSC.FilterList';

async function openFilled() {
  const world = await openConsole();
  const { products } = generatedProducts(45);
  world.products.add('Products', ...products);
  const post = (body: unknown, search = '', sent: Sent = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return world.get(path + search, { method: 'POST', body: text, ...sent });
  };
  return { ...world, post, names: products.map(({ Name }) => Name) };
}

const listOf = (...names: unknown[]) => ({ FilterProducts: names.map((Name) => ({ Name })) });
const namesOf = (json: { value: { Name: string }[] }) => json.value.map(({ Name }) => Name);

describe('a query by list', () => {
  it('answers with the named products in the form of a list, all of them at once', async () => {
    const { post, names, get } = await openFilled();
    const wanted = names.slice(3, 33);
    const { status, headers, json } = await post(listOf(...wanted, 'xxxxxxxx.06.tar'));
    expect(status).toBe(200);
    expect(headers['request-id']).toMatch(/^[\da-f-]{36}$/);
    expect(Object.keys(json)).toEqual(['@odata.context', 'value']);
    expect(namesOf(json).toSorted()).toEqual(wanted.toSorted());
    const [first] = json.value;
    const one = await get(`/odata/v1/Products(${first.Id})`);
    expect(first).toEqual({ ...one.json, '@odata.context': undefined });
  });

  it('takes the options of a list of products', async () => {
    const { post, names, origin } = await openFilled();
    const body = listOf(...names.slice(0, 10));
    const options = new URLSearchParams({
      $select: 'Name',
      $expand: 'Attributes',
      $count: 'true',
      $top: '4',
      $skip: '2',
      $orderby: 'PublicationDate asc',
      $filter: 'PublicationDate ge 2026-05-01T00:00:01Z',
    });
    const { json } = await post(body, `?${options}`);
    expect(json['@odata.context']).toBe('$metadata#Products(Name,Attributes())');
    expect(json['@odata.count']).toBe(9);
    expect(namesOf(json)).toEqual(names.slice(3, 7));
    expect(json.value[0].Attributes.length).toBeGreaterThan(5);
    expect(json['@odata.nextLink']).toMatch(`${origin}${path}?`);
    expect(json['@odata.nextLink']).toContain('%24skip=6');
    const next = await post(body, new URL(json['@odata.nextLink']).search);
    expect(namesOf(next.json)).toEqual(names.slice(7, 10));
  });

  it('reads the body whatever the Content-Type, and ignores what it does not know', async () => {
    const { post, names } = await openFilled();
    const body = { FilterProducts: [{ Name: names[0], Id: 'x' }], Note: 1 };
    const { json } = await post(body, '', { headers: { 'content-type': 'text/plain' } });
    expect(namesOf(json)).toEqual([names[0]]);
  });

  it.each<[string, string | object, (string | number)[]]>([
    ['no JSON', '{"FilterProducts":', ['body']],
    ['no list', {}, ['body', 'FilterProducts']],
    ['an empty list', { FilterProducts: [] }, ['body', 'FilterProducts']],
    ['another member', { FilterProducts: [{ Id: 'x' }] }, ['body', 'FilterProducts', 0, 'Name']],
    ['a name that is no text', listOf('a', 5), ['body', 'FilterProducts', 1, 'Name']],
    ['an empty name', listOf(''), ['body', 'FilterProducts', 0, 'Name']],
    ['more than 1,000 names', listOf(...Array(1_001).fill('a')), ['body', 'FilterProducts']],
  ])('is refused with 422 and the place for %s', async (_title, body, loc) => {
    const { post } = await openFilled();
    const { status, json } = await post(body);
    expect(status).toBe(422);
    expect(json.detail).toHaveLength(1);
    expect(json.detail[0]).toMatchObject({
      type: expect.any(String),
      loc,
      msg: expect.any(String),
    });
  });

  it('takes 1,000 names of 100 characters, and refuses a body over 256 KiB with 413', async () => {
    const { post, names } = await openFilled();
    const many = Array.from({ length: 999 }, (_, i) => String(i).padEnd(100, '_'));
    expect(namesOf((await post(listOf(...many, names[7]))).json)).toEqual([names[7]]);
    const { status, json } = await post(`{"FilterProducts":[],"x":"${'x'.repeat(256 * 1024)}"}`);
    expect(status).toBe(413);
    expect(json.detail.message).toMatch(/262144 bytes/);
  });

  it.each(['Content-Length: 100', 'Transfer-Encoding: chunked'])(
    'that breaks off half-way, after %s, is no failure of ours',
    async (header) => {
      const lines: string[] = [];
      const note = (level: string) => (_: object, message: string) =>
        void lines.push(`${level}: ${message}`);
      const log = {
        debug: note('debug'),
        info: note('info'),
        warn: note('warn'),
        error: note('error'),
      };
      const { port } = await openConsole({ log });
      const socket = connect(port, '127.0.0.1');
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${header}\r\n\r\n5\r\n{"Fil\r\n`,
        () => socket.destroy(),
      );
      await expect.poll(() => lines, { timeout: 5_000 }).toEqual(['debug: query refused']);
    },
  );

  it('is refused with 413 in chunks as well', async () => {
    const { port } = await openConsole();
    const socket = connect(port, '127.0.0.1');
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n`);
    socket.write(chunk.repeat(5));
    socket.end('0\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 413 [\s\S]*262144 bytes/);
  });

  it('is a POST, and all else is not; options are refused as of any list', async () => {
    const { get, post } = await openFilled();
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE']) {
      expect(await get(path, { method })).toMatchObject({
        status: 405,
        headers: { allow: 'POST' },
      });
    }
    const other = await get('/odata/v1/Products', { method: 'POST', body: '{}' });
    expect(other).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
    const { status, json } = await post(listOf('a'), '?$select=foo');
    expect([status, json.detail.message]).toEqual([400, 'Invalid field in select: foo']);
  });
});

const fixtures = new URL('../../../shared/fixtures/attributes/', import.meta.url);

describe('the attributes of a collection', () => {
  it('are names and kinds, in the form of the catalogue', async () => {
    const { get } = await openConsole();
    const { status, json, headers } = await get('/odata/v1/Attributes(SENTINEL-1)');
    expect(status).toBe(200);
    expect(headers['request-id']).toMatch(/^[\da-f-]{36}$/);
    expect(json).toContainEqual({ Name: 'relativeOrbitNumber', ValueType: 'Integer' });
    expect(json).toContainEqual({ Name: 'processingDate', ValueType: 'DateTimeOffset' });
    expect(json).not.toContainEqual(expect.objectContaining({ Name: 'cloudCover' }));
  });

  it('are those recorded of the catalogue', async (context) => {
    if (!existsSync(fixtures)) context.skip('the folder ../shared/fixtures is not there');
    const file = new URL('attributes-SENTINEL-1.json', fixtures);
    const recorded: { Name: string }[] = JSON.parse(readFileSync(file, 'utf8'));
    const byName = (a: { Name: string }, b: { Name: string }) => (a.Name < b.Name ? -1 : 1);
    const { get } = await openConsole();
    const { json } = await get('/odata/v1/Attributes(SENTINEL-1)');
    expect(json.toSorted(byName)).toEqual(recorded.toSorted(byName));
  });

  it('are 404 for a collection that publishes none, in any form of its name', async () => {
    const { get } = await openConsole();
    for (const name of ['SENTINEL-9', 'sentinel-1', 'constructor', 'CCM']) {
      const { status, json } = await get(`/odata/v1/Attributes(${name})`);
      expect(status).toBe(404);
      expect(json.detail.message).toBe(`No attributes of the collection ${name} are known.`);
    }
    expect((await get('/odata/v1/Attributes()')).json).toEqual({ detail: 'Invalid odata path' });
  });
});
