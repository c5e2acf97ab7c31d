/** Public queries of products and deleted products, with the limits and errors of the real service. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Answer, recordsFileOf, send, startTestSandbox } from './set-up.ts';

const fixtures = new URL('../../../shared/fixtures/', import.meta.url);
const missing = existsSync(fixtures) ? false : 'the folder ../shared/fixtures is not there';
const fixture = (name: string) => JSON.parse(readFileSync(new URL(name, fixtures), 'utf8'));

interface Listed {
  Id: string;
  Name: string;
  PublicationDate: string;
}

/** Starts a catalogue that is queried without a token. */
async function startLists(options: Parameters<typeof startTestSandbox>[0] = {}) {
  const test = await startTestSandbox(options);
  const { root } = test;
  const ask = (path: string, query: Record<string, string> = {}) =>
    send(`${root}${path}?${new URLSearchParams(query)}`);
  const products = async (query: Record<string, string> = {}): Promise<Listed[]> =>
    (await ask('/Products', query)).json.value;
  /** Follows all next links; `between` runs after each page. */
  const follow = async (query: Record<string, string>, between = async () => {}) => {
    const pages: Answer[] = [await ask('/Products', query)];
    for (let link = pages[0]?.json['@odata.nextLink']; link !== undefined; ) {
      await between();
      const page = await send(link);
      pages.push(page);
      link = page.json['@odata.nextLink'];
    }
    return pages;
  };
  return { ...test, ask, products, follow };
}

/** Returns records that only have names. */
const bareRecords = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ Id: `id-${index}`, Name: `name-${index}` }));

const idsOf = (products: readonly Listed[]) => products.map(({ Id }) => Id);

describe('a product', () => {
  it('is returned in its current state, and among the deleted products after its deletion', async () => {
    const { ask, products, publish } = await startLists();
    await publish(2);
    const [first, second] = await products();
    const path = `(${first?.Id.toUpperCase()})`;
    const created = await ask(`/Products${path}`, { $expand: 'Attributes,Assets,Locations' });
    expect(created.json).toMatchObject({
      '@odata.context': '$metadata#Products(Attributes(),Assets(),Locations())/$entity',
      Id: first?.Id,
      ModificationDate: first?.PublicationDate,
    });
    expect(created.json.Attributes.length).toBeGreaterThan(5);
    await publish(1, 'modified');
    const modified = (await ask(`/Products${path}`)).json;
    expect(modified.ModificationDate > modified.PublicationDate).toBe(true);
    expect(modified).not.toHaveProperty('Attributes');
    // The oldest unchanged product is the second; the modified one follows.
    await publish(2, 'deleted');
    expect(await products()).toEqual([]);
    expect((await ask(`/Products${path}`)).status).toBe(404);
    const { status, json } = await ask('/DeletedProducts', { $count: 'true' });
    expect([status, json['@odata.count']]).toEqual([200, 2]);
    expect(idsOf(json.value)).toEqual([second?.Id, first?.Id]);
    for (const deleted of json.value) {
      expect(deleted).toMatchObject({ DeletionCause: expect.any(String) });
      expect(Date.parse(deleted.DeletionDate)).toBeGreaterThan(0);
      expect(deleted).not.toHaveProperty('@odata.context');
    }
    expect((await ask(`/DeletedProducts${path}`)).json).toMatchObject({ Id: first?.Id });
  });

  it('is not found by another id or by an invalid one', async () => {
    const { ask } = await startLists();
    const unknown = await ask('/Products(7ca682c3-7b21-4e9b-952e-874798101340)');
    expect(unknown.status).toBe(404);
    const request_id = unknown.headers.get('request-id');
    const message = 'Product with id 7ca682c3-7b21-4e9b-952e-874798101340 not found.';
    expect(unknown.json).toEqual({ detail: { message, request_id } });
    const none = await ask('/Products()');
    expect([none.status, none.json]).toEqual([404, { detail: 'Invalid odata path' }]);
  });
});

