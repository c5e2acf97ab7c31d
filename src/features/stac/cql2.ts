/**
 * Translates filters of CQL2 (OGC 21-065r2) to the filter language of the catalogue. Parts that the index cannot answer
 * are refused by name.
 */
import { AppError } from '../../core/terms/app-error.ts';
import { and, type Expression, expression, not, or } from '../../filter/builder.ts';
import { filterDepthMax, filterTermsMax } from '../../filter/cursor.ts';
import type { ComparisonOperator } from '../../filter/filter-tree.ts';
import { literalsIn } from '../../filter/pattern.ts';
import { everywhere, intersecting } from './areas.ts';
import { inCollection, readCollectionId } from './collections.ts';
import { everyProduct, noProduct } from './conditions.ts';
import { readInterval, sensedDuring } from './interval.ts';
import { queryableProperties, type StacProperty, type StacValue } from './properties.ts';

/** Maximum length of a pattern, in UTF-16 units. */
const patternMax = 1_000;

/** A node of CQL2 JSON. Members that the node does not have are ignored, as its schema says. */
export type Cql2 =
  | StacValue
  | { op: string; args: Cql2[] }
  | { property: string }
  | { timestamp: string }
  | { date: string }
  | { interval: Cql2[] }
  | { bbox: number[] }
  | Cql2[]
  | Geometry;

interface Geometry {
  type: string;
  coordinates?: unknown;
  geometries?: unknown;
}

/** Translates CQL2 JSON. Throws `invalid`. */
export function readCql2Json(value: unknown): Expression {
  return toExpression(readNode(value, 0, { nodes: 0 }));
}

/** Reads a node. Depth and number of parts are bounded; coordinates of a geometry count as one. */
function readNode(value: unknown, depth: number, size: { nodes: number }): Cql2 {
  size.nodes += 1;
  if (depth > filterDepthMax || size.nodes > filterTermsMax) {
    throw refusal(
      `The filter is nested deeper than ${filterDepthMax} levels, or has more than ${filterTermsMax} parts.`,
    );
  }
  const listOf = (list: readonly unknown[]) => list.map((one) => readNode(one, depth + 2, size));
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    return value;
  }
  if (Array.isArray(value)) return listOf(value);
  const { op, args, property, timestamp, date, interval, bbox, type } = Object(value);
  if (typeof op === 'string' && Array.isArray(args)) return { op, args: listOf(args) };
  if (typeof property === 'string') return { property };
  if (typeof timestamp === 'string') return { timestamp };
  if (typeof date === 'string') return { date };
  if (Array.isArray(interval)) return { interval: listOf(interval) };
  if (Array.isArray(bbox)) return { bbox: bbox.map(Number) };
  if (typeof type === 'string') return value as Cql2;
  throw refusal(
    'The filter is not CQL2 JSON.',
    'Example: {"op":"<","args":[{"property":"eo:cloud_cover"},20]}',
  );
}

/** Translates a parsed filter. Throws `invalid`. */
export function toExpression(filter: Cql2): Expression {
  return translate(filter, false);
}

/**
 * A comparison with an absent value is null in CQL2, and so is its negation. The filter language has no null: the
 * negation is therefore applied to each comparison, which never matches an absent value.
 */
function translate(filter: Cql2, negated: boolean): Expression {
  if (typeof filter === 'boolean') return filter === negated ? noProduct : everyProduct;
  if (typeof filter !== 'object' || !('op' in filter)) {
    throw refusal('A filter must be a condition, such as eo:cloud_cover < 20.');
  }
  const name = filter.op.toLowerCase();
  const { args } = filter;
  if (name === 'and' || name === 'or') {
    const terms = args.map((one) => translate(one, negated));
    return (name === 'and') === negated ? or(...terms) : and(...terms);
  }
  if (name === 'not') {
    requireCount(args, name);
    return translate(argument(args, 0, name), !negated);
  }
  const condition = conditions.get(name);
  if (condition !== undefined) {
    requireCount(args, name);
    return condition(args, negated, name);
  }
  throw refusal(
    `The operator ${JSON.stringify(filter.op.slice(0, 40))} of CQL2 is not supported.`,
    `Supported: and, or, not, ${[...conditions.keys()].join(', ')}.`,
  );
}

type Condition = (args: readonly Cql2[], negated: boolean, name: string) => Expression;

