/** The index finds what evaluating every record finds, for any filter. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { entities } from '../../../src/domain/filter-tree.ts';
import { compileFilter } from '../../../src/filter/evaluate.ts';
import { productView } from '../../../src/filter/product-view.ts';
import { times } from '../../helpers/thorough.ts';
import { arbitrarySearch } from './arbitrary-search.ts';
import { generatedRecords, oddRecords, realRecords } from './product-records.ts';
import { all, openProductWorld, type TestRecord } from './product-world.ts';

const deletion = (record: TestRecord, i: number): TestRecord => {
  const { Online: _, PublicationDate: __, ModificationDate: ___, ...rest } = record;
  const causes = ['Duplicated product', 'Other', 'Reprocessed product'];
  const DeletionDate = new Date(Date.UTC(2026, 5, 1) + i * 3_600_000).toISOString();
  return { ...rest, DeletionDate, DeletionCause: causes[i % causes.length] };
};

const sources = {
  generated: () => [...generatedRecords(25, 7), ...oddRecords],
  real: () => realRecords(4),
};

const filters = times(1_500, 5_000);

describe('searching the index', () => {
  for (const [name, make] of Object.entries(sources)) {
    it(`agrees with evaluating each of the ${name} records, for ${filters} random filters`, async (context) => {
      const alive = make();
      if (alive.length === 0) context.skip('the folder ../shared/fixtures is not there');
      const gone = alive.filter((_, i) => i % 3 === 0).map(deletion);
      const world = await openProductWorld();
      await world.index(
        ...alive.map((record) => ({ event: 'created', record })),
        ...gone.map((record) => ({ event: 'deleted', record })),
      );
      const goneIds = new Set(gone.map(({ Id }) => Id));
      const views = {
        Products: alive.filter(({ Id }) => !goneIds.has(Id)).map(productView),
        DeletedProducts: gone.map(productView),
      };
      let matched = 0;
      const property = fc.asyncProperty(
        arbitrarySearch([...alive, ...gone]),
        fc.constantFrom(...entities),
        async (filter, entity) => {
          const wanted = views[entity].filter(compileFilter(filter)).map((view) => view.text('Id'));
          const found = await all(world.products.find({ entity, filter, records: false }));
          expect(found.map(({ row }) => row.productId).toSorted()).toEqual(wanted.toSorted());
          expect(await world.products.count({ entity, filter })).toBe(wanted.length);
          matched += wanted.length;
        },
      );
      await fc.assert(property, { numRuns: filters });
      expect(matched).toBeGreaterThan(4 * filters);
    }, 18_000);
  }
});
