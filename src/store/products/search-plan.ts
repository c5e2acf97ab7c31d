/** Takes a filter apart: what columns decide, what must be looked up, which indexes can narrow it. */
import type { FilterTree } from '../../domain/filter-tree.ts';
import type { ProductQuery } from '../../domain/products.ts';
import { compileFilter } from '../../filter/evaluate.ts';
import type { ProductView } from '../../filter/product-view.ts';
import { type Driver, driversOf } from './drivers.ts';
import { boundOf } from './filter-bound.ts';
import type { NameSample } from './name-sample.ts';
import { joined, type SqlCondition } from './sql-condition.ts';

export interface SearchPlan {
  /** What every match fulfils; without what the driver sees to already. */
  conditionBeside(driver: Driver | null): SqlCondition;
  drivers: Driver[];
  /** The terms that the condition decides, and those that it does not. */
  byColumns: FilterTree[];
  byRecords: FilterTree[];
  /** What the others need: nothing, the footprint, which lies at hand, or the whole record. */
  needs: 'nothing' | 'footprint' | 'record';
  matches(view: ProductView): boolean;
}

export function planSearch(
  { entity, filter, received }: Pick<ProductQuery, 'entity' | 'filter' | 'received'>,
  names: NameSample,
): SearchPlan {
  const terms = filter === null ? [] : filter.node === 'and' ? filter.terms : [filter];
  const bounds = terms.map((term) => ({ term, bound: boundOf(term) }));
  const byColumns = bounds.filter(({ bound }) => bound?.exact === true).map(({ term }) => term);
  const byRecords = bounds.filter(({ bound }) => bound?.exact !== true).map(({ term }) => term);
  // A literal, so that SQLite sees that the index of tombstones fits.
  const ofEntity = { sql: `p.deleted = ${entity === 'Products' ? 0 : 1}`, values: [] };
  const tests = byRecords.map(compileFilter);
  return {
    conditionBeside: (driver) => {
      const left = bounds.filter(({ term }) => !driver?.covers.includes(term));
      return joined('AND', [
        ofEntity,
        ...receivedWithin(received),
        ...left.flatMap(({ bound }) => bound ?? []),
      ]);
    },
    drivers: driversOf(filter, names),
    byColumns,
    byRecords,
    needs: needsOf(byRecords),
    matches: (view) => tests.every((test) => test(view)),
  };
}

function receivedWithin({ fromUs, untilUs }: ProductQuery['received'] = {}): SqlCondition[] {
  return [
    ...(fromUs === undefined ? [] : [{ sql: 'p.received_at_us >= ?', values: [fromUs] }]),
    ...(untilUs === undefined ? [] : [{ sql: 'p.received_at_us < ?', values: [untilUs] }]),
  ];
}

function needsOf(terms: readonly FilterTree[]): SearchPlan['needs'] {
  if (terms.length === 0) return 'nothing';
  return terms.every(isAboutPlace) ? 'footprint' : 'record';
}

function isAboutPlace(tree: FilterTree): boolean {
  if (tree.node === 'and' || tree.node === 'or') return tree.terms.every(isAboutPlace);
  return tree.node === 'not' ? isAboutPlace(tree.term) : tree.node === 'intersects';
}