describe('a query', () => {
  it('returns the products that a subscription with the same filter would be notified of', async () => {
    const filter = "contains(Name,'_MSIL2A_') or Collection/Name eq 'SENTINEL-1'";
    const { products, publish } = await startLists();
    await publish(60);
    const all = await products({ $top: '100' });
    const found = await products({ $filter: filter, $top: '100' });
    const expected = all.filter(({ Name }) => Name.startsWith('S1') || Name.includes('_MSIL2A_'));
    expect(all).toHaveLength(60);
    expect(expected.length).toBeGreaterThan(5);
    expect(idsOf(found)).toEqual(idsOf(expected));
  });

  it.each(['asc', 'desc'])('is in order, %s, equal dates by id', async (direction) => {
    const named = (Name: string) => ({ Id: `${Name[0]}0000000-0000-4000-8000-000000000000`, Name });
    const dated = [
      { ...named('c'), PublicationDate: '2026-01-01T00:00:00.000001Z' },
      { ...named('b'), PublicationDate: '2026-01-01T00:00:00Z' },
      { ...named('a'), PublicationDate: '2026-01-01T00:00:00.000Z' },
      named('none'),
    ];
    const { products, publish } = await startLists({ recordsFile: recordsFileOf(dated) });
    await publish(4);
    const found = await products({ $orderby: `PublicationDate ${direction}` });
    const names = found.map(({ Name }) => Name);
    const expected = { asc: ['none', 'a', 'b', 'c'], desc: ['c', 'a', 'b', 'none'] };
    expect(names).toEqual(expected[direction as 'asc' | 'desc']);
  });

  it('returns each product once across pages, even while products are published', async () => {
    const { products, follow, publish } = await startLists();
    await publish(50);
    const first = idsOf(await products({ $top: '50' }));
    const publishMore = async () => {
      await publish(3);
      await publish(2, 'modified');
    };
    const pages = await follow({ $top: '7', $select: 'Id', $filter: "Name ne '+&%'" }, publishMore);
    const seen = pages.flatMap(({ json }) => idsOf(json.value));
    expect(seen.slice(0, 50)).toEqual(first);
    expect(new Set(seen).size).toBe(seen.length);
    expect(pages.at(-1)?.json.value.length).toBeLessThanOrEqual(7);
    expect(seen.length).toBeGreaterThan(80);
  });

  it('skips at most 10,000 products and returns at most 1,000 more, without a further link', async () => {
    const { ask, publish } = await startLists({ recordsFile: recordsFileOf(bareRecords(11_500)) });
    await publish(10_000);
    await publish(1_500);
    const last = await ask('/Products', { $skip: '10000', $top: '1000', $count: 'true' });
    expect(last.json.value).toHaveLength(1_000);
    expect(last.json['@odata.count']).toBe(11_500);
    expect(last.json).not.toHaveProperty('@odata.nextLink');
    const before = await ask('/Products', { $skip: '9000', $top: '1000' });
    expect(new URL(before.json['@odata.nextLink']).searchParams.get('$skip')).toBe('10000');
    expect((await ask('/Products')).json.value).toHaveLength(20);
    const none = (await ask('/Products', { $top: '0', $count: 'true' })).json;
    expect([none.value, none['@odata.count']]).toEqual([[], 11_500]);
    expect(none).not.toHaveProperty('@odata.nextLink');
  });

  it('is refused with position and problem when its filter is invalid', async () => {
    const { ask } = await startLists();
    for (const $filter of ["foo eq 'bar'", "Name eq 'x", 'DeletionDate gt 2023-04-01']) {
      const { status, json, headers } = await ask('/Products', { $filter });
      expect([status, json.detail.request_id]).toEqual([400, headers.get('request-id')]);
      expect(json.detail.message).toMatch(/^Invalid (field|value): /);
    }
  });

  it('is refused when its order is invalid', async () => {
    const { ask } = await startLists();
    for (const direction of ['constructor', '__proto__', 'toString', 'up']) {
      const $orderby = `PublicationDate ${direction}`;
      const { status, json } = await ask('/Products', { $orderby });
      expect([status, json.detail.message]).toEqual([400, expect.stringMatching(/order by/)]);
    }
  });

  it.each(['POST', 'PUT', 'PATCH', 'DELETE'])('is never a %s', async (method) => {
    const { root } = await startLists();
    for (const path of ['/Products', '/DeletedProducts', '/Products(a)']) {
      const { status, headers } = await send(`${root}${path}`, { method });
      expect([status, headers.get('allow')]).toEqual([405, 'GET']);
    }
  });

  it('is answered 503 while the catalogue is down', async () => {
    const { ask } = await startLists({ service: { unavailable: true } });
    expect((await ask('/Products')).status).toBe(503);
  });
});

