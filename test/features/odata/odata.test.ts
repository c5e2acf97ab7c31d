/** Queries as public clients of the catalogue send them, over real sockets. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { AppError } from '../../../src/core/terms/app-error.ts';
import {
  type Answer,
  follow,
  openConsole,
  openFilled,
  type Sent,
} from '../../core/api/console-context.ts';
import { recordingLog } from '../../helpers/recording-log.ts';

const parts = ['Attributes', 'Assets', 'Locations'];

/** Values of the types of CSDL, as JSON. */
const primitives: Readonly<Record<string, z.ZodType>> = {
  'Edm.Guid': z.guid(),
  'Edm.String': z.string(),
  'Edm.Int64': z.int(),
  'Edm.Double': z.number(),
  'Edm.Boolean': z.boolean(),
  'Edm.DateTimeOffset': z.iso.datetime(),
  'Edm.Geography': z.looseObject({ type: z.string(), coordinates: z.array(z.unknown()) }),
};

function idsOf(answers: readonly Answer[]): string[] {
  return answers.flatMap(({ json }) => json.value.map(({ Id }: { Id: string }) => Id));
}

/** Sends a request unchanged, which lets the server close the connection; returns the complete response. */
async function sendLines(port: number, lines: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  // Not `end`: a query whose client has closed its side is cancelled.
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  return text(socket);
}

const query = (entity: string, options: Record<string, string>) =>
  `/odata/v1/${entity}?${new URLSearchParams(options)}`;

describe('a client of the catalogue gets', () => {
  it('twenty records without their parts by default', async () => {
    const context = await openFilled();
    const { json, headers } = await context.get('/odata/v1/Products');
    expect(Object.keys(json)).toEqual(['@odata.context', 'value', '@odata.nextLink']);
    expect(json['@odata.context']).toBe(`${context.origin}/odata/v1/$metadata#Products`);
    expect(json['@odata.nextLink']).toBe(`${context.origin}/odata/v1/Products?%24skip=20`);
    expect(json.value).toHaveLength(20);
    const newest = context.published.at(-1);
    const left = Object.entries(newest ?? {}).filter(([name]) => !parts.includes(name));
    expect(JSON.stringify(json.value[0])).toBe(JSON.stringify(Object.fromEntries(left)));
    expect(headers['content-type']).toBe('application/json');
    expect(headers['request-id']).toMatch(/^[\da-f-]{36}$/);
  });

  it('the requested parts and properties, in any spelling of the lists', async () => {
    const context = await openFilled(1);
    const list = async (search: string) => (await context.get(`/odata/v1/Products?${search}`)).json;
    for (const expand of [parts.map((one) => `$expand=${one}`).join('&'), `$expand=${parts}`]) {
      const json = await list(expand);
      expect(json['@odata.context']).toMatch(
        /#Products\(Attributes\(\),Assets\(\),Locations\(\)\)$/,
      );
      expect(json.value).toEqual(context.published);
    }
    for (const select of [
      '$select=Id,Name,Geofootprint',
      '$select=Id&$select=Name&$select=Geofootprint',
    ]) {
      const { value } = await list(select);
      expect(Object.keys(value[0])).toEqual([
        '@odata.mediaContentType',
        'Id',
        'Name',
        'GeoFootprint',
      ]);
    }
    expect(await list('$select=*')).toEqual(await list(''));
  });

  it('deleted products, which have only attributes, with date and cause', async () => {
    const context = await openFilled(3);
    const { json } = await context.get('/odata/v1/DeletedProducts?$expand=Attributes');
    expect(json['@odata.context']).toBe(
      `${context.origin}/odata/v1/$metadata#DeletedProducts(Attributes())`,
    );
    expect(json.value).toHaveLength(3);
    expect(json.value[0]).toMatchObject({
      DeletionDate: expect.stringMatching(/Z$/),
      DeletionCause: expect.any(String),
      Attributes: expect.any(Array),
    });
    const refused = await context.get('/odata/v1/DeletedProducts?$expand=Assets');
    expect(refused.json.detail.message).toBe(
      'Expand parameter only accepts following values: Attributes.',
    );
  });

  it('only the number under /$count, of all matches', async () => {
    const context = await openFilled(12);
    const day = { $filter: 'PublicationDate ge 2026-05-01T00:00:05.000Z' };
    const paths = ['/odata/v1/Products/$count', query('Products/$count', day)];
    const answers = await Promise.all(paths.map((path) => context.get(path)));
    expect(answers.map(({ status, text }) => [status, text])).toEqual([
      [200, '12'],
      [200, '7'],
    ]);
    expect(answers[0]?.headers).toMatchObject({
      'content-type': 'text/plain;charset=UTF-8',
      'request-id': expect.any(String),
    });
    expect((await context.get('/odata/v1/DeletedProducts/$count')).text).toBe('12');
    expect((await context.get('/odata/v1/Products/$count?$filter=foo')).status).toBe(400);
  });

  it('a count that ended early with a mark', async () => {
    const context = await openFilled(3);
    context.products.countsPartly = true;
    const list = await context.get('/odata/v1/Products?$top=0&$count=1');
    expect(list.json).toMatchObject({
      ...{ value: [], '@odata.count': 3, '@earshot.countIsMinimum': true },
    });
    const text = await context.get('/odata/v1/Products/$count');
    expect(text.text).toBe('3');
    for (const { headers } of [list, text]) expect(headers['earshot-count']).toBe('minimum');
  });

  it('one record by its id, in any case, or the catalogue’s not-found error', async () => {
    const context = await openFilled(3);
    const [product] = context.published;
    const path = `/odata/v1/Products(${product?.Id.toUpperCase()})?$expand=Attributes`;
    const { json } = await context.get(path);
    expect(json['@odata.context']).toBe(
      `${context.origin}/odata/v1/$metadata#Products(Attributes())/$entity`,
    );
    expect(json).toMatchObject({ Id: product?.Id, Attributes: product?.Attributes });
    const absent = await context.get('/odata/v1/Products(nothing-here)');
    expect(absent).toMatchObject({ status: 404, headers: { 'request-id': expect.any(String) } });
    expect(absent.json.detail).toEqual({
      message: 'Product with id nothing-here not found.',
      request_id: absent.headers['request-id'],
    });
  });
});

