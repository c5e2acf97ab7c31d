/** Orders of one and two fields, with equal and absent values, page by page. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseFilter } from '../../../../src/filter/parse.ts';
import {
  type FoundProduct,
  orderTerms,
  type ProductQuery,
} from '../../../../src/filter/products.ts';
import { keyComparison } from '../../../helpers/product-order.ts';
import { times } from '../../../helpers/thorough.ts';
import { created, inPages, openProductContext, type TestRecord } from './product-context.ts';

/** Few different values, so that many products are equal; each value is sometimes absent. */
function recordOf(i: number): TestRecord {
  const some = (name: string, seed: number, value: unknown) =>
    (i * seed) % 5 === 0 ? {} : { [name]: value };
  const day = (seed: number) => new Date(Date.UTC(2026, 0, 1 + ((i * seed) % 4))).toISOString();
  const [Start, End] = [day(3), day(7)];
  return {
    Id: `0000000${i % 2 === 0 ? 'a' : 'B'}-0000-4000-8000-${String((i * 37) % 100).padStart(12, '0')}`,
    ...some('Name', 11, ['S1A_Z', 's1a_z', 'S1Aé', 'S1A\u{1f6f0}', 'S1A\uffff'][i % 5]),
    ...some('ContentDate', 3, { Start, ...some('End', 7, End) }),
    ...some('PublicationDate', 2, day(2)),
    ...some('ModificationDate', 4, day(5)),
    Attributes: (i * 13) % 3 === 0 ? [] : [{ Name: 'cloudCover', Value: ((i * 7) % 4) / 3 }],
  };
}

const term = fc.record({
  by: fc.constantFrom(
    ...([
      'received',
      'datetime',
      'ContentDate/Start',
      'ContentDate/End',
      'PublicationDate',
    ] as const),
    ...(['ModificationDate', 'Name', 'Id', 'cloudCover'] as const),
  ),
  direction: fc.constantFrom('asc' as const, 'desc' as const),
});

it('pages joined are the sorted whole, in both directions, for each order of one or two fields', async () => {
  const { index, products } = await openProductContext();
  await index(...created(...Array.from({ length: 60 }, (_, i) => recordOf(i))));
  const filters = [null, parseFilter("contains(Name,'1A')").tree, parseFilter("Name ne 'x'").tree];
  const property = fc.asyncProperty(
    fc.array(term, { minLength: 1, maxLength: 2 }),
    fc.constantFrom(...filters),
    fc.integer({ min: 1, max: 25 }),
    async (order, filter, limit) => {
      const query: ProductQuery = { entity: 'Products', filter, order, records: false };
      const keyOf = ({ row }: FoundProduct) => products.keyOf(row, query);
      const whole = (await Array.fromAsync(products.find({ ...query, order: [] }))).toSorted(
        (a, b) => keyComparison(query)(keyed(a), keyed(b)),
      );
      function keyed(product: FoundProduct) {
        const { values, position } = keyOf(product);
        // Ids are case-insensitive.
        const isId = orderTerms(query).map(({ by }) => by === 'Id');
        return {
          values: values.map((one, i) => (isId[i] ? String(one).toLowerCase() : one)),
          position,
        };
      }
      const read = async (one: ProductQuery) =>
        (await inPages(products, { ...one, limit })).map(({ row }) => row.position);
      const positions = whole.map(({ row }) => row.position);
      expect(await read(query)).toEqual(positions);
      const opposite = { asc: 'desc', desc: 'asc' } as const;
      const reversed = {
        ...query,
        order: order.map(({ by, direction }) => ({ by, direction: opposite[direction] })),
      };
      expect(await read(reversed)).toEqual(positions.toReversed());
    },
  );
  await fc.assert(property, { numRuns: times(30, 600) });
}, 60_000);

it('a page after a row that moved in the order has the rows after the old place', async () => {
  const { index, products } = await openProductContext();
  const day = (date: number) => new Date(Date.UTC(2026, 0, date)).toISOString();
  const record = (i: number, date = i): TestRecord => ({
    Id: `0000000a-0000-4000-8000-${String(i).padStart(12, '0')}`,
    Name: `S1A_${i}`,
    ModificationDate: day(date),
  });
  await index(...created(...[1, 2, 3, 4, 5, 6].map((i) => record(i))));
  const query: ProductQuery = {
    ...{
      entity: 'Products',
      filter: parseFilter("Collection/Name eq 'SENTINEL-1'").tree,
      records: false,
    },
    order: { by: 'ModificationDate', direction: 'asc' },
  };
  const namesOf = (found: FoundProduct[]) => found.map(({ row }) => row.productName);
  const first = await Array.fromAsync(products.find({ ...query, limit: 3 }));
  expect(namesOf(first)).toEqual(['S1A_1', 'S1A_2', 'S1A_3']);
  const after = products.keyOf(first.at(-1)?.row ?? expect.fail(), query);
  await index({ event: 'modified', record: record(3, 20) });
  const next = await Array.fromAsync(products.find({ ...query, limit: 9, after }));
  expect(namesOf(next)).toEqual(['S1A_4', 'S1A_5', 'S1A_6', 'S1A_3']);
});