describe('queries of other clients', () => {
  it('can list products by name, and name different types for an attribute and its value', async () => {
    const { products, publish, root } = await startLists();
    await publish(20);
    const all = await products({ $expand: 'Attributes' });
    const requested = all.slice(2, 5).map(({ Name }) => Name);
    const listed = await send(`${root}/Products/OData.CSC.FilterList?$count=true`, {
      method: 'POST',
      body: JSON.stringify({ FilterProducts: [...requested, 'none'].map((Name) => ({ Name })) }),
    });
    expect([listed.status, listed.json['@odata.count']]).toEqual([200, 3]);
    expect(listed.json.value.map(({ Name }: Listed) => Name)).toEqual(requested);
    const orbit = (outer: string, inner: string, literal: (value: number) => string) =>
      Promise.all(
        all.map(async (one) => {
          const value = Object(one).Attributes.find(
            ({ Name }: { Name: string }) => Name === 'relativeOrbitNumber',
          )?.Value;
          const $filter = `Attributes/OData.CSC.${outer}Attribute/any(a:a/Name eq 'relativeOrbitNumber' and a/OData.CSC.${inner}Attribute/Value eq ${literal(value ?? -1)})`;
          return idsOf(await products({ $filter })).includes(one.Id) === (value !== undefined);
        }),
      );
    expect(await orbit('Integer', 'String', String)).not.toContain(false);
    expect(await orbit('String', 'Integer', String)).not.toContain(false);
    const quoted = await orbit('Integer', 'Integer', (value) => `'${value}'`);
    expect(quoted.filter((isAsBefore) => !isAsBefore).length).toBeGreaterThan(5);
  });

  it('return the attributes of a collection, and 404 for an unknown one', async () => {
    const { ask, root } = await startLists();
    const { status, json } = await ask('/Attributes(SENTINEL-2)');
    expect(status).toBe(200);
    expect(json).toContainEqual({ Name: 'cloudCover', ValueType: 'Double' });
    expect((await ask('/Attributes(SENTINEL-9)')).status).toBe(404);
    const list = `${root}/Products/OData.CSC.FilterList`;
    const wrong = await send(list, { method: 'POST', body: '[' });
    expect([wrong.status, wrong.json.detail[0].loc]).toEqual([422, ['body']]);
    const get = await send(list);
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST']);
  });
});

describe('a recorded answer of the real service', () => {
  it('equals that of the sandbox: errors', async (context) => {
    if (missing) return context.skip(missing);
    const { sandbox } = await startLists();
    const all = readdirSync(new URL('errors/', fixtures));
    const names = all.filter((name) => /^products-4\d\d-\d/.test(name));
    expect(names.length).toBeGreaterThan(5);
    for (const name of names) {
      const { request, response } = fixture(`errors/${name}`);
      const { pathname, search } = new URL(request.uri);
      const { status, json, headers } = await send(`${sandbox.catalogueUrl}${pathname}${search}`);
      expect(status, name).toBe(response.status.code);
      const { detail } = response.body;
      const request_id = headers.get('request-id');
      const expected = 'message' in detail ? { ...detail, request_id } : detail;
      expect(json, name).toEqual({ detail: expected });
    }
  });

  it('equals that of the sandbox: a list with a next link', async (context) => {
    if (missing) return context.skip(missing);
    const shown = fixture('lists/products-page-1-count-nextlink.json');
    // One more than a page, so that there is a next link.
    const ContentDate = { Start: '2014-04-13', End: '2014-04-13' };
    const more = { ...shown.value[0], Id: crypto.randomUUID(), ContentDate };
    const recordsFile = recordsFileOf([...shown.value.toReversed(), more]);
    const { sandbox, publish } = await startLists({ recordsFile });
    await publish(11);
    const { pathname, search } = new URL(shown['@odata.nextLink']);
    const link = `${sandbox.catalogueUrl}${pathname}${search}`;
    const { status, json } = await send(link.replace(/&%24skip=\d+/, ''));
    expect(status).toBe(200);
    expect(json['@odata.context']).toBe(shown['@odata.context']);
    expect(json['@odata.count']).toBe(11);
    expect(Object.keys(json)).toEqual(Object.keys(shown));
    expect(json.value).toEqual(shown.value);
    expect(Object.keys(json.value[0])).toEqual(Object.keys(shown.value[0]));
    expect(json['@odata.nextLink']).toBe(link);
  });
});
