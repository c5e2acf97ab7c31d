/** Writes a tree as the text of a filter, in one canonical form. */
import type { AttributeNode, FilterTree, GroupNode } from '../domain/filter-tree.ts';
import { printWkt } from './syntax/print-wkt.ts';
import { showLiteral, showText } from './syntax/show-literal.ts';

/**
 * The text of a tree, in documented forms wherever there is one: a group within a group stands in
 * parentheses, an attribute's value has its kind before it, dates are UTC with six digits. Reading it
 * gives the same tree, within the limits of a filter.
 */
export function printFilter(tree: FilterTree): string {
  switch (tree.node) {
    case 'and':
    case 'or':
      return tree.terms.map(printTerm).join(` ${tree.node} `);
    case 'not':
      return `not (${printFilter(tree.term)})`;
    case 'comparison':
      return `${tree.field} ${tree.operator} ${showLiteral(tree.literal)}`;
    case 'in':
      return `${tree.field} in (${tree.literals.map(showLiteral).join(',')})`;
    case 'text':
      return `${tree.function}(${tree.field},${showText(tree.text)})`;
    case 'attribute':
      return printAttribute(tree);
    case 'intersects': {
      const { argument, srid, geometry } = tree;
      const geography = showText(`SRID=${srid};${printWkt(geometry)}`);
      return `OData.CSC.Intersects(${argument}=geography${geography})`;
    }
  }
}

function printTerm(term: FilterTree): string {
  return isGroup(term) ? `(${printFilter(term)})` : printFilter(term);
}

function isGroup(tree: FilterTree): tree is GroupNode {
  return tree.node === 'and' || tree.node === 'or';
}

function printAttribute({ kind, name, valueKind, operator, literal }: AttributeNode): string {
  const value = `att/OData.CSC.${valueKind}Attribute/Value ${operator} ${showLiteral(literal)}`;
  return `Attributes/OData.CSC.${kind}Attribute/any(att:att/Name eq ${showText(name)} and ${value})`;
}
