/** Walks through the tree of a filter and checks each condition. */
import type { Entity, FilterTree } from '../../domain/filter-tree.ts';
import type { FilterFinding } from '../finding.ts';
import type { ParsedFilter } from '../parse.ts';
import { checkAttribute } from './attributes.ts';
import { checkCollections } from './collections.ts';
import { checkComparison, checkTextFunction } from './fields.ts';
import { createFindings, type Findings } from './findings.ts';
import { checkIntersects } from './geometry.ts';

/** All that is found in a tree, in no order. Trees are at most twice as deep as parentheses may be. */
export function checkTree(text: string, parsed: ParsedFilter, entity: Entity): FilterFinding[] {
  const findings = createFindings(text, parsed, entity);
  visit(findings, parsed.tree, false);
  return findings.found;
}

/** `collected`: a collection is named beside this part, or beside one that it stands in. */
function visit(findings: Findings, tree: FilterTree, collected: boolean): void {
  switch (tree.node) {
    case 'and':
    case 'or': {
      const here = collected || (tree.node === 'and' && tree.terms.some(namesCollection));
      for (const term of tree.terms) visit(findings, term, here);
      break;
    }
    case 'not':
      visit(findings, tree.term, collected);
      break;
    case 'comparison':
    case 'in':
      checkComparison(findings, tree);
      checkCollections(findings, tree);
      break;
    case 'text':
      checkTextFunction(findings, tree, collected);
      break;
    case 'attribute':
      checkAttribute(findings, tree);
      break;
    case 'intersects':
      checkIntersects(findings, tree);
      break;
  }
}

function namesCollection(tree: FilterTree): boolean {
  return (tree.node === 'comparison' || tree.node === 'in') && tree.field === 'Collection/Name';
}
