/** Evaluates the filter of a subscription on catalogue records, which may lack fields. */

import { compileFilter } from '../filter/evaluate.ts';
import type { FilterTree, GroupNode, NotNode } from '../filter/filter-tree.ts';
import type { ProductRecord } from '../filter/product-record.ts';
import { type ProductView, productView } from '../filter/product-view.ts';

/** Null: the record lacks a field that decides. */
export type MatchResult = boolean | null;

type Matcher = (record: ProductRecord, view: ProductView) => MatchResult;

/**
 * Distinguishes null values, which the catalogue knows to be empty, from missing fields: deleted records lack
 * whole fields (facts, catalogue 1.1), whose former values are unknown.
 */
export function compileMatch(tree: FilterTree): (record: ProductRecord) => MatchResult {
  const matcher = matcherOf(tree);
  return (record) => matcher(record, productView(record));
}

/** Uses three-valued logic (Kleene), as SQL does: an unknown term matters only if the others do not decide. */
function matcherOf(tree: FilterTree): Matcher {
  if ('terms' in tree) {
    const matchers = tree.terms.map(matcherOf);
    const decisive = tree.node === 'or';
    return (record, view) => {
      let result: MatchResult = !decisive;
      for (const matcher of matchers) {
        const own = matcher(record, view);
        if (own === decisive) return decisive;
        if (own === null) result = null;
      }
      return result;
    };
  }
  if ('term' in tree) {
    const matcher = matcherOf(tree.term);
    return (record, view) => {
      const own = matcher(record, view);
      return own === null ? null : !own;
    };
  }
  const test = compileFilter(tree);
  const hasField = fieldCheckOf(tree);
  return (record, view) => (hasField(record, view) ? test(view) : null);
}

/** Returns a test for whether a record has the field of a condition. */
function fieldCheckOf(
  condition: Exclude<FilterTree, GroupNode | NotNode>,
): (record: ProductRecord, view: ProductView) => boolean {
  // Few records have this field; it is derived from other fields of known forms.
  if ('field' in condition && condition.field === 'Collection/Name') {
    return (_record, view) => view.text('Collection/Name') !== null;
  }
  const parts = partsOf(condition);
  return (record) => parts.some((part) => record[part] !== undefined);
}

/** Returns the record fields of which a condition needs at least one. */
function partsOf(condition: Exclude<FilterTree, GroupNode | NotNode>): string[] {
  if (condition.node === 'attribute') return ['Attributes'];
  if (condition.node === 'intersects') return ['Footprint', 'GeoFootprint'];
  const [part = ''] = condition.field.split('/');
  return [part];
}
