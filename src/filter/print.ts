/** Writes a tree as the text of a filter, in one canonical form. */
import type { AttributeNode, FilterTree, GroupNode, Literal } from '../domain/filter-tree.ts';
import type { Geometry, Position, Rings } from '../domain/geometry.ts';
import { formatDateUs } from '../domain/notification-date.ts';

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

/** `POLYGON((4 50,5 50,5 51,4 50))`: longitude first, no blanks that are not needed. */
function printWkt(geometry: Geometry): string {
  switch (geometry.type) {
    case 'Point':
      return `POINT(${printPosition(geometry.coordinates)})`;
    case 'MultiPoint':
      return `MULTIPOINT(${geometry.coordinates.map((one) => `(${printPosition(one)})`).join(',')})`;
    case 'Polygon':
      return `POLYGON${printRings(geometry.coordinates)}`;
    case 'MultiPolygon':
      return `MULTIPOLYGON(${geometry.coordinates.map(printRings).join(',')})`;
  }
}

function printRings(rings: Rings): string {
  return `(${rings.map((ring) => `(${ring.map(printPosition).join(',')})`).join(',')})`;
}

function printPosition([longitude, latitude]: Position): string {
  return `${showNumber(longitude)} ${showNumber(latitude)}`;
}

/** A text in single quotes, those in it doubled. */
export function showText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A number so that reading it gives the same one. */
export function showNumber(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

function showLiteral(literal: Literal): string {
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
