/** Cases in which a careless index would find other products than evaluation. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { formatDateUs } from '../../../../src/core/terms/dates.ts';
import { openProductsForReading } from '../../../../src/features/products/index-file/product-file.ts';
import { countProducts } from '../../../../src/features/products/index-file/product-queries.ts';
import { windowsBelow } from '../../../../src/features/products/index-file/search/candidates.ts';
import { createKnownNames } from '../../../../src/features/products/index-file/search/drivers.ts';
import { compileFilter } from '../../../../src/filter/evaluate.ts';
import type { FilterTree } from '../../../../src/filter/filter-tree.ts';
import { parseFilter } from '../../../../src/filter/parse.ts';
import { readKey, writeKey } from '../../../../src/filter/product-order.ts';
import { productView } from '../../../../src/filter/product-view.ts';
import { createReaderConnection } from '../../../../src/store/engine/database.ts';
import { times } from '../../../helpers/thorough.ts';
import {
  all,
  created,
  oddRecords,
  openProductContext,
  type TestRecord,
} from './product-context.ts';

const wholeGlobe =
  "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((-180 -90,180 -90,180 90,-180 90,-180 -90))')";
const place = "geography'SRID=4326;POLYGON ((1 2, 3 2, 3 4, 1 2))'";

const cloudy = (Id: string, Value: number): TestRecord => ({
  Id,
  Name: `S2A_${Id}`,
  Footprint: place,
  Attributes: [{ Name: 'cloudCover', Value, ValueType: 'Double' }],
});

const nameTree = (operation: 'contains' | 'endswith', text: string): FilterTree => ({
  node: 'text',
  function: operation,
  field: 'Name',
  text,
});

describe('searching the index', () => {
  it('finds products with an absurd cloud cover by place and by cloud cover', async () => {
    const { index, find } = await openProductContext();
    await index(...created(cloudy('a', 1e300), cloudy('b', -1e300), cloudy('c', 20)));
    const ids = async (filter: string) =>
      (await find('Products', filter)).map(({ row }) => row.productId).toSorted();
    const cover = (condition: string) =>
      `Attributes/OData.CSC.DoubleAttribute/any(att:att/Name eq 'cloudCover' and att/Value ${condition})`;
    expect(await ids(wholeGlobe)).toEqual(['a', 'b', 'c']);
    expect(await ids(`${wholeGlobe} and ${cover('gt 100')}`)).toEqual(['a']);
    expect(await ids(`${wholeGlobe} and ${cover('lt 0')}`)).toEqual(['b']);
    expect(await ids(`${wholeGlobe} and ${cover('le 20')}`)).toEqual(['b', 'c']);
  });

  it('finds the same as evaluation, for every pair of kinds and every type of value', async () => {
    const { index, find } = await openProductContext();
    await index(...created(...oddRecords));
    const views = oddRecords.map((record) => productView({ ...record }));
    const kinds = ['String', 'Double', 'Integer', 'DateTimeOffset'];
    const values = [
      ...['eq 12', 'ge 12', "eq '12'", "ne '12'", 'eq 5', "eq '5'", "in ('5',5,'S2MSI1C')"],
      ...['eq 2026-05-01', "eq '2026-05-01'", "lt '2027-05-01'", 'eq true', "eq 'true'"],
    ];
    const names = ['cloudCover', 'productType', 'orbitNumber', 'tileId'].slice(0, times(2, 4));
    let matched = 0;
    for (const name of names)
      for (const kind of kinds)
        for (const valueKind of kinds)
          for (const value of values) {
            const filter = `Attributes/OData.CSC.${kind}Attribute/any(a:a/Name eq '${name}' and a/OData.CSC.${valueKind}Attribute/Value ${value})`;
            const matches = compileFilter(parseFilter(filter).tree);
            const expected = views.filter(matches).map((view) => view.text('Id'));
            const found = await find('Products', filter, { records: false });
            expect(found.map(({ row }) => row.productId).toSorted(), filter).toEqual(
              expected.toSorted(),
            );
            matched += expected.length;
          }
    expect(matched).toBeGreaterThan(times(100, 200));
  });

  it('finds the types of a group, in any number of conditions', async () => {
    const { index, find } = await openProductContext();
    const types = [
      ...['IW_GRDH_1S', 'EW_GRDM_1S', 'IW_GRDH_1S-COG', 'IW_SLC__1S', 'EW_RAW__0S', 'GRD', 'RAW'],
      ...['S2MSI1C', null],
    ];
    const typed = types.map((Value) => ({
      Id: String(Value),
      Attributes: [{ Name: 'productType', Value, ValueType: 'String' }],
    }));
    await index(...created(...typed));
    const views = typed.map((record) => productView({ ...record }));
    const any = (condition: string) =>
      `Attributes/OData.CSC.StringAttribute/any(a:a/Name eq 'productType' and a/Value ${condition})`;
    const grd = any("eq 'GRD'");
    for (const filter of [
      ...[grd, any("in ('RAW','GRD-COG')"), any("ne 'GRD'"), any("ge 'GRD'"), `not ${grd}`],
      `${grd} and contains(Name,'x')`,
      Array(900).fill(grd).join(' or '),
      Array(400).fill(`(${grd} and Online ne true)`).join(' or '),
    ]) {
      const matches = compileFilter(parseFilter(filter).tree);
      const found = await find('Products', filter, { records: false });
      expect(found.map(({ row }) => row.productId).toSorted(), filter.slice(0, 200)).toEqual(
        views
          .filter(matches)
          .map((view) => view.text('Id'))
          .toSorted(),
      );
    }
    expect(await find('Products', grd)).toHaveLength(3);
  });

  it('finds lines, points and collections by the areas that they meet', async () => {
    const { index, find } = await openProductContext();
    const forms = {
      line: 'LINESTRING (10 45, 12 47)',
      lines: 'MULTILINESTRING ((10 45, 12 47), (30 0, 31 0))',
      points: 'MULTIPOINT ((11 46), (30 0))',
      mixed: 'GEOMETRYCOLLECTION (POINT (30 0), LINESTRING (10 45, 12 47))',
      height: 'POLYGON Z ((10 45 9, 12 45 9, 12 47 9, 10 45 9))',
      across: 'LINESTRING (179 45, -179 47)',
    };
    const records = Object.entries(forms).map(([Id, wkt]) => ({
      ...{ Id, Name: Id, Footprint: `geography'SRID=4326;${wkt}'` },
    }));
    await index(...created(...records));
    const ids = async (west: number, south: number, east: number, north: number) => {
      const ring = `${west} ${south},${east} ${south},${east} ${north},${west} ${north},${west} ${south}`;
      const filter = `OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((${ring}))')`;
      return (await find('Products', filter, { records: false })).map(({ row }) => row.productId);
    };
    expect((await ids(10.9, 45.9, 11.1, 46.1)).toSorted()).toEqual(
      ['height', 'line', 'lines', 'mixed', 'points'].toSorted(),
    );
    // Within the box of the lines.
    expect(await ids(11.5, 45.1, 11.9, 45.4)).toEqual(['height']);
    expect((await ids(29, -1, 32, 1)).toSorted()).toEqual(['lines', 'mixed', 'points']);
    expect(await ids(179.4, 44, 180, 48)).toEqual(['across']);
    expect(await ids(-180, 44, -179.5, 48)).toEqual(['across']);
    expect(await ids(0, 44, 5, 48)).toEqual([]);
  });

  it('finds names with a NUL or half a surrogate pair, and accepts these in queries', async () => {
    const { index, products } = await openProductContext();
    await index(...created({ Id: 'a', Name: 'one\0two' }, { Id: 'b', Name: 'half \ud83d end' }));
    const ids = async (filter: FilterTree) =>
      (await all(products.find({ entity: 'Products', filter }))).map(({ row }) => row.productId);
    expect(await ids(nameTree('endswith', 'two'))).toEqual(['a']);
    expect(await ids(nameTree('contains', 'e\0t'))).toEqual(['a']);
    expect(await ids(nameTree('contains', 'half \ud83d'))).toEqual(['b']);
  });

  it('finds names by a pattern', async () => {
    const { index, products } = await openProductContext();
    const names = [
      'S2A_MSIL2A_x',
      'S2A-MSIL2A_x',
      's2a_msil2a_x',
      'a*?[b]%_',
      'a\u{1f6f0}b',
      'a\0b',
    ];
    await index(...created(...names.map((Name, i) => ({ Id: `${i}`, Name })), { Id: 'none' }));
    const found = async (text: string) => {
      const filter: FilterTree = { node: 'text', function: 'like', field: 'Name', text };
      const rows = await all(products.find({ entity: 'Products', filter }));
      const matches = compileFilter(filter);
      const ids = rows.map(({ row }) => names[Number(row.productId)]).toReversed();
      expect(ids).toEqual(names.filter((Name) => matches(productView({ Name }))));
      return ids;
    };
    expect(await found('S2A_MSIL2A%')).toEqual(names.slice(0, 2));
    expect(await found('%\\_MSI%x')).toEqual(names.slice(0, 1));
    expect(await found('a_b')).toEqual(names.slice(4));
    expect(await found('a*?[b]\\%\\_')).toEqual(names.slice(3, 4));
    expect(await found('%[%]%')).toEqual(names.slice(3, 4));
    expect(await found('_%')).toEqual(names);
  });

  it('finds each product once, page by page in both directions', async () => {
    const { index, find, products } = await openProductContext();
    const ids = Array.from({ length: 10 }, (_, i) => `product-${i}`);
    await index(...created(...ids.map((Id) => cloudy(Id, 5))));
    for (const direction of ['asc', 'desc'] as const) {
      const query = { entity: 'Products', order: { by: 'received', direction } } as const;
      const found: string[] = [];
      let after: ReturnType<typeof products.keyOf> | undefined;
      for (let pages = 0; pages < 4; pages += 1) {
        const page = await find('Products', "contains(Name,'product')", {
          ...query,
          after,
          limit: 3,
        });
        found.push(...page.map(({ row }) => row.productId));
        const last = page.at(-1);
        if (last !== undefined) after = products.keyOf(last.row, query);
      }
      expect(found, direction).toEqual(direction === 'asc' ? ids : ids.toReversed());
    }
  });

  it('finds the products of a place in order, page by page while the index changes', async () => {
    const { index, find, products } = await openProductContext();
    const sensed = (Id: string, day: number) => ({
      ...{ Id, Name: Id, Footprint: "geography'SRID=4326;POINT (5 5)'" },
      ContentDate: { Start: new Date(Date.UTC(2026, 0, day)).toISOString() },
    });
    await index(...created(...[5, 3, 1, 4, 2, 6].map((day) => sensed(`day-${day}`, day))));
    const place =
      "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0))')";
    const order = { by: 'ContentDate/Start', direction: 'asc' } as const;
    const found: string[] = [];
    let after: ReturnType<typeof products.keyOf> | undefined;
    const readPage = async (limit: number) => {
      const page = await find('Products', place, { order, after, limit });
      found.push(...page.map(({ row }) => row.productId));
      const last = page.at(-1);
      if (last !== undefined) after = products.keyOf(last.row, { entity: 'Products', order });
    };
    await readPage(2);
    await readPage(1);
    await index(...created(sensed('new', 7)), { event: 'deleted', record: { Id: 'day-5' } });
    await readPage(1);
    await readPage(9);
    expect(found).toEqual(['day-1', 'day-2', 'day-3', 'day-4', 'day-6', 'new']);
  });

  it('finds far dates exactly, in order, page by page', async () => {
    const { index, find, products } = await openProductContext();
    const ends = [
      ...['0000-01-01T00:00:00.000Z', '0001-01-01T00:00:00.001Z', '1600-02-29T00:00:00.000Z'],
      ...['2026-05-01T00:00:00.000001Z', '2256-01-01T00:00:00.000Z', '3500-01-01T00:00:00.000Z'],
      ...['9999-12-31T23:59:59.998Z', '9999-12-31T23:59:59.999Z'],
    ];
    const records = ends.map((End) => ({ Id: End, ContentDate: { End } }));
    await index(...created(...records.toReversed()));
    const order = { by: 'ContentDate/End', direction: 'asc' } as const;
    const found = async (filter: string) =>
      (await find('Products', filter, { order })).map(({ row }) => row.productId);
    expect(await found('ContentDate/End ge 3500-01-01')).toEqual(ends.slice(5));
    expect(await found("ContentDate/End lt '1600-02-29T00:00:00.000Z'")).toEqual(ends.slice(0, 2));
    expect(await found('ContentDate/End gt 9999-12-31T23:59:59.998999Z')).toEqual(ends.slice(-1));
    expect(await found('ContentDate/End in (0000-01-01,3500-01-01)')).toEqual([ends[0], ends[5]]);
    const paged: (string | null)[] = [];
    let after: ReturnType<typeof products.keyOf> | undefined;
    for (;;) {
      const [next] = await find('Products', '', { order, limit: 1, after });
      if (next === undefined) break;
      paged.push(next.row.sensingEndUs === null ? null : formatDateUs(next.row.sensingEndUs));
      const query = { entity: 'Products', order } as const;
      const key = products.keyOf(next.row, query);
      after = readKey(writeKey(key, query), query) ?? undefined;
      expect(after).toEqual(key);
    }
    expect(paged).toEqual(ends);
    const [summary] = await products.collections();
    expect(formatDateUs(summary?.sensingEndUs ?? 0)).toBe(ends.at(-1));
  });

  it('rejects an order that products do not have', async () => {
    const { index, find } = await openProductContext();
    await index(...created(cloudy('a', 5)));
    const order = { by: 'DeletionDate', direction: 'asc' } as const;
    await expect(find('Products', '', { order })).rejects.toMatchObject({ code: 'invalid' });
    expect(await find('DeletedProducts', '', { order })).toEqual([]);
  });
});

describe('a condition that no product can fulfil', () => {
  const attribute = (name: string, test: string) =>
    parseFilter(
      `Attributes/OData.CSC.StringAttribute/any(a:a/Name eq '${name}' and a/Value ${test})`,
    ).tree;
  const texts = (field: string, ...values: string[]): FilterTree => ({
    node: 'in',
    field,
    literals: values.map((value) => ({ type: 'text', value })),
  });
  const conditions: Record<string, FilterTree> = {
    'ids with NUL': texts('Id', 'a\0', '\0', 'a\0b'),
    'half a surrogate pair in an id': texts('Id', '\ud83d'),
    'names with NUL': texts('Name', 'one\0two', 'a\0'),
    'a collection with NUL': texts('Collection/Name', 'S\0'),
    'an unknown attribute': attribute('nonsense', "eq 'x'"),
    'an attribute name in another case': attribute('CLOUDCOVER', "ne 'x'"),
    'one unknown attribute or another': {
      node: 'or',
      terms: [attribute('no', "eq 'x'"), attribute('nothing', "ge ''")],
    },
    'a number as an id': { node: 'in', field: 'Id', literals: [{ type: 'number', value: 5 }] },
    'a text that is no date': {
      ...{ node: 'comparison', field: 'ContentDate/Start', operator: 'ge' },
      literal: { type: 'text', value: 'yesterday' },
    },
  };

  it.each(Object.entries(conditions))('is answered without any record: %s', async (_, filter) => {
    const { index, products } = await openProductContext();
    await index(...created(cloudy('a', 5), cloudy('b', 6)));
    for (const entity of ['Products', 'DeletedProducts'] as const) {
      const { narrowedBy, byRecords } = await products.explain({ entity, filter });
      expect(byRecords.length === 0 || narrowedBy?.endsWith(': 0 candidates')).toBe(true);
      expect(await all(products.find({ entity, filter }))).toEqual([]);
      expect(await products.count({ entity, filter })).toBe(0);
    }
    const others = await all(
      products.find({ entity: 'Products', filter: { node: 'not', term: filter } }),
    );
    expect(others).toHaveLength(2);
  });
});

it('a count that takes too long is a minimum', async () => {
  const { dataDir, index } = await openProductContext();
  await index(...created(...Array.from({ length: 20 }, (_, i) => cloudy(`p${i}`, i))));
  const database = openProductsForReading(dataDir);
  const log = createReaderConnection(dataDir);
  onTestFinished(() => void [database, log].map((one) => one.close()));
  const reading = {
    ...{ index: database, names: createKnownNames(database), log: log.database() },
    call: { pause: async () => {}, signal: new AbortController().signal },
  };
  for (const text of ['OriginDate lt 2030-01-01', "contains(Name,'S2A')", wholeGlobe]) {
    const selection = { entity: 'Products', filter: parseFilter(text).tree } as const;
    const { count } = await countProducts(reading, selection);
    expect(await countProducts(reading, selection, -1)).toEqual({ count: 0, isMinimum: true });
    expect(await countProducts(reading, selection, 60_000)).toEqual({ count, isMinimum: false });
  }
});

describe('an aborted query', () => {
  it('ends, whether rows are read or counted, and the next query is answered', async () => {
    const { index, products } = await openProductContext();
    const records = Array.from({ length: 5_000 }, (_, i) => ({ Id: `p${i}`, Name: `p${i}` }));
    await index(...created(...records));
    // Only records can answer it, and none matches.
    const filter = parseFilter('OriginDate gt 2030-01-01').tree;
    const stop = new AbortController();
    const counted = products.count({ entity: 'Products', filter }, stop.signal);
    const listed = all(products.find({ entity: 'Products', filter }, stop.signal));
    stop.abort();
    await expect(counted).rejects.toMatchObject({ code: 'cancelled' });
    await expect(listed).rejects.toMatchObject({ code: 'cancelled' });
    await expect(products.count({ entity: 'Products', filter }, stop.signal)).rejects.toThrow();
    expect(await products.count({ entity: 'Products', filter: null })).toBe(records.length);
  });
});

it('a query by id passes scans: it waits for a step of each, not for their end', async () => {
  const { index, find, products } = await openProductContext();
  const records = Array.from({ length: 5_000 }, (_, i) => ({ Id: `p${i}`, Name: `p${i}` }));
  await index(...created(...records));
  const filter = parseFilter('OriginDate gt 2030-01-01').tree;
  const ended: string[] = [];
  const scans = [
    ...[1, 2].map(() => all(products.find({ entity: 'Products', filter }))),
    products.count({ entity: 'Products', filter }),
    products.facets({ entity: 'Products', filter }),
  ].map((scan: Promise<unknown>) => scan.then(() => ended.push('scan')));
  const found = await find('Products', "Id eq 'p4000'");
  expect([found.length, ended]).toEqual([1, []]);
  await Promise.all(scans);
  expect(ended).toHaveLength(4);
});

describe('the windows of a walk', () => {
  it('contain each id once, newest first', () => {
    for (const before of [1, 2, 7, 50, 1_000, 20_001]) {
      const ids = [...windowsBelow(before, 3)].flatMap((window) =>
        Array.from({ length: window.before - window.after - 1 }, (_, i) => window.before - 1 - i),
      );
      expect(ids).toEqual(Array.from({ length: before - 1 }, (_, i) => before - 1 - i));
    }
  });
});
