/** With more products than are sorted at once, searches walk in windows and along orders. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileFilter } from '../../../../src/filter/evaluate.ts';
import type { Entity, FilterTree } from '../../../../src/filter/filter-tree.ts';
import { type OrderTerm, productOrders } from '../../../../src/filter/product-order.ts';
import { type ProductView, productView } from '../../../../src/filter/product-view.ts';
import {
  all,
  created,
  openProductContext,
  type ProductContext,
  type TestRecord,
} from './product-context.ts';

const count = 12_000;

/** Small records in rows around the globe; some lack a place, a time, or both. */
function smallRecord(i: number): TestRecord {
  const [west, south] = [((i * 7) % 359) - 179.5, ((i * 3) % 170) - 85];
  const ring = `${west} ${south}, ${west + 0.5} ${south}, ${west + 0.5} ${south + 1}, ${west} ${south}`;
  const start = new Date(Date.UTC(2026, 0, 1) + ((i * 37) % count) * 60_000).toISOString();
  return {
    Id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
    Name: `S2A_MSIL${i % 2 === 0 ? '1C' : '2A'}_${String(i % 100).padStart(3, '0')}`,
    ...(i % 11 === 0 ? {} : { ContentDate: { Start: start, End: start } }),
    ...(i % 13 === 0 ? {} : { Footprint: `geography'SRID=4326;POLYGON ((${ring}))'` }),
    Attributes: [
      { Name: 'cloudCover', Value: i % 101, ValueType: 'Double' },
      // Not a column of the index.
      { Name: 'sliceNumber', Value: i % 4, ValueType: 'Integer' },
    ],
  };
}

const text = (part: string): FilterTree => ({
  node: 'text',
  function: 'contains',
  field: 'Name',
  text: part,
});
const cloudBelow = (value: number): FilterTree => ({
  node: 'attribute',
  kind: 'Double',
  name: 'cloudCover',
  valueKind: 'Double',
  operator: 'lt',
  literal: { type: 'number', value },
});
const sensedBefore = (minutes: number): FilterTree => ({
  node: 'comparison',
  field: 'ContentDate/Start',
  operator: 'lt',
  literal: { type: 'date', us: (Date.UTC(2026, 0, 1) + minutes * 60_000) * 1000 },
});
const inside = (west: number, width: number): FilterTree => {
  const [east, south, north] = [Math.min(180, west + width), -60, 75];
  const ring = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ] as const;
  const geometry = { type: 'Polygon', coordinates: [ring] } as const;
  return { node: 'intersects', argument: 'area', srid: 4326, geometry };
};

const leaf = fc.oneof(
  fc.constantFrom('MSIL', 'L1C', '2A_0', '_077').map(text),
  fc.integer({ min: 0, max: 101 }).map(cloudBelow),
  fc.integer({ min: 0, max: count }).map(sensedBefore),
  fc
    .tuple(fc.integer({ min: -180, max: 0 }), fc.constantFrom(1, 30, 179))
    .map(([w, e]) => inside(w, e)),
);
const filter = fc
  .array(leaf, { minLength: 1, maxLength: 3 })
  .map(
    (terms): FilterTree =>
      terms[1] === undefined ? (terms[0] ?? text('')) : { node: 'and', terms },
  );
const order = fc.record({
  by: fc.constantFrom(...productOrders.filter((one) => one !== 'DeletionDate')),
  direction: fc.constantFrom('asc' as const, 'desc' as const),
});

