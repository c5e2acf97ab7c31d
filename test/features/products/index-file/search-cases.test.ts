/** Cases in which a careless index would find other products than evaluation. */

import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { hourUs } from '../../../../src/core/terms/dates.ts';
import { openProductsForReading } from '../../../../src/features/products/index-file/product-file.ts';
import { countProducts } from '../../../../src/features/products/index-file/product-queries.ts';
import { compileFilter } from '../../../../src/filter/evaluate.ts';
import type { FilterTree } from '../../../../src/filter/filter-tree.ts';
import { parseFilter } from '../../../../src/filter/parse.ts';
import { isTooOld } from '../../../../src/filter/product-age.ts';
import { productView } from '../../../../src/filter/product-view.ts';
import { createReaderConnection } from '../../../../src/store/engine/database.ts';
import { expectRefused } from '../../../helpers/refusals.ts';
import { created, inPages, openProductContext, type TestRecord } from './product-context.ts';

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
  it('finds the types of a group, in hundreds of conditions', async () => {
    const { index, find } = await openProductContext();
    const types = ['IW_GRDH_1S', 'EW_GRDM_1S', 'IW_GRDH_1S-COG', 'EW_RAW__0S', 'GRD', 'RAW', null];
    const typed = types.map((Value) => ({
      Id: String(Value),
      Attributes: [{ Name: 'productType', Value, ValueType: 'String' }],
    }));
    await index(...created(...typed));
    const grd =
      "Attributes/OData.CSC.StringAttribute/any(a:a/Name eq 'productType' and a/Value eq 'GRD')";
    const many = Array(900).fill(grd).join(' or ');
    const mixed = Array(400).fill(`(${grd} and Online ne true)`).join(' or ');
    for (const filter of [grd, many, mixed]) {
      const found = await find('Products', filter, { records: false });
      expect(found.map(({ row }) => row.productId)).toEqual(['GRD', 'EW_GRDM_1S', 'IW_GRDH_1S']);
    }
  });

  it('finds names with a NUL or half a surrogate pair, and accepts these in queries', async () => {
    const { index, products } = await openProductContext();
    await index(...created({ Id: 'a', Name: 'one\0two' }, { Id: 'b', Name: 'half \ud83d end' }));
    const ids = async (filter: FilterTree) =>
      (await Array.fromAsync(products.find({ entity: 'Products', filter }))).map(
        ({ row }) => row.productId,
      );
    expect(await ids(nameTree('endswith', 'two'))).toEqual(['a']);
    expect(await ids(nameTree('contains', 'e\0t'))).toEqual(['a']);
    expect(await ids(nameTree('contains', 'half \ud83d'))).toEqual(['b']);
  });

  it('finds, counts and pages the products that are not too old, as evaluation does', async () => {
    const { index, products, find } = await openProductContext();
    const random = fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined });
    const at = (hours: number | undefined) =>
      hours === undefined ? undefined : new Date(Date.UTC(2026, 0, 1, hours)).toISOString();
    const records = fc
      .sample(fc.tuple(random, random, random), { numRuns: 60, seed: 1 })
      .map((hours, i) => {
        const [Start, End, PublicationDate] = hours.map(at);
        return { Id: `p${i}`, Name: `S2A_${i}`, ContentDate: { Start, End }, PublicationDate };
      });
    await index(...created(...records));
    for (const maxAgeUs of [0, hourUs, 4 * hourUs, 9 * hourUs]) {
      const young = records.filter((one) => !isTooOld(productView(one), maxAgeUs));
      const ids = young.map(({ Id }) => Id).toReversed();
      const query = { entity: 'Products', filter: null, maxAgeUs, limit: 7 } as const;
      const found = await inPages(products, query);
      expect(found.map(({ row }) => row.productId)).toEqual(ids);
      expect(await products.count(query)).toBe(ids.length);
      const filtered = await find('Products', "endswith(Name,'1')", { maxAgeUs });
      expect(filtered.map(({ row }) => row.productId)).toEqual(
        ids.filter((id) => id.endsWith('1')),
      );
    }
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
    for (const text of ['S2A_MSIL2A%', '%\\_MSI%x', 'a_b', 'a*?[b]\\%\\_', '%[%]%', '_%']) {
      const filter: FilterTree = { node: 'text', function: 'like', field: 'Name', text };
      const rows = await Array.fromAsync(products.find({ entity: 'Products', filter }));
      const matches = compileFilter(filter);
      const ids = rows.map(({ row }) => names[Number(row.productId)]).toReversed();
      expect(ids).toEqual(names.filter((Name) => matches(productView({ Name }))));
      expect(ids).not.toEqual([]);
    }
  });

  it('finds the products of a place by the newest cloud cover, whatever its value', async () => {
    const { index, find } = await openProductContext();
    const values = [-3, 0, 0.4, 1, 49.9, 50, 99.9, 100, 100.5, 1e300];
    const recordsOf = (day: number) =>
      values.map((_, i) => ({
        ...cloudy(`p${i}`, values[(i + 4 * day) % values.length] ?? 0),
        ModificationDate: new Date(Date.UTC(2026, 0, day)).toISOString(),
        // Some cross the antimeridian.
        Footprint: `geography'SRID=4326;POLYGON ((170 2, ${175 + i} 2, ${175 + i} 4, 170 2))'`,
      }));
    for (const records of [1, 2].map(recordsOf)) {
      await index(...records.map((record) => ({ event: 'modified', record })));
      for (const condition of values.flatMap((value) => [
        `le ${value}`,
        `ge ${value}`,
        `eq ${value}`,
      ])) {
        const text = `${wholeGlobe} and Attributes/OData.CSC.DoubleAttribute/any(a:a/Name eq 'cloudCover' and a/Value ${condition})`;
        const matches = compileFilter(parseFilter(text).tree);
        const expected = records.filter((record) => matches(productView(record)));
        const found = await find('Products', text, { records: false });
        const ids = found.map(({ row }) => row.productId);
        expect(ids.toReversed(), condition).toEqual(expected.map(({ Id }) => Id));
      }
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
    const first = await find('Products', place, { order, limit: 3 });
    const last = first.at(-1) ?? expect.fail();
    await index(...created(sensed('new', 7)), { event: 'deleted', record: { Id: 'day-5' } });
    const after = products.keyOf(last.row, { entity: 'Products', order });
    const rest = await find('Products', place, { order, after, limit: 9 });
    expect([...first, ...rest].map(({ row }) => row.productId)).toEqual([
      ...['day-1', 'day-2', 'day-3', 'day-4', 'day-6', 'new'],
    ]);
  });
});

