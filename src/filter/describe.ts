/** Says in plain words what a filter asks for. */
import type { FilterTree } from '../domain/filter-tree.ts';
import { describeCondition } from './describe/condition.ts';

/**
 * One line for each part, those of a group indented under it: `all of:`, `  collection is SENTINEL-2`.
 * The lines hold printable characters only.
 */
export function describeFilter(tree: FilterTree): string[] {
  switch (tree.node) {
    case 'and':
      return ['all of:', ...tree.terms.flatMap(indented)];
    case 'or':
      return ['any of:', ...tree.terms.flatMap(indented)];
    case 'not':
      return ['not:', ...indented(tree.term)];
    default:
      return [describeCondition(tree)];
  }
}

function indented(tree: FilterTree): string[] {
  return describeFilter(tree).map((line) => `  ${line}`);
}