const comparisons = {
  '=': 'eq',
  '<>': 'ne',
  '<': 'lt',
  '<=': 'le',
  '>': 'gt',
  '>=': 'ge',
} as const satisfies Record<string, ComparisonOperator>;

const negations = { eq: 'ne', ne: 'eq', lt: 'ge', le: 'gt', gt: 'le', ge: 'lt' } as const;
/** The same comparison with its sides exchanged. */
const mirrored = { eq: 'eq', ne: 'ne', lt: 'gt', le: 'ge', gt: 'lt', ge: 'le' } as const;

const predicates = {
  between: (args, negated, name) => {
    const property = propertyOf(argument(args, 0, name), name);
    const [low, high] = [literalOf(argument(args, 1, name)), literalOf(argument(args, 2, name))];
    return negated
      ? or(property.compare('lt', low), property.compare('gt', high))
      : and(property.compare('ge', low), property.compare('le', high));
  },
  in: (args, negated, name) => {
    const property = propertyOf(argument(args, 0, name), name);
    const list = argument(args, 1, name);
    if (!Array.isArray(list) || list.length === 0) throw refusal('IN needs a list of values.');
    const terms = list.map((one) => property.compare(negated ? 'ne' : 'eq', literalOf(one)));
    return negated ? and(...terms) : or(...terms);
  },
  like: (args, negated, name) => {
    const property = propertyOf(argument(args, 0, name), name);
    const pattern = literalOf(argument(args, 1, name));
    if (typeof pattern !== 'string') throw refusal('LIKE needs a text in single quotes.');
    const matching = like(property, pattern);
    if (!negated) return matching;
    return property.exists === null ? not(matching) : and(property.exists, not(matching));
  },
  isnull: (args, negated, name) => {
    const value = argument(args, 0, name);
    const exists = isGeometryProperty(value) ? everywhere : propertyOf(value, name).exists;
    if (exists === null) return negated ? everyProduct : noProduct;
    return negated ? exists : not(exists);
  },
  t_intersects: (args, negated, name) => {
    const [one, other] = [argument(args, 0, name), argument(args, 1, name)];
    const isFirst = isProperty(one);
    const property = propertyOf(isFirst ? one : other, name);
    if (property.name !== 'datetime') throw refusal('T_INTERSECTS is only supported for datetime.');
    const matching = sensedDuring(readInterval(intervalText(isFirst ? other : one)));
    return negated ? and(sensed, not(matching)) : matching;
  },
  s_intersects: (args, negated, name) => {
    const [one, other] = [argument(args, 0, name), argument(args, 1, name)];
    const area = isGeometryProperty(one) ? other : one;
    if (!isGeometryProperty(area === one ? other : one)) {
      throw refusal('S_INTERSECTS needs the property geometry and a geometry.');
    }
    const matching = intersecting(area);
    return negated ? and(everywhere, not(matching)) : matching;
  },
} satisfies Record<string, Condition>;

const conditions: ReadonlyMap<string, Condition> = new Map([
  ...Object.entries(comparisons).map(([sign, op]) => [sign, comparing(op)] as const),
  ...Object.entries(predicates),
]);

/** Numbers of arguments, where they are not two. */
const argumentCounts: Readonly<Record<string, number>> = { not: 1, isnull: 1, between: 3 };

function requireCount({ length }: readonly Cql2[], operator: string): void {
  const count = argumentCounts[operator] ?? 2;
  if (length === count) return;
  throw refusal(`${operator.toUpperCase()} needs ${count} arguments, not ${length}.`);
}

/** Products with both times of sensing. */
const sensed = and(
  ...queryableProperties.flatMap(({ name, exists }) =>
    exists !== null && (name === 'start_datetime' || name === 'end_datetime') ? [exists] : [],
  ),
);

/** Converts `INTERVAL('2026-11-20', '..')`, or a time, to the form of the parameter `datetime`. */
function intervalText(value: Cql2): string {
  if (typeof value === 'object' && 'interval' in value) {
    return value.interval.map((end) => String(literalOf(end))).join('/');
  }
  return String(literalOf(value));
}

