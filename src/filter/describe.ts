/** Explains filters in plain English, and an empty result by the counts of the conditions. */

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
import { describeGroup, groupIn, termsOf } from './product-conditions.ts';
import type { ProductSelection, Products } from './products.ts';
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
      const us = reading.type === 'date' ? Number(reading.literal) : null;
      const group = operator === 'eq' ? groupIn(tree) : null;
      const types = group === null ? '' : `, or of its types: ${describeGroup(group)}`;
      return [`${compared(showText(name), operator, literal, us)}${types}`];
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

/** Verbs of values, and of dates. */
const verbs: Readonly<Record<ComparisonOperator, readonly [value: string, date: string]>> = {
  eq: ['is', 'is'],
  ne: ['is not', 'is not'],
  lt: ['is less than', 'is before'],
  le: ['is at most', 'is at or before'],
  gt: ['is greater than', 'is after'],
  ge: ['is at least', 'is at or after'],
};

function describeComparison({ field, operator, literal }: ComparisonNode): string {
  if (field === 'Online' && literal.type === 'boolean' && /^(?:eq|ne)$/.test(operator)) {
    return literal.value === (operator === 'eq') ? 'product is online' : 'product is not online';
  }
  const us = /Date|^ContentDate\//.test(field) ? literalDate(literal) : null;
  return compared(labelOf(field), operator, literal, us);
}

/** `us`: the literal as a date; null if it is compared as another value. */
function compared(
  label: string,
  operator: ComparisonOperator,
  literal: Literal,
  us: number | null,
): string {
  const [verb, dateVerb] = verbs[operator];
  return us === null
    ? `${label} ${verb} ${showValue(literal)}`
    : `${label} ${dateVerb} ${showDate(us)}`;
}

function showValue(literal: Literal): string {
  if (literal.type === 'text') return showText(literal.value);
  return literal.type === 'date' ? showDate(literal.us) : String(literal.value);
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

/** Returns the conditions that are joined by "and", each as a query of its own. */
function conditionsOf({ entity, filter, received, subscription }: ProductSelection) {
  const all = { entity, filter: null };
  const { fromUs, untilUs } = received ?? {};
  const times = [
    ...(fromUs === undefined ? [] : [`from ${formatDateUs(fromUs)}`]),
    ...(untilUs === undefined ? [] : [`before ${formatDateUs(untilUs)}`]),
  ];
  const found: { condition: string; selection: ProductSelection }[] = [];
  if (times.length > 0) {
    found.push({ condition: `received ${times.join(', ')}`, selection: { ...all, received } });
  }
  if (subscription !== undefined) {
    const condition = `subscription is ${printable(subscription)}`;
    found.push({ condition, selection: { ...all, subscription } });
  }
  for (const term of termsOf(filter)) {
    const [first, ...others] = describeFilter(term).map((line) => line.trim());
    const condition = [first, others.join(', ')].filter(Boolean).join(' ');
    found.push({ condition, selection: { entity, filter: term } });
  }
  return found;
}

/** Explains in one sentence why no product matches: names the first condition that no product matches. */
export async function whyEmpty(
  products: Pick<Products, 'quickCount'>,
  selection: ProductSelection,
  signal?: AbortSignal,
): Promise<string> {
  const { entity } = selection;
  const product = entity === 'Products' ? 'product' : 'deleted product';
  const steps = conditionsOf(selection).map(({ condition, selection: own }) => ({
    text: `No ${product} matches this condition: ${condition}.`,
    own,
  }));
  const none = { text: `No ${product} was received yet.`, own: { entity, filter: null } };
  for (const { text, own } of [none, ...steps]) {
    const { count, isMinimum } = await products.quickCount(own, signal);
    if (count === 0 && !isMinimum) return text;
  }
  return `No ${product} matches all conditions together; each condition alone matches some.`;
}
