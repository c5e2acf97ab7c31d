/** Prints a tree as the text of a filter, in the canonical form. */

import { formatDateUs } from '../core/terms/dates.ts';
import type {
  AttributeKind,
  ComparisonOperator,
  FilterTree,
  Geometry,
  Literal,
  Position,
} from './filter-tree.ts';

/**
 * Prints a tree, in documented forms where they exist: nested groups in parentheses, attribute values
 * with a type cast, dates in UTC with six digits. Parsing the text returns the same tree, within the
 * limits of a filter.
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
    case 'attribute': {
      const { name, kind, literal, operator, valueKind } = tree;
      return attributeForm(name, kind, showLiteral(literal), operator, valueKind);
    }
    case 'intersects': {
      const { argument, srid, geometry } = tree;
      const geography = showText(`SRID=${srid};${printWkt(geometry)}`);
      return `OData.CSC.Intersects(${argument}=geography${geography})`;
    }
  }
}

function printTerm(term: FilterTree): string {
  const isGroup = term.node === 'and' || term.node === 'or';
  return isGroup ? `(${printFilter(term)})` : printFilter(term);
}

/** Returns a condition on an attribute; `value` is the literal as text. */
export function attributeForm(
  name: string,
  kind: AttributeKind,
  value: string,
  operator: ComparisonOperator = 'eq',
  valueKind = kind,
): string {
  const condition = `att/OData.CSC.${valueKind}Attribute/Value ${operator} ${value}`;
  return `Attributes/OData.CSC.${kind}Attribute/any(att:att/Name eq ${showText(name)} and ${condition})`;
}

/** `POLYGON((4 50,5 50,5 51,4 50))`: longitude first, no unnecessary spaces. */
function printWkt({ type, coordinates }: Geometry): string {
  const places =
    type === 'Point'
      ? [coordinates]
      : type === 'MultiPoint'
        ? coordinates.map((one) => [one])
        : coordinates;
  return `${type.toUpperCase()}${printPlaces(places)}`;
}

type Places = Position | readonly Places[];

function printPlaces(places: Places): string {
  if (isPosition(places)) return places.map(showNumber).join(' ');
  return `(${places.map(printPlaces).join(',')})`;
}

function isPosition(places: Places): places is Position {
  return typeof places[0] === 'number';
}

/** Returns a string literal: in single quotes, with quotes inside doubled. */
export function showText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Returns a number literal that parses to the same number. */
function showNumber(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

export function showLiteral(literal: Literal): string {
  switch (literal.type) {
    case 'text':
      return showText(literal.value);
    case 'number':
      return showNumber(literal.value);
    case 'boolean':
      return String(literal.value);
    case 'date':
      return formatDateUs(literal.us);
  }
}
