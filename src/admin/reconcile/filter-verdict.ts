/** What a filter says of a record that may lack what it asks for: yes, no, or that this cannot be told. */
import type { FilterTree, GroupNode, NotNode } from '../../domain/filter-tree.ts';
import { compileFilter } from '../../filter/evaluate.ts';
import type { ProductRecord } from '../../filter/product-record.ts';
import { type ProductView, productView } from '../../filter/product-view.ts';

/** Null: it hangs on something that the record does not tell. */
export type Verdict = boolean | null;

type Judge = (record: ProductRecord, view: ProductView) => Verdict;

/**
 * Null is something else than an absent value, which the catalogue knows to be so: deleted records
 * lack whole fields (facts, catalogue 1.1), and what these said before is unknown.
 */
export function compileVerdict(tree: FilterTree): (record: ProductRecord) => Verdict {
  const judge = judgeOf(tree);
  return (record) => judge(record, productView(record));
}

/** What is unknown does not matter where all else decides (Kleene's logic, as SQL has it). */
function judgeOf(tree: FilterTree): Judge {
  if ('terms' in tree) {
    const judges = tree.terms.map(judgeOf);
    const decisive = tree.node === 'or';
    return (record, view) => {
      let verdict: Verdict = !decisive;
      for (const judge of judges) {
        const own = judge(record, view);
        if (own === decisive) return decisive;
        if (own === null) verdict = null;
      }
      return verdict;
    };
  }
  if ('term' in tree) {
    const judge = judgeOf(tree.term);
    return (record, view) => {
      const own = judge(record, view);
      return own === null ? null : !own;
    };
  }
  const test = compileFilter(tree);
  const isTold = toldBy(tree);
  return (record, view) => (isTold(record, view) ? test(view) : null);
}

/** Whether a record tells what a condition asks for. */
function toldBy(
  condition: Exclude<FilterTree, GroupNode | NotNode>,
): (record: ProductRecord, view: ProductView) => boolean {
  // Records seldom name it: it is read off other parts, where these are of a kind that is known.
  if ('field' in condition && condition.field === 'Collection/Name') {
    return (_record, view) => view.text('Collection/Name') !== null;
  }
  const parts = partsOf(condition);
  return (record) => parts.some((part) => record[part] !== undefined);
}

/** The parts of a record of which a condition needs one. */
function partsOf(condition: Exclude<FilterTree, GroupNode | NotNode>): string[] {
  if (condition.node === 'attribute') return ['Attributes'];
  if (condition.node === 'intersects') return ['Footprint', 'GeoFootprint'];
  const [part = ''] = condition.field.split('/');
  return [part];
}
