/**
 * A whole filter as SQL over the columns: a condition that no matching product fails. Where it is exact,
 * nothing else needs to be looked at.
 */
import type { FilterTree, IntersectsNode } from '../../domain/filter-tree.ts';
import { boxesOf, toShape } from '../../filter/geometry/shape.ts';
import { columnCondition } from './column-condition.ts';
import { joined, type SqlCondition } from './sql-condition.ts';

export interface Bound extends SqlCondition {
  exact: boolean;
}

/** Null where the columns say nothing. */
export function boundOf(tree: FilterTree): Bound | null {
  switch (tree.node) {
    case 'and': {
      const bounds = tree.terms.map(boundOf);
      const known = bounds.filter((bound) => bound !== null);
      if (known.length === 0) return null;
      const exact = known.length === bounds.length && known.every((bound) => bound.exact);
      return { ...joined('AND', known), exact };
    }
    case 'or': {
      const bounds = tree.terms.map(boundOf);
      const known = bounds.filter((bound) => bound !== null);
      if (known.length < bounds.length) return null;
      return { ...joined('OR', known), exact: known.every((bound) => bound.exact) };
    }
    case 'not': {
      const bound = boundOf(tree.term);
      if (bound === null || !bound.exact) return null;
      // NULL is false, and its negation true.
      return { ...bound, sql: `(${bound.sql}) IS NOT TRUE` };
    }
    case 'intersects':
      return { ...boxCondition(tree), exact: false };
    default: {
      const condition = columnCondition(tree);
      return condition === null ? null : { ...condition, exact: true };
    }
  }
}

/** The footprint's boxes, found by the ids that a product's boxes have. */
function boxCondition({ geometry }: IntersectsNode): SqlCondition {
  const conditions = boxesOf(toShape(geometry)).map(({ west, south, east, north }) => ({
    sql: 'b.west <= ? AND b.east >= ? AND b.south <= ? AND b.north >= ?',
    values: [east, west, north, south],
  }));
  if (conditions.length === 0) return { sql: 'FALSE', values: [] };
  const { sql, values } = joined('OR', conditions);
  return {
    sql: `EXISTS (SELECT 1 FROM product_box b WHERE b.id IN (2 * p.id, 2 * p.id + 1) AND (${sql}))`,
    values,
  };
}