it('a count that takes too long is a minimum', async () => {
  const { dataDir, index } = await openProductContext();
  await index(...created(...Array.from({ length: 20 }, (_, i) => cloudy(`p${i}`, i))));
  const database = openProductsForReading(dataDir);
  const log = createReaderConnection(dataDir);
  onTestFinished(() => void [database, log].map((one) => one.close()));
  const reading = {
    ...{ index: database, log: log.database() },
    call: { pause: async () => {}, signal: new AbortController().signal },
  };
  for (const text of ['OriginDate lt 2030-01-01', "contains(Name,'S2A')", wholeGlobe]) {
    const selection = { entity: 'Products', filter: parseFilter(text).tree } as const;
    const { count } = await countProducts(reading, selection);
    expect(await countProducts(reading, selection, -1)).toEqual({ count: 0, isMinimum: true });
    expect(await countProducts(reading, selection, 60_000)).toEqual({ count, isMinimum: false });
  }
});

it('a query by id passes scans: it waits for a step of each, not for their end; scans can be aborted', async () => {
  const { index, find, products } = await openProductContext();
  const records = Array.from({ length: 5_000 }, (_, i) => ({ Id: `p${i}`, Name: `p${i}` }));
  await index(...created(...records));
  // Only records can answer it, and none matches.
  const query = {
    entity: 'Products',
    filter: parseFilter('OriginDate gt 2030-01-01').tree,
  } as const;
  const scansOf = (signal?: AbortSignal): Promise<unknown>[] => [
    Array.fromAsync(products.find(query, signal)),
    products.count(query, signal),
    products.facets(query, signal),
  ];
  const ended: string[] = [];
  const scans = scansOf().map((scan) => scan.then(() => ended.push('scan')));
  const found = await find('Products', "Id eq 'p4000'");
  expect([found.length, ended]).toEqual([1, []]);
  await Promise.all(scans);
  const stop = new AbortController();
  const aborted = scansOf(stop.signal);
  stop.abort();
  for (const one of aborted) await expectRefused(one, 'cancelled');
  await expect(products.count(query, stop.signal)).rejects.toThrow();
  expect(await products.count({ entity: 'Products', filter: null })).toBe(records.length);
});
