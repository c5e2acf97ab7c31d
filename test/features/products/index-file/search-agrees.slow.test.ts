/** The index finds the same products as evaluating every record, for any filter. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readDateUs } from '../../../../src/core/terms/dates.ts';
import { compileFilter } from '../../../../src/filter/evaluate.ts';
import { entities, type Geometry } from '../../../../src/filter/filter-tree.ts';
import { productView } from '../../../../src/filter/product-view.ts';
import { arbitraryFilter, type FilterWords } from '../../../filter/arbitrary-filter.ts';
import { box, point, polygon } from '../../../filter/geometry/places.ts';
import { times } from '../../../helpers/thorough.ts';
import {
  created,
  generatedRecords,
  oddRecords,
  openProductContext,
  realRecords,
  type TestRecord,
} from './product-context.ts';

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

const filters = times(1_000, 5_000);

describe('searching the index', () => {
  for (const [name, make] of Object.entries(sources)) {
    it(`agrees with evaluating each of the ${name} records, for ${filters} random filters`, async (context) => {
      const alive = make();
      if (alive.length === 0) context.skip('the folder ../shared/fixtures is not there');
      const gone = alive.filter((_, i) => i % 3 === 0).map(deletion);
      const productContext = await openProductContext();
      await productContext.index(
        ...created(...alive),
        ...gone.map((record) => ({ event: 'deleted', record })),
      );
      const goneIds = new Set(gone.map(({ Id }) => Id));
      const views = {
        Products: alive.filter(({ Id }) => !goneIds.has(Id)).map(productView),
        DeletedProducts: gone.map(productView),
      };
      let matched = 0;
      const words = wordsOf([...alive, ...gone]);
      const search = fc
        .constantFrom(...entities)
        .chain((entity) => fc.tuple(fc.constant(entity), arbitraryFilter(entity, words)));
      const property = fc.asyncProperty(search, async ([entity, filter]) => {
        const expected = views[entity].filter(compileFilter(filter)).map((view) => view.text('Id'));
        const found = await Array.fromAsync(
          productContext.products.find({ entity, filter, records: false }),
        );
        expect(found.map(({ row }) => row.productId).toSorted()).toEqual(expected.toSorted());
        expect(await productContext.products.count({ entity, filter })).toBe(expected.length);
        matched += expected.length;
      });
      await fc.assert(property, { numRuns: filters });
      expect(matched).toBeGreaterThan(4 * filters);
    }, 18_000);
  }
});

const textFields = ['Id', 'Name', 'Collection/Name', 'DeletionCause'];
const dateFields = ['ContentDate/Start', 'ContentDate/End', 'PublicationDate', 'DeletionDate'];

/** The values of the records, so that each filter matches some of them. */
function wordsOf(records: readonly TestRecord[]): FilterWords {
  const views = records.map(productView);
  const stored = records.flatMap(({ Attributes }) =>
    Array.isArray(Attributes) ? (Attributes as { Name: string; Value: unknown }[]) : [],
  );
  const columns = ['cloudCover', 'orbitNumber', 'relativeOrbitNumber', 'productType', 'tileId'];
  const asked = stored.filter(({ Name }, i) => columns.includes(Name) || i % 3 === 0);
  const byName = <Value>(list: readonly (readonly [string, Value])[]) =>
    Object.fromEntries(
      [...Map.groupBy(list, ([name]) => name)].map(([name, all]) => [
        name,
        all.map((one) => one[1]),
      ]),
    );
  return {
    attributes: asked.map(({ Name: name, Value }) => ({ name, kind: kindOf(Value) })),
    numbers: byName(
      asked.flatMap(({ Name, Value }) =>
        typeof Value === 'number' ? [[Name, Value] as const] : [],
      ),
    ),
    texts: {
      ...byName([
        ...asked.map(({ Name, Value }) => [Name, String(Value)] as const),
        // Groups of types.
        ...(['GRD', 'GRD-COG', 'RAW', 'SLC'] as const).map(
          (type) => ['productType', type] as const,
        ),
      ]),
      ...byName(
        textFields.flatMap((field) =>
          views.flatMap(({ text }, i) => {
            const value = text(field) ?? 'none';
            return [[field, field === 'Id' && i % 2 ? value.toUpperCase() : value] as const];
          }),
        ),
      ),
    },
    dates: dateFields.flatMap((field) => views.flatMap(({ dateUs }) => dateUs(field) ?? [])),
    geometries: views.flatMap((view, i) => {
      const numbers = JSON.stringify(view.geometry() ?? '').match(/-?[\d.]+/g);
      if (numbers === null) return [];
      return [placeAt(numbers.slice(0, 2).map(Number), [0, 0.1, 3, 40][i % 4] ?? 0)];
    }),
  };
}

function kindOf(value: unknown) {
  if (typeof value === 'number') return Number.isInteger(value) ? 'Integer' : 'Double';
  if (typeof value === 'boolean') return 'Boolean';
  return readDateUs(value) !== null ? 'DateTimeOffset' : 'String';
}

/** A point, or a box of this size around it. */
function placeAt([x = 0, y = 0]: readonly number[], size: number): Geometry {
  if (size === 0) return point(x, y);
  const [west, south] = [Math.max(-180, x - size / 2), Math.max(-90, y - size / 2)];
  return polygon(box(west, south, Math.min(180, x + size), Math.min(90, y + size)));
}