describe('the description of the service', () => {
  const attributesOf = (xml: string, element: string) =>
    [...xml.matchAll(new RegExp(`<${element} ([^>]*)>`, 'g'))].map(([, text = '']) =>
      Object.fromEntries(
        [...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
      ),
    );
  /** Returns the types with the names and types of their properties. */
  const typesIn = (xml: string) =>
    new Map(
      [...xml.matchAll(/<(?:Entity|Complex)Type [^>]*>[\s\S]*?<\/(?:Entity|Complex)Type>/g)].map(
        ([type]) => [
          attributesOf(type, '\\w+Type')[0]?.Name,
          new Map(attributesOf(type, '\\w*Property').map(({ Name, Type }) => [Name, Type])),
        ],
      ),
    );

  it('is found from the service document, which names the lists', async () => {
    const context = await openFilled(2);
    for (const path of ['/odata/v1', '/odata/v1/']) {
      const { json, headers } = await context.get(path);
      expect(headers).toMatchObject({ 'odata-version': '4.0', 'request-id': expect.any(String) });
      const description = new URL(json['@odata.context']);
      expect(await context.get(description.href)).toMatchObject({
        status: 200,
        headers: { 'content-type': 'application/xml', 'odata-version': '4.0' },
      });
      expect(json.value.map(({ kind }: { kind: string }) => kind)).toEqual([
        'EntitySet',
        'EntitySet',
      ]);
      for (const { name, url } of json.value) {
        const list = await context.get(new URL(url, description).href);
        expect(list.json['@odata.context']).toBe(`${description}#${name}`);
      }
    }
    expect(await context.get('/odata/v1/%24metadata')).toMatchObject({ status: 200 });
  });

  it('declares each property of the records, its parts, and what can be selected', async () => {
    const context = await openFilled(45);
    const types = typesIn((await context.get('/odata/v1/$metadata')).text);
    /** Checks a value by the type that a client reads in the description. */
    const check = (value: unknown, type: string): void => {
      const [, item] = /^Collection\((.*)\)$/.exec(type) ?? [];
      if (value === null) return;
      if (item !== undefined) {
        for (const one of Object.values(value as object)) check(one, item);
      } else if (type.startsWith('OData.CSC.')) {
        const { '@odata.type': own, ...fields } = value as Record<string, unknown>;
        const name = typeof own === 'string' ? own.slice('#OData.CSC.'.length) : type.slice(10);
        const declared = new Map([
          ...(types.get(name) ?? []),
          ...(types.get(type.slice(10)) ?? []),
        ]);
        for (const [field, part] of Object.entries(fields)) {
          if (field.startsWith('@odata.')) continue;
          expect([name, field, declared.has(field)]).toEqual([name, field, true]);
          check(part, declared.get(field) ?? '');
        }
      } else expect([type, value]).toEqual([type, expect.schemaMatching(primitives[type])]);
    };
    for (const [entity, type, expanded] of [
      ['Products', 'OData.CSC.Product', 'Attributes,Assets,Locations'],
      ['DeletedProducts', 'OData.CSC.DeletedProduct', 'Attributes'],
    ] as const) {
      const { json } = await context.get(`/odata/v1/${entity}?$top=45&$expand=${expanded}`);
      expect(json.value).toHaveLength(45);
      for (const record of json.value) check(record, type);
      const names = [...(types.get(type.slice(10))?.keys() ?? [])];
      const own = names.filter((name) => !parts.includes(name ?? ''));
      expect(own.length).toBeGreaterThan(10);
      const selected = await context.get(`/odata/v1/${entity}?$select=${own}`);
      expect(selected.status).toBe(200);
    }
  });
});

describe('links', () => {
  it('reach matches beyond the maximum of $skip', async () => {
    const context = await openConsole();
    const count = 12_345;
    const day = (i: number) =>
      new Date(Date.UTC(2020, 0, 1) + (i % 500) * 86_400_000).toISOString();
    context.products.add(
      'Products',
      ...Array.from({ length: count }, (_, i) => ({ Id: `id-${i}`, PublicationDate: day(i) })),
    );
    for (const orderby of ['', '&$orderby=PublicationDate%20desc']) {
      const answers = await follow(context, `/odata/v1/Products?$top=1000${orderby}`);
      expect(new Set(idsOf(answers)).size).toBe(count);
      expect(idsOf(answers)).toHaveLength(count);
      const links = answers.map(({ json }) => json['@odata.nextLink'] ?? '');
      expect(links[9]).toContain('%24skip=10000');
      expect(links[10]).toMatch(/%24skiptoken=[\w-]+$/);
      expect(links[10]).not.toContain('%24skip=');
    }
  }, 20_000);

  it('refer to the accepted Host, whatever name the request line has', async () => {
    const context = await openFilled();
    for (const path of ['/odata/v1/Products?$top=1', '/api/products?limit=1']) {
      const lines = [`GET http://evil.example${path} HTTP/1.1`, 'Host: localhost:9999'];
      const answer = await sendLines(context.port, [...lines, 'Connection: close']);
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
      expect(answer).toMatch(/"http:\/\/localhost:9999\/(odata|api)\/[^"]+"\}$/);
      expect(answer).not.toContain('evil');
    }
  });

  it('with a foreign token are refused', async () => {
    const context = await openFilled(1);
    const ofKey = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString('base64url');
    const tokens = [
      ...['x', ofKey(), ofKey('Products', 'received desc', [], -1)],
      ofKey('Products', 'received desc', [], Number.MAX_SAFE_INTEGER + 1),
      ofKey('Products', 'received desc', [{}], 1),
      ofKey('Products', 'received asc', [], 1),
      ofKey('DeletedProducts', 'received desc', [], 1),
    ];
    for (const token of tokens) {
      const answer = await context.get(`/odata/v1/Products?$skiptoken=${token}`);
      expect(answer).toMatchObject({ status: 400 });
      expect(answer.json.detail.message).toMatch(/\$skiptoken/);
    }
  });
});

describe('the index', () => {
  it('reports its lag in a header, and sends none without lag', async () => {
    const context = await openFilled(3);
    const paths = ['/odata/v1/Products', '/odata/v1/Products(x)', '/api/products'];
    const lags = async () => {
      const answers = await Promise.all(paths.map((path) => context.get(path)));
      return answers.map(({ headers }) => headers['earshot-index-lag']);
    };
    expect(await lags()).toEqual([undefined, undefined, undefined]);
    context.products.state.lastPosition += 997;
    expect(await lags()).toEqual(['997', '997', '997']);
  });

  it('that cannot be read gives 503 with Retry-After, without an internal message', async () => {
    const context = await openFilled(3);
    context.products.failure = new AppError('unavailable', 'disk /var/secret is gone');
    const answer = await context.get('/odata/v1/Products');
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect(answer.json.detail.request_id).toBe(answer.headers['request-id']);
    const problem = await context.get('/api/products');
    expect(problem).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect(problem.json).toMatchObject({ status: 503, detail: expect.stringMatching(/later/) });
    expect(answer.text + problem.text).not.toContain('secret');
  });
});

const fixtures = new URL('../../../../shared/fixtures/', import.meta.url);
const missing = existsSync(fixtures) ? false : 'the folder ../shared/fixtures is not there';
const recordings = missing
  ? []
  : readdirSync(new URL('errors/', fixtures)).filter((name) =>
      /^products-\d{3}-\d+\.json$/.test(name),
    );

const idForm = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g;
const withoutIds = (text: string) => text.replaceAll(idForm, '<id>');

/** The id in the header must equal the one in the body, if the body has one. */
function expectOneId({ json, headers }: Answer) {
  expect(headers['request-id']).toMatch(idForm);
  if (!Array.isArray(json.detail)) expect(json.detail.request_id).toBe(headers['request-id']);
}

async function refusalOf(search: string, entity = 'Products') {
  const context = await openConsole();
  const answer = await context.get(`/odata/v1/${entity}?${search}`);
  expectOneId(answer);
  return { status: answer.status, detail: answer.json.detail };
}

it.each(recordings)('a recorded refusal of the catalogue is repeated as in %s', async (name) => {
  const { request, response } = JSON.parse(
    readFileSync(new URL(`errors/${name}`, fixtures), 'utf8'),
  );
  const context = await openConsole();
  const { pathname, search } = new URL(request.uri);
  const answer = await context.get(pathname + search);
  expect(answer.status).toBe(response.status.code);
  expect(withoutIds(answer.text)).toBe(withoutIds(JSON.stringify(response.body)));
  expect(answer.headers['content-type']).toBe(response.headers['Content-Type']);
  expect(String(Buffer.byteLength(answer.text))).toBe(response.headers['Content-Length']);
  expectOneId(answer);
});

describe('a query is refused', () => {
  it.each([
    ['$filter=foo%20eq%20%27bar%27', /^Invalid field: .*foo.*\(at character 1 of \$filter\)/],
    ['$filter=DeletionDate%20gt%202024-01-01', /^Invalid field: /],
    ['$filter=Name%20eq%20S2A', /^Invalid value: .*\(at character 9 of \$filter\)/],
    [`$filter=${'('.repeat(3000)}`, /^Invalid value: /],
    ['filter=Online%20eq%20true', /^Invalid option: filter\. Did you mean \$filter\?/],
    ['$orderby=Name', /^Invalid value: Invalid field name in the order by clause/],
    ['$orderby=PublicationDate%20down', /order by clause/],
    ['$orderby=PublicationDate%20asc,ContentDate/Start%20asc', /order by clause/],
    ['$orderby=constructor', /order by clause/],
    ['$select=constructor', /^Invalid field in select: constructor$/],
    ['$select=Id,Attributes', /^Invalid field in select: Attributes$/],
    ['$expand=attributes', /^Expand parameter only accepts/],
    ['$filter=&$filter=Online', /^Invalid value: \$filter is given more than once\.$/],
  ])('with 400 and the reason for %s', async (search, message) => {
    const { status, detail } = await refusalOf(search.slice(0, 8_000));
    expect(status).toBe(400);
    expect(detail.message).toMatch(message);
  });

  it('with 422 and all faults of its numbers', async () => {
    const { status, detail } = await refusalOf('$top=ten&$skip=&$count=maybe');
    expect(status).toBe(422);
    expect(
      detail.map(({ type, loc, input }: Record<string, unknown>) => [type, loc, input]),
    ).toEqual([
      ['int_parsing', ['query', '$top'], 'ten'],
      ['int_parsing', ['query', '$skip'], ''],
      ['bool_parsing', ['query', '$count'], 'maybe'],
    ]);
  });

  it.each([
    ...['$search=S2A', '$apply=aggregate(Id)', '$compute=1 as a', '$deltatoken=x', 'search=S2A'],
    ...['$Search=S2A', '$search=', '$index=1', '$search=a&$filter=foo', '$top=x&$search=a'],
  ])('with 501 for an option that would change the result: %s', async (search) => {
    for (const path of ['Products', 'DeletedProducts', 'Products(x)', 'Products/$count']) {
      const { status, detail } = await refusalOf(search, path);
      expect(status).toBe(501);
      expect(detail.message).toMatch(/^The option .+ is not supported\. Use \$filter\.$/);
    }
    const { json } = await (await openListed()).post(listOf('a'), `?${search}`);
    expect(json.detail.message).toMatch(/is not supported/);
  });

  it('with only the known fields for an unknown path', async () => {
    const context = await openConsole();
    const wrong = ['Product', "Products('x')", 'Products(x)/$value', 'Products/', '$metadata/x'];
    for (const path of [...wrong, '$Metadata', '../v2/Products']) {
      const { status, text, headers } = await context.get(`/odata/v1/${path}`);
      expect({ status, text }).toEqual({ status: 404, text: '{"detail":"Invalid odata path"}' });
      expect(headers['request-id']).toMatch(idForm);
    }
  });
});

it.each([
  ...['$top=1000&$skip=10000', '$count=True', '$count=0', '$filter=', '$filter=%20', '$orderby='],
  ...['$orderby=contentdate/start', '$orderby=ModificationDate%20DESC', '$select=', '$expand='],
  ...['$format=json', 'unknown=1'],
])('a query is answered for %s', async (search) => {
  const context = await openConsole();
  expect(await context.get(`/odata/v1/Products?${search}`)).toMatchObject({ status: 200 });
});

const path = '/odata/v1/Products/OData.CSC.FilterList';

async function openListed() {
  const context = await openFilled(45, 0);
  const post = (body: unknown, search = '', sent: Sent = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return context.get(path + search, { method: 'POST', body: text, ...sent });
  };
  return { ...context, post, names: context.published.map(({ Name }) => Name) };
}

const listOf = (...names: unknown[]) => ({ FilterProducts: names.map((Name) => ({ Name })) });
const namesOf = (json: { value: { Name: string }[] }) => json.value.map(({ Name }) => Name);

describe('a query by list', () => {
  it('returns the named products in the form of a list, all of them at once', async () => {
    const { post, names, get } = await openListed();
    const requested = names.slice(3, 33);
    const { status, headers, json } = await post(listOf(...requested, 'xxxxxxxx.06.tar'));
    expect(status).toBe(200);
    expect(headers['request-id']).toMatch(/^[\da-f-]{36}$/);
    expect(Object.keys(json)).toEqual(['@odata.context', 'value']);
    expect(namesOf(json).toSorted()).toEqual(requested.toSorted());
    const [first] = json.value;
    const one = await get(`/odata/v1/Products(${first.Id})`);
    expect(first).toEqual({ ...one.json, '@odata.context': undefined });
  });

  it('accepts the options of a list of products', async () => {
    const { post, names, origin } = await openListed();
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
    expect(json['@odata.context']).toBe(`${origin}/odata/v1/$metadata#Products(Name,Attributes())`);
    expect(json['@odata.count']).toBe(9);
    expect(namesOf(json)).toEqual(names.slice(3, 7));
    expect(json.value[0].Attributes.length).toBeGreaterThan(5);
    expect(json['@odata.nextLink']).toMatch(`${origin}${path}?`);
    expect(json['@odata.nextLink']).toContain('%24skip=6');
    const next = await post(body, new URL(json['@odata.nextLink']).search);
    expect(namesOf(next.json)).toEqual(names.slice(7, 10));
  });

  it.each<[string, string | object, (string | number)[]]>([
    ['invalid JSON', '{"FilterProducts":', ['body']],
    ['a missing list', {}, ['body', 'FilterProducts']],
    ['an empty list', { FilterProducts: [] }, ['body', 'FilterProducts']],
    ['another member', { FilterProducts: [{ Id: 'x' }] }, ['body', 'FilterProducts', 0, 'Name']],
    ['a name that is not a text', listOf('a', 5), ['body', 'FilterProducts', 1, 'Name']],
    ['more than 1,000 names', listOf(...Array(1_001).fill('a')), ['body', 'FilterProducts']],
  ])('is refused with 422 and the place for %s', async (_title, body, loc) => {
    const { post } = await openListed();
    const { status, json } = await post(body);
    expect(status).toBe(422);
    expect(json.detail).toHaveLength(1);
    expect(json.detail[0]).toMatchObject({
      type: expect.any(String),
      loc,
      msg: expect.any(String),
    });
  });

  it('accepts 1,000 names of 100 characters with any Content-Type, and refuses a body over 128 KiB with 413', async () => {
    const { post, names } = await openListed();
    const many = Array.from({ length: 999 }, (_, i) => String(i).padEnd(100, '_'));
    const sent = { headers: { 'content-type': 'text/plain' } };
    expect(namesOf((await post(listOf(...many, names[7]), '', sent)).json)).toEqual([names[7]]);
    const { status, json } = await post(`{"FilterProducts":[],"x":"${'x'.repeat(128 * 1024)}"}`);
    expect(status).toBe(413);
    expect(json.detail.message).toMatch(/131072 bytes/);
  });

  it.each(['Content-Length: 100', 'Transfer-Encoding: chunked'])(
    'that breaks off, after %s, is not an internal error',
    async (header) => {
      const { log, lines } = recordingLog();
      const { port } = await openConsole({ log });
      const socket = connect(port, '127.0.0.1');
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${header}\r\n\r\n5\r\n{"Fil\r\n`,
        () => socket.destroy(),
      );
      const expected = [{ level: 'debug', message: 'query refused' }];
      await expect.poll(() => lines, { timeout: 5_000 }).toMatchObject(expected);
    },
  );

  it('is a POST, and other methods are not allowed; options are refused as in any list', async () => {
    const { get, post } = await openListed();
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

describe('the attributes of a collection', () => {
  it('equal the recorded ones of the catalogue', async (context) => {
    if (missing) context.skip(missing);
    const file = new URL('attributes/attributes-SENTINEL-1.json', fixtures);
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
