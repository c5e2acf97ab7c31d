/** Explains a filter in plain English. */

import { formatDateUs } from '../core/terms/dates.ts';
import { printable } from '../core/terms/text.ts';
import type {
  ComparisonNode,
  ComparisonOperator,
  FilterTree,
  Geometry,
  Literal,
  Position,
} from './filter-tree.ts';
import { positionsOf } from './geometry/ring.ts';
import { extentsOf, toShape } from './geometry/shape.ts';
import { describeGroup, groupIn } from './product-types.ts';
import { attributeReading, literalDate } from './values.ts';

/**
 * Returns one line for each condition, indented under its group: `all of:`, `  collection is SENTINEL-2`. The lines
 * contain only printable characters.
 */
export function describeFilter(tree: FilterTree): string[] {
  switch (tree.node) {
    case 'and':
    case 'or':
      return [tree.node === 'and' ? 'all of:' : 'any of:', ...tree.terms.flatMap(indented)];
    case 'not':
      return ['not:', ...indented(tree.term)];
    case 'comparison':
      return [describeComparison(tree)];
    case 'in':
      return [`${labelOf(tree.field)} is one of ${tree.literals.map(showValue).join(', ')}`];
    case 'text':
      return [`${labelOf(tree.field)} ${textVerbs[tree.function]} ${showText(tree.text)}`];
    case 'attribute': {
      const { name, valueKind, operator, literal } = tree;
      const reading = attributeReading(valueKind, literal);
      if (reading.type === 'date')
        return [`${showText(name)} ${dateVerbs[operator]} ${showDate(Number(reading.literal))}`];
      const group = operator === 'eq' ? groupIn(tree) : null;
      const types = group === null ? '' : `, or of its types: ${describeGroup(group)}`;
      return [`${showText(name)} ${verbs[operator]} ${showValue(literal)}${types}`];
    }
    case 'intersects':
      return [describeArea(tree.geometry)];
  }
}

function indented(tree: FilterTree): string[] {
  return describeFilter(tree).map((line) => `  ${line}`);
}

const textVerbs = {
  contains: 'contains',
  startswith: 'starts with',
  endswith: 'ends with',
  like: 'matches the pattern',
} as const;

/** Labels of properties; the others are shown by name. */
const labels: Readonly<Record<string, string>> = {
  Name: 'product name',
  Id: 'product id',
  'Collection/Name': 'collection',
  'ContentDate/Start': 'sensing start',
  'ContentDate/End': 'sensing end',
  PublicationDate: 'publication date',
  ModificationDate: 'modification date',
  OriginDate: 'origin date',
  DeletionDate: 'deletion date',
  DeletionCause: 'deletion cause',
};

function labelOf(field: string): string {
  return (Object.hasOwn(labels, field) ? labels[field] : undefined) ?? printable(field);
}

const verbs: Readonly<Record<ComparisonOperator, string>> = {
  eq: 'is',
  ne: 'is not',
  lt: 'is less than',
  le: 'is at most',
  gt: 'is greater than',
  ge: 'is at least',
};

const dateVerbs: Readonly<Record<ComparisonOperator, string>> = {
  eq: 'is',
  ne: 'is not',
  lt: 'is before',
  le: 'is at or before',
  gt: 'is after',
  ge: 'is at or after',
};

function describeComparison({ field, operator, literal }: ComparisonNode): string {
  if (field === 'Online' && literal.type === 'boolean' && /^(?:eq|ne)$/.test(operator)) {
    return literal.value === (operator === 'eq') ? 'product is online' : 'product is not online';
  }
  const us = /Date|^ContentDate\//.test(field) ? literalDate(literal) : null;
  return us === null
    ? `${labelOf(field)} ${verbs[operator]} ${showValue(literal)}`
    : `${labelOf(field)} ${dateVerbs[operator]} ${showDate(us)}`;
}

function showValue(literal: Literal): string {
  switch (literal.type) {
    case 'text':
      return showText(literal.value);
    case 'date':
      return showDate(literal.us);
    default:
      return String(literal.value);
  }
}

function showDate(us: number): string {
  return formatDateUs(us)
    .replace('T', ' ')
    .replace(/(?:\.0+|(\.\d*?)0*)Z$/, '$1 UTC');
}

/** Returns a string, in quotes if it is empty or starts or ends with a space. */
function showText(text: string): string {
  return text === text.trim() && text !== '' ? printable(text) : `'${printable(text)}'`;
}

/** `footprint intersects POLYGON with 5 points, from 4°E 50°N to 5°E 51°N`. */
function describeArea(geometry: Geometry): string {
  const type = geometry.type.toUpperCase();
  const positions = positionsOf(geometry);
  const [first] = positions;
  if (first !== undefined && positions.length === 1) {
    return `footprint intersects ${type} ${showPosition(first)}`;
  }
  const [box, other] = extentsOf(toShape(geometry));
  if (box === undefined) return '';
  // If a box only touches the antimeridian, the box on the other side has no width.
  const crosses = other !== undefined && other.east > -180;
  const southWest = showPosition([box.west, box.south]);
  const northEast = showPosition([crosses ? other.east : box.east, box.north]);
  const across = crosses ? ', across the antimeridian' : '';
  const extent = `from ${southWest} to ${northEast}${across}`;
  return `footprint intersects ${type} with ${positions.length} points, ${extent}`;
}

function showPosition([longitude, latitude]: Position): string {
  return `${degrees(longitude, 'E', 'W')} ${degrees(latitude, 'N', 'S')}`;
}

/** Rounds to four digits, about ten metres. */
function degrees(value: number, positive: string, negative: string): string {
  const rounded = Number(value.toFixed(4));
  if (rounded === 0) return '0°';
  return `${Math.abs(rounded)}°${rounded > 0 ? positive : negative}`;
}