function comparing(operator: ComparisonOperator): Condition {
  return (args, negated, name) => {
    const [one, other] = [argument(args, 0, name), argument(args, 1, name)];
    const isMirrored = !isProperty(one) && isProperty(other);
    const property = propertyOf(isMirrored ? other : one, name);
    const sided = isMirrored ? mirrored[operator] : operator;
    const literal = literalOf(isMirrored ? one : other);
    return property.compare(negated ? negations[sided] : sided, literal);
  };
}

/** The collection is not a value of the record: it is compared by its two parts. */
const collection: StacProperty = {
  name: 'collection',
  title: 'Collection, such as SENTINEL-2.S2MSI2A',
  type: 'string',
  valueIn: () => undefined,
  exists: null,
  compare: (operator, value) => {
    if (operator !== 'eq' && operator !== 'ne') {
      throw refusal('collection can only be compared with =, <> and IN.');
    }
    if (typeof value !== 'string') throw refusal('collection can only be compared with a text.');
    const key = readCollectionId(value);
    if (key === null) return operator === 'eq' ? noProduct : everyProduct;
    const within = inCollection(key);
    return operator === 'eq' ? within : not(within);
  },
};

/** The list of queryables has no `collection`: its two parts are queryables. */
const queryableByName = new Map([...queryableProperties, collection].map((one) => [one.name, one]));

function propertyOf(value: Cql2, operator: string): StacProperty {
  if (typeof value === 'object' && 'op' in value) throw unsupportedOperand(value.op);
  if (!isProperty(value)) {
    throw refusal(
      `${operator.toUpperCase()} needs a property on one side and a value on the other.`,
    );
  }
  // Clients may write the path in the item.
  const found = queryableByName.get(value.property.replace(/^properties\./, ''));
  if (found !== undefined) return found;
  const shown = JSON.stringify(value.property.slice(0, 60));
  throw refusal(
    `The property ${shown} cannot be queried.`,
    'GET /stac/queryables lists the properties.',
  );
}

function isProperty(value: Cql2): value is { property: string } {
  return typeof value === 'object' && 'property' in value;
}

function isGeometryProperty(value: Cql2): boolean {
  return isProperty(value) && value.property === 'geometry';
}

function literalOf(value: Cql2): StacValue {
  if (typeof value !== 'object') return value;
  if ('timestamp' in value) return String(value.timestamp);
  if ('date' in value) return String(value.date);
  if ('op' in value) {
    // GDAL writes a negative number as a product: `-1 * 30`.
    const [one, other, ...more] = value.args;
    const isProduct = value.op === '*' && typeof one === 'number' && typeof other === 'number';
    if (!isProduct || more.length > 0) throw unsupportedOperand(value.op);
    return one * other;
  }
  throw refusal('A property can only be compared with a text, a number, a time, TRUE or FALSE.');
}

function unsupportedOperand(name: string): AppError {
  const shown = JSON.stringify(name.slice(0, 40));
  return refusal(
    `The function or operator ${shown} of CQL2 is not supported in a comparison.`,
    'Compare a property with a literal.',
  );
}

/**
 * Translates a pattern. One with `%` only at its start or end is a function of the filter language; of another one, the
 * longest literal is a condition for the search of names.
 */
function like({ text, name }: StacProperty, pattern: string): Expression {
  if (text === undefined) {
    throw refusal(`LIKE is not supported for ${name}.`, 'Only title supports LIKE.');
  }
  if (pattern.length > patternMax) {
    throw refusal(`A pattern has at most ${patternMax} characters.`);
  }
  const [, before = '', middle = '', after = ''] =
    /^(%*)((?:[^\\%_]|\\.)*)(%*)$/su.exec(pattern) ?? [];
  const literals = literalsIn(pattern);
  if (`${before}${middle}${after}` !== pattern) {
    const longest = literals.reduce((one, other) => (other.length > one.length ? other : one));
    const node = { node: 'text', function: 'like', field: text.field, text: pattern } as const;
    return and(text.contains(longest), expression(node));
  }
  const literal = literals.join('');
  if (before !== '' && after !== '') return text.contains(literal);
  if (before !== '') return text.endsWith(literal);
  return after === '' ? text.eq(literal) : text.startsWith(literal);
}

function argument(args: readonly Cql2[], index: number, operator: string): Cql2 {
  const value = args[index];
  if (value !== undefined) return value;
  throw refusal(`An argument of ${operator.toUpperCase()} is missing.`);
}

function refusal(message: string, advice?: string): AppError {
  return new AppError('invalid', message, { advice });
}