describe('searching 12,000 products', () => {
  it('finds the same as evaluating each, in each order, page by page from the end of the last page', async () => {
    const records = Array.from({ length: count }, (_, i) => smallRecord(i));
    const context = await openProductContext();
    await context.index(...created(...records));
    const views = records.map((record, i) => ({ view: productView(record), position: i + 1 }));
    // Crosses the edge of the first window, where every product matches.
    const newestFirst = { by: 'received', direction: 'desc' } as const;
    const everything = { filter: text('MSIL'), order: newestFirst, limit: count + 1 };
    expect(await inPages(context, everything)).toEqual(
      views.map(({ position }) => position).toReversed(),
    );
    // A page crosses the end of the scan, after which all matches are sorted; some have no time, and none is published.
    const clear: FilterTree = { node: 'and', terms: [text('MSIL'), cloudBelow(1)] };
    for (const by of ['ContentDate/Start', 'PublicationDate'] as const) {
      for (const direction of ['asc', 'desc'] as const) {
        const expected = ordered(views, { by, direction }).filter(({ view }) =>
          compileFilter(clear)(view),
        );
        expect(expected.length).toBeGreaterThan(100);
        const query = { filter: clear, order: { by, direction }, limit: 200 };
        expect(await inPages(context, query)).toEqual(expected.map(({ position }) => position));
        // The last row of the scan matches, too.
        const among = { entity: 'Products', records: false, filter: text('MSIL') } as const;
        const middle = { ...among, order: query.order, skip: 8_100, limit: 200 };
        const page = await all(context.products.find(middle));
        expect(page.map(({ row }) => row.position)).toEqual(
          ordered(views, query.order)
            .slice(8_100, 8_300)
            .map(({ position }) => position),
        );
      }
    }
    const property = fc.asyncProperty(
      filter,
      order,
      fc.integer({ min: 200, max: 5_000 }),
      async (tree, by, limit) => {
        const test = compileFilter(tree);
        const expected = ordered(views, by).filter(({ view }) => test(view));
        const found = await inPages(context, { filter: tree, order: by, limit });
        expect(found).toEqual(expected.map(({ position }) => position));
        expect(await context.products.count({ entity: 'Products', filter: tree })).toBe(
          expected.length,
        );
      },
    );
    await fc.assert(property, { numRuns: 25 });
    const { products } = context;
    const quick = (tree: FilterTree | null, entity: Entity = 'Products') =>
      products.quickCount({ entity, filter: tree });
    expect(await quick(null)).toEqual({ count, isMinimum: false });
    expect(await quick(null, 'DeletedProducts')).toEqual({ count: 0, isMinimum: false });
    // Three of four, by their records.
    const slice: FilterTree = { ...cloudBelow(3), name: 'sliceNumber' } as FilterTree;
    const few = { node: 'and', terms: [text('_077'), slice] } as const;
    expect(await quick(few)).toEqual({ count: count / 100, isMinimum: false });
    expect(await products.count({ entity: 'Products', filter: slice })).toBe((count * 3) / 4);
    const most = await quick(slice);
    expect(most.count).toBeLessThanOrEqual((count * 3) / 4);
    expect(most.isMinimum).toBe(most.count < (count * 3) / 4);
  }, 60_000);
});

interface Placed {
  view: ProductView;
  position: number;
}

/** Sorts by a field, in which no value is the smallest, and then by position. */
function ordered(views: readonly Placed[], { by, direction }: OrderTerm): Placed[] {
  const sign = direction === 'asc' ? 1 : -1;
  const value = ({ view, position }: Placed) =>
    by === 'received' ? position : (view.dateUs(by) ?? -Infinity);
  return views.toSorted((a, b) => sign * (compare(value(a), value(b)) || a.position - b.position));
}

const compare = (a: number, b: number) => (a === b ? 0 : a < b ? -1 : 1);

async function inPages(
  { products }: ProductContext,
  query: Omit<Parameters<ProductContext['products']['find']>[0], 'entity'> & { limit: number },
): Promise<number[]> {
  const positions: number[] = [];
  const asked = { ...query, entity: 'Products', records: false } as const;
  for (let after = asked.after; ; ) {
    const page = await all(products.find({ ...asked, after }));
    positions.push(...page.map(({ row }) => row.position));
    const last = page.at(-1);
    if (last === undefined || page.length < query.limit) return positions;
    after = products.keyOf(last.row, asked);
  }
}
