/** The STAC API over real sockets. */

import { existsSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { StacItem } from 'stac-ts';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/terms/app-error.ts';
import { writeProducts } from '../../../src/features/products/output.ts';
import { sensedDuring } from '../../../src/features/stac/areas.ts';
import { collectionId, collectionOfView } from '../../../src/features/stac/collections.ts';
import { stac } from '../../../src/features/stac/index.ts';
import { searchParameters } from '../../../src/features/stac/search.ts';
import { compileFilter } from '../../../src/filter/evaluate.ts';
import { productView } from '../../../src/filter/product-view.ts';
import { type CollectionSummary, writeKey } from '../../../src/filter/products.ts';
import {
  type Answer,
  follow,
  generatedProducts,
  openConsole,
  openFilled,
  openWithPassword,
} from '../../core/api/console-context.ts';
import { realRecords } from '../products/index-file/product-context.ts';
import { schemaFolder, validateStac } from './schemas.ts';
import { followPosts, idsOf, linksIn, nextOf, post, query } from './stac-answers.ts';

describe('a STAC client', () => {
  it('walks from the landing page to collections, items and records by links', async (context) => {
    const { get, published, origin } = await openFilled();
    const { status, headers } = await get('/stac/');
    expect([status, headers.location]).toEqual([308, `${origin}/stac`]);
    const searched = await get('/stac/search/?limit=1');
    expect(searched.headers.location).toBe(`${origin}/stac/search?limit=1`);
    const landing = await get('/stac');
    expect(landing.json.links).toContainEqual({
      rel: 'search',
      href: `${origin}/stac/search`,
      type: 'application/geo+json',
      method: 'POST',
    });
    for (const { rel, href, method = 'GET', type } of landing.json.links) {
      if (method !== 'GET') continue;
      const { status, headers } = await get(href);
      const kind = expect.stringContaining(String(type));
      expect([rel, status, headers['content-type']]).toEqual([rel, 200, kind]);
    }
    const { json: all } = await get('/stac/collections');
    const children = landing.json.links.filter(({ rel }: { rel: string }) => rel === 'child');
    expect(children.length).toBe(all.collections.length);
    for (const collection of all.collections) {
      const { self = '', items } = linksIn(collection);
      expect((await get(self)).json).toEqual(collection);
      const pages = await follow({ get }, `${items}?limit=7`, nextOf);
      const expected = published.filter(
        (one) => collectionId(collectionOfView(productView(one))) === collection.id,
      );
      expect(idsOf(pages).toSorted()).toEqual(expected.map(({ Id }) => Id).toSorted());
    }
    const item = (await get('/stac/search?limit=1')).json.features[0];
    const links = linksIn(item);
    expect((await get(links.self ?? '')).json).toEqual(item);
    expect((await get(links.alternate ?? '')).json.Id).toBe(item.id);
    for (const rel of ['version-history', 'describedby']) {
      expect((await get(links[rel] ?? '')).status).toBe(200);
    }
    if (!existsSync(schemaFolder))
      context.skip('the folder ../shared/fixtures/stac-schemas is not there');
    const documents = [landing.json, ...all.collections, item];
    expect(await validateStac(documents)).toEqual({ faults: [], checked: documents.length });
  });

  it('gets the same item from every output, the command included', async () => {
    const { get, products, origin } = await openFilled(12);
    products.add('Products', ...realRecords(10));
    const all = (await get('/stac/search?limit=1000')).json.features;
    const collections = [...new Set<string>(all.map((one: StacItem) => one.collection))];
    const lists = await Promise.all(
      collections.map((id) => get(`/stac/collections/${id}/items?limit=1000`)),
    );
    const printed = async () => {
      const stdout = new PassThrough();
      const found = products.find({ entity: 'Products', filter: null });
      const lines = text(stdout);
      const urls = { catalogueUrl: 'https://catalogue.test', base: origin };
      const line = await stac.productFormats[0].load();
      await writeProducts(stdout, 'stac', found, { lines: { stac: (one) => line(one, urls) } });
      stdout.end();
      return (await lines)
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
    };
    const byId = (items: StacItem[]) => items.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const expected = byId(all);
    expect(byId((await post({ get }, { limit: 1000 })).json.features)).toEqual(expected);
    expect(byId(lists.flatMap(({ json }) => json.features))).toEqual(expected);
    expect(byId(await printed())).toEqual(expected);
    for (const one of all) expect((await get(linksIn(one).self ?? '')).json).toEqual(one);
  });

  it('gets every item once by GET and by POST, with the same conditions in text and JSON', async () => {
    const context = await openFilled();
    const newestFirst = context.published.map(({ Id }) => Id).toReversed();
    const pages = await follow(context, query('/search', { limit: '7' }), nextOf);
    expect(idsOf(pages)).toEqual(newestFirst);
    expect(pages.map(({ json }) => json.numberReturned)).toEqual([7, 7, 7, 7, 7, 7, 3]);
    const text = "eo:cloud_cover < 50 AND title LIKE 'S2%'";
    const filter = {
      op: 'and',
      args: [
        { op: '<', args: [{ property: 'eo:cloud_cover' }, 50] },
        { op: 'like', args: [{ property: 'title' }, 'S2%'] },
      ],
    };
    const byText = await follow(context, query('/search', { filter: text, limit: '3' }), nextOf);
    const byJson = await followPosts(context, { filter, 'filter-lang': 'cql2-json', limit: 4 });
    expect(idsOf(byText).length).toBeGreaterThan(3);
    expect(idsOf(byJson)).toEqual(idsOf(byText));
    const every = { 'filter-lang': 'cql2-json', limit: '1000' };
    const whole = idsOf([await context.get(query('/search', { filter: 'true', ...every }))]);
    expect(whole).toEqual(newestFirst);
    expect(idsOf(await followPosts(context, { filter: true, limit: 1000 }))).toEqual(newestFirst);
    expect(idsOf(await followPosts(context, { filter: false }))).toEqual([]);
    const inUrl = query('/search', { filter: JSON.stringify(filter), limit: '1000' });
    expect(idsOf([await context.get(inUrl)])).toEqual(idsOf(byText));
  });

  it.each([
    '+id',
    '-eo:cloud_cover,+properties.datetime',
    'datetime,-title',
    'properties.end_datetime,id',
    'updated',
  ])('sorts by the values that items show: %s', async (sortby) => {
    const context = await openConsole();
    // Some have equal values, and some have no sensing time, or no date at all.
    const dates = ['ContentDate', 'PublicationDate', 'ModificationDate'] as const;
    const records = generatedProducts(40).products.map((record, i, { [i - (i % 2)]: before }) => {
      const rest = { ...record, ContentDate: before?.ContentDate };
      return Object.fromEntries(
        Object.entries(rest).filter(
          ([name]) => !dates.some((one, n) => one === name && i % 7 > 4 + n),
        ),
      );
    });
    context.products.add('Products', ...records);
    const answers = await follow(context, query('/search', { sortby, limit: '7' }), nextOf);
    const items = answers.flatMap(({ json }) => json.features);
    expect(new Set(idsOf(answers)).size).toBe(40);
    // Only the first page is counted.
    const counts = answers.map(({ json }) => json.numberMatched);
    expect(counts).toEqual([40, ...Array(5).fill(undefined)]);
    const fields = sortby.split(',').map((text) => ({
      field: text.replace(/^[+-]/, ''),
      direction: text.startsWith('-') ? 'desc' : 'asc',
    }));
    const posted = await followPosts(context, { sortby: fields, limit: 11 });
    expect(idsOf(posted)).toEqual(idsOf(answers));
    const shownIn = (item: Answer['json'], name: string) =>
      name === 'id' ? item.id : item.properties[name.replace('properties.', '')];
    for (const [i, item] of items.slice(1).entries()) {
      const differing = fields.find(
        ({ field }) => shownIn(items[i], field) !== shownIn(item, field),
      );
      if (differing === undefined) continue;
      const values = [items[i], item].map((one) => shownIn(one, differing.field));
      const [low, high] = differing.direction === 'asc' ? values : values.toReversed();
      expect(low === undefined || low < high, `${low} is before ${high}`).toBe(true);
    }
  });

  it('combines collections, ids, area and time', async () => {
    const context = await openFilled();
    const { features } = (await context.get('/stac/search?limit=1000')).json;
    const [first] = features;
    const found = async (body: object) =>
      idsOf(await followPosts(context, { limit: 1000, ...body }));
    const inCollection = features.filter(
      (one: typeof first) => one.collection === first.collection,
    );
    const ids = inCollection.map(({ id }: { id: string }) => id);
    expect(await found({ collections: [first.collection] })).toEqual(ids);
    expect(await found({ collections: [first.collection, 'no.such'] })).toEqual(ids);
    expect(await found({ collections: ['no.such'] })).toEqual([]);
    expect(await found({ ids: [first.id, 'no-such'] })).toEqual([first.id]);
    expect(await found({ ids: [] })).toEqual([]);
    const { start_datetime: start, end_datetime: end } = first.properties;
    const during = await found({ datetime: `${start}/${end}` });
    expect(during).toContain(first.id);
    expect(await found({ datetime: start })).toContain(first.id);
    expect(await found({ datetime: `${start}/..` })).toEqual(
      features
        .filter((one: typeof first) => one.properties.end_datetime >= start)
        .map(({ id }: { id: string }) => id),
    );
    expect(await found({ datetime: `../${start}`, ids: [first.id] })).toEqual([first.id]);
    const inBox = await found({ bbox: first.bbox });
    expect(inBox).toContain(first.id);
    expect(await found({ intersects: first.geometry, bbox: undefined })).toContain(first.id);
    const [west, south, east, north] = first.bbox;
    expect(await found({ bbox: [west, south, 0, east, north, 100] })).toEqual(inBox);
    const along = (...coordinates: number[][]) => ({ type: 'LineString', coordinates });
    const diagonal = along([west, south], [east, north]);
    const alongLine = await found({ intersects: diagonal });
    expect(alongLine).toContain(first.id);
    expect(alongLine.every((id: string) => inBox.includes(id))).toBe(true);
    const collection = { type: 'GeometryCollection', geometries: [diagonal] };
    expect(await found({ intersects: collection })).toEqual(alongLine);
    const edge = along([west, south], [east, south]);
    expect(await found({ bbox: [west, south, east, south] })).toEqual(
      await found({ intersects: edge }),
    );
  });

  it('may send null members and omit the direction of sortby', async () => {
    const context = await openFilled();
    const found = async (body: object) => idsOf([await post(context, body)]);
    const usual = await found({});
    expect(usual).toHaveLength(10);
    const names = Object.keys(searchParameters);
    for (const name of names) expect([name, await found({ [name]: null })]).toEqual([name, usual]);
    const nulls = Object.fromEntries(names.map((name) => [name, null]));
    const [{ bbox }] = (await context.get('/stac/search?limit=1')).json.features;
    expect(await found({ ...nulls, bbox, limit: 3 })).toEqual(await found({ bbox, limit: 3 }));
    const fields = { include: null, exclude: ['links'] };
    const [lean] = (await post(context, { limit: 1, fields })).json.features;
    expect(lean).not.toHaveProperty('links');
    const ascending = await found({ sortby: [{ field: 'datetime', direction: 'asc' }] });
    const sortby = [{ field: 'datetime', direction: null }];
    expect(await found({ sortby })).toEqual(ascending);
    const pages = await followPosts(context, {
      ...nulls,
      sortby: [{ field: 'datetime' }],
      limit: 7,
    });
    expect(idsOf(pages).slice(0, 10)).toEqual(ascending);
    expect(idsOf(pages)).toHaveLength(45);
  });

  it('gets only the requested fields', async () => {
    const context = await openFilled();
    const first = async (fields: string) =>
      (await context.get(query('/search', { fields, limit: '1' }))).json.features[0];
    const whole = (await context.get('/stac/search?limit=1')).json.features[0];
    const usual = 'type stac_version id collection geometry bbox links assets'.split(' ');
    expect(Object.keys(await first(''))).toEqual([...usual, 'properties']);
    expect((await first('properties.title')).properties).toEqual({
      datetime: whole.properties.datetime,
      title: whole.properties.title,
    });
    const lean = await first('id,properties,-geometry,-bbox,-links,-assets,-properties.title');
    const { title: _, ...others } = whole.properties;
    expect(lean.properties).toEqual(others);
    expect(Object.keys(lean)).toEqual(['type', 'stac_version', 'id', 'collection', 'properties']);
    const body = {
      limit: 1,
      fields: { include: ['__proto__.x'], exclude: ['__proto__.toString', 'links'] },
    };
    const [posted] = (await post(context, body)).json.features;
    expect(posted).not.toHaveProperty('links');
    expect(String({})).toBe('[object Object]');
  });

  it('gets 410 with the tombstone of a deleted product, which no search finds', async () => {
    const context = await openConsole();
    const { json } = await (await openFilled(2, 2)).get(
      '/odata/v1/DeletedProducts?$expand=Attributes',
    );
    const [deleted] = json.value;
    context.products.add('DeletedProducts', deleted);
    const id = collectionId(collectionOfView(productView(deleted)));
    const { status, json: gone } = await context.get(`/stac/collections/${id}/items/${deleted.Id}`);
    expect(status).toBe(410);
    expect(gone).toMatchObject({
      code: 'Gone',
      tombstone: {
        id: deleted.Id,
        collection: id,
        title: deleted.Name,
        deletionCause: deleted.DeletionCause,
      },
    });
    expect((await context.get('/stac/search')).json.features).toEqual([]);
    expect((await context.get('/stac/collections')).json.collections).toEqual([]);
    expect((await context.get(`/stac/collections/${id}/items`)).status).toBe(404);
  });

  it('learns which properties a filter can name, also in the form that GDAL 3.6 reads', async () => {
    const { get } = await openFilled(3);
    const { json, headers } = await get('/stac/queryables');
    expect(headers['content-type']).toBe('application/schema+json');
    expect(json.properties['eo:cloud_cover']).toEqual({
      title: 'Cloud cover in percent',
      type: 'number',
    });
    expect(json.properties['catalogue:timeliness']).toMatchObject({ type: 'string' });
    expect(json).not.toHaveProperty('queryables');
    const draft = await get('/stac/queryables', { headers: { Accept: 'application/json' } });
    expect(draft.headers['content-type']).toBe('application/json');
    expect(draft.json.queryables).toContainEqual({ id: 'eo:cloud_cover', type: 'number' });
    const names = Object.keys(json.properties).filter((name) => name !== 'geometry');
    for (const name of names) {
      const { status } = await get(query('/search', { filter: `"${name}" IS NULL`, limit: '1' }));
      expect([name, status]).toEqual([name, 200]);
    }
  });
});

it('a list of collections has all of them, each valid', async (context) => {
  const { get, products } = await openConsole();
  const summary: CollectionSummary = {
    ...{ mission: 'SENTINEL-2', productType: 'A', products: 1, box: null },
    ...{ sensingStartUs: null, sensingEndUs: null, cloudCoverMin: null, cloudCoverMax: null },
    ...{ constellations: [], platforms: [], orbitDirections: [], levels: [] },
  };
  const box = { west: 5, south: 45, east: 11, north: 48 };
  products.collections = async () => [summary, { ...summary, productType: 'B', box }];
  const { json } = await get('/stac/collections');
  expect(json).toMatchObject({ numberMatched: 2, numberReturned: 2 });
  expect(json.collections[0].itemType).toBe('feature');
  if (!existsSync(schemaFolder))
    context.skip('the folder ../shared/fixtures/stac-schemas is not there');
  expect((await validateStac(json.collections)).faults).toEqual([]);
});

it('the description of the API names the login if there is a password', async () => {
  const headers = { Authorization: `Basic ${btoa('earshot:a: word')}` };
  const { json } = await (await openWithPassword()).get('/stac/api', { headers });
  expect(json.components.securitySchemes.login).toMatchObject({ type: 'http', scheme: 'basic' });
  expect(json.security).toEqual([{ login: [] }]);
  expect((await (await openConsole()).get('/stac/api')).json).not.toHaveProperty('security');
});

describe('a time of a search', () => {
  it('finds products with far times, for the intervals that QGIS sends', () => {
    const times = [
      ['0000-01-01T00:00:00.000Z', '2026-05-01T00:00:00Z'],
      ['2026-05-01T00:00:00Z', '9999-12-31T23:59:59.999999Z'],
    ];
    const found = (datetime: string) => {
      const test = compileFilter(sensedDuring(datetime).tree);
      return times.flatMap(([Start, End], i) =>
        test(productView({ ContentDate: { Start, End } })) ? [i] : [],
      );
    };
    expect(found('2020-01-01T00:00:00Z/9999-12-31T00:00:00Z')).toEqual([0, 1]);
    expect(found('0000-01-01T00:00:00Z/2020-01-01T00:00:00Z')).toEqual([0]);
    expect(found('0000-01-01/9999-12-31')).toEqual([0, 1]);
    expect(found('9999-12-31T23:59:59.999Z')).toEqual([1]);
    expect(found('3500-01-01t00:00:00z/..')).toEqual([1]);
    expect(found('2026-04-30T23:59:60Z')).toEqual([0, 1]);
    expect(found('2026-05-01T01:00:00.5+01:00')).toEqual([1]);
  });

  it.each([
    ...['2026-11-20T06:00:50,52Z', '2026-11-20T06:00:00+0100', '2026-11-20T06:00:00', '2026'],
    ...['2026-11-20 06:00:00Z', '2026-11-20T06:00Z', '2026-11-20Z', '19999-01-01T00:00:00Z'],
    ...['2026-11-31T06:00:00Z', '2026-11-20T06:00:61Z', '2026-13-01', '9999-12-31T23:59:60Z'],
    ...['9999-12-31T23:59:59-00:01', '0000-01-01T00:00:00+00:01'],
  ])('is not %s', (text) => {
    const reason = /is not a (?:time of RFC 3339|valid time of the years 0000 to 9999)/;
    expect(() => sensedDuring(`../${text}`)).toThrow(reason);
  });
});

describe('a wrong STAC request is answered with', () => {
  it.each([
    ['/stac/nothing', 404, 'Unknown path.'],
    ['/stac/collections/a.b', 404, 'There is no collection "a.b".'],
    ['/stac/collections/a.b/items', 404, 'There is no collection "a.b".'],
    ['/stac/collections/a.b/items/c', 404, 'The collection has no item "c".'],
    ['/stac/search?limit=0', 400, 'limit: must be a whole number, 1 or more'],
    ['/stac/search?bbox=1,2,3', 400, 'bbox: must have 4 or 6 numbers'],
    ['/stac/search?bbox=5,60,6,50', 400, 'South (60) is greater than north (50).'],
    ['/stac/search?datetime=yesterday', 400, '"yesterday" is not a time'],
    ['/stac/search?datetime=2026-01-01T00:00:00+01:00/..', 400, 'write + as %2B'],
    ["/stac/search?filter=datetime>TIMESTAMP('2026-01-01T00:00:00%2B0100')", 400, 'a time'],
    ["/stac/search?filter=datetime>TIMESTAMP('2026-01-01 00:00:00Z')", 400, 'a time'],
    ['/stac/search?datetime=../..', 400, 'datetime must be a time, or an interval'],
    ['/stac/search?sortby=platform', 400, 'Items cannot be sorted by "platform".'],
    ['/stac/search?sortby=id,title,created', 400, 'sortby: must have at most 2 fields'],
    ['/stac/search?token=x', 400, 'The token is invalid.'],
    ['/stac/collections?color=red', 400, 'Unknown parameter "color".'],
    [
      `/stac/search?sortby=id&token=${writeKey({ values: [], position: 1 }, { entity: 'Products' })}`,
      400,
      'The token is invalid.',
    ],
    ['/stac/search?color=red', 400, 'Unrecognized key: "color"'],
    ['/stac/search?limit=1&limit=2', 400, 'The parameter limit occurs more than once.'],
    ['/stac/search?filter=a%20%3D%201', 400, 'The property "a" cannot be queried.'],
    ['/stac/search?filter=TRUE&filter-lang=cql2-json', 400, 'filter is not JSON'],
    [
      '/stac/search?intersects=%7B"type":"Point"%7D',
      400,
      'geometry of the type "Point" cannot be read',
    ],
    [
      '/stac/search?bbox=1,2,3,4&intersects=%7B"type":"Point","coordinates":[1,2]%7D',
      400,
      'bbox and intersects exclude each other',
    ],
  ])('%s: %i', async (path, status, reason) => {
    const { get } = await openFilled(2);
    const answer = await get(path);
    expect([answer.status, answer.json.description]).toEqual([
      status,
      expect.stringContaining(reason),
    ]);
    expect(answer.headers['content-type']).toBe('application/problem+json');
    expect(answer.json).toMatchObject({ code: expect.any(String), requestId: expect.any(String) });
  });

  it('all faults at once, and 400, 405 or 413 for bodies and methods', async () => {
    const context = await openFilled(2);
    const { json } = await context.get('/stac/search?bbox=1,9,2,3&datetime=x&filter=y&sortby=z');
    expect(json.errors).toHaveLength(4);
    const broken = await context.get('/stac/search', { method: 'POST', body: '{' });
    expect([broken.status, broken.json.description]).toEqual([400, 'The body is not JSON.']);
    const large = await context.get('/stac/search', {
      method: 'POST',
      body: ' '.repeat(1_100_000),
    });
    expect([large.status, large.json.code]).toEqual([413, 'Content too large']);
    const search = { filter: `platform IN (${Array(400).fill("'a'").join(',')})` };
    const many = await context.get('/stac/search', {
      method: 'POST',
      body: JSON.stringify(search),
    });
    expect([many.status, many.json.description]).toEqual([
      400,
      'The search has more than 5000 conditions.',
    ]);
    const refused = await context.get('/stac/collections', { method: 'POST', body: '{}' });
    expect([refused.status, refused.headers.allow]).toEqual([405, 'GET, HEAD']);
    const deleted = await context.get('/stac/search', { method: 'DELETE' });
    expect([deleted.status, deleted.headers.allow]).toEqual([405, 'GET, HEAD, POST']);
  });

  it('a fixed sentence for failures of the index', async () => {
    const context = await openConsole();
    context.products.failure = new AppError('unavailable', 'There is no index in /secret/place.');
    const unavailable = await context.get('/stac/search');
    expect([unavailable.status, unavailable.headers['retry-after']]).toEqual([503, '5']);
    context.products.failure = new Error('secret');
    const failed = await context.get('/stac/search');
    expect(failed.status).toBe(500);
    expect(failed.text + unavailable.text).not.toContain('secret');
  });
});
