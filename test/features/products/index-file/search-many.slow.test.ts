/** With more products than are sorted at once, searches walk in windows and along orders. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { compileFilter } from '../../../../src/filter/evaluate.ts';
import { parseFilter } from '../../../../src/filter/parse.ts';
import { productView } from '../../../../src/filter/product-view.ts';
import {
  type OrderTerm,
  type ProductQuery,
  productOrders,
} from '../../../../src/filter/products.ts';
import { created, inPages, openProductContext, type TestRecord } from './product-context.ts';

const count = 12_000;
const minute = (number: number) => new Date(Date.UTC(2026, 0, 1) + number * 60_000).toISOString();

/** Small records in rows around the globe; some lack a place, a time, or both. */
function smallRecord(i: number): TestRecord {
  const [west, south] = [((i * 7) % 359) - 179.5, ((i * 3) % 170) - 85];
  const ring = `${west} ${south}, ${west + 0.5} ${south}, ${west + 0.5} ${south + 1}, ${west} ${south}`;
  const start = minute((i * 37) % count);
  return {
    Id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
    Name: `S2A_MSIL${i % 2 === 0 ? '1C' : '2A'}_${String(i % 100).padStart(3, '0')}`,
    ...(i % 11 === 0 ? {} : { ContentDate: { Start: start, End: start } }),
    ...(i % 13 === 0 ? {} : { Footprint: `geography'SRID=4326;POLYGON ((${ring}))'` }),
    Attributes: [{ Name: 'cloudCover', Value: i % 101, ValueType: 'Double' }],
  };
}

const clearerThan = (value: number) =>
  `Attributes/OData.CSC.DoubleAttribute/any(a:a/Name eq 'cloudCover' and a/Value lt ${value})`;
const inside = (west: number, width: number) => {
  const east = Math.min(180, west + width);
  return `Intersects(area=geography'SRID=4326;POLYGON((${west} -60,${east} -60,${east} 75,${west} 75,${west} -60))')`;
};
const leaf = fc.oneof(
  fc.constantFrom('MSIL', 'L1C', '2A_0', '_077').map((part) => `contains(Name,'${part}')`),
  fc.integer({ min: 0, max: 101 }).map(clearerThan),
  fc.integer({ min: 0, max: count }).map((number) => `ContentDate/Start lt ${minute(number)}`),
  fc
    .tuple(fc.integer({ min: -180, max: 0 }), fc.constantFrom(1, 30, 179))
    .map(([x, width]) => inside(x, width)),
);
const someFilter = fc
  .array(leaf, { minLength: 1, maxLength: 3 })
  .map((terms) => terms.join(' and '));
const someOrder = fc.record({
  by: fc.constantFrom(...productOrders.filter((one) => one !== 'DeletionDate')),
  direction: fc.constantFrom('asc' as const, 'desc' as const),
});

it('a search of 12,000 products finds the same as evaluating each, in each order, page by page', async () => {
  const records = Array.from({ length: count }, (_, i) => smallRecord(i));
  const { index, products } = await openProductContext();
  await index(...created(...records));
  const views = records.map((record, i) => ({ view: productView(record), position: i + 1 }));

  /** Positions by evaluation, sorted by a field, in which no value is the smallest, and then by position. */
  const expectedOf = (filter: string, { by, direction }: OrderTerm) => {
    const matches = compileFilter(parseFilter(filter).tree);
    const value = ({ view, position }: (typeof views)[number]) =>
      by === 'received' ? position : (view.dateUs(by) ?? Number.NEGATIVE_INFINITY);
    const sorted = views
      .filter(({ view }) => matches(view))
      .map((one) => [value(one), one.position] as const)
      .sort(([a, i], [b, j]) => (a === b ? i - j : a < b ? -1 : 1))
      .map(([, position]) => position);
    return direction === 'asc' ? sorted : sorted.reverse();
  };
  const queryOf = (filter: string, order: OrderTerm): ProductQuery => ({
    ...{ entity: 'Products', records: false, filter: parseFilter(filter).tree, order },
  });
  const expectSame = async (filter: string, order: OrderTerm, limit: number) => {
    const found = await inPages(products, { ...queryOf(filter, order), limit });
    const expected = expectedOf(filter, order);
    expect(found.map(({ row }) => row.position)).toEqual(expected);
    return expected.length;
  };

  // Crosses the edge of the first window, where every product matches.
  const every = "contains(Name,'MSIL')";
  await expectSame(every, { by: 'received', direction: 'desc' }, count + 1);
  // A page crosses the end of the scan, after which all matches are sorted; some have no time, and none is published.
  for (const by of ['ContentDate/Start', 'PublicationDate'] as const) {
    for (const direction of ['asc', 'desc'] as const) {
      const order = { by, direction };
      const clear = `${every} and ${clearerThan(1)}`;
      expect(await expectSame(clear, order, 200)).toBeGreaterThan(100);
      // The last row of the scan matches, too.
      const middle = { ...queryOf(every, order), skip: 8_100, limit: 200 };
      const page = await Array.fromAsync(products.find(middle));
      expect(page.map(({ row }) => row.position)).toEqual(
        expectedOf(every, order).slice(8_100, 8_300),
      );
    }
  }
  const limits = fc.integer({ min: 200, max: 5_000 });
  const property = fc.asyncProperty(someFilter, someOrder, limits, async (filter, order, limit) => {
    const expected = await expectSame(filter, order, limit);
    const selection = { entity: 'Products', filter: parseFilter(filter).tree } as const;
    expect(await products.count(selection)).toBe(expected);
  });
  await fc.assert(property, { numRuns: 25 });
}, 60_000);
