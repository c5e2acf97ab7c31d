/**
 * Translates filters of CQL2 (OGC 21-065r2) to the filter language of the catalogue. Parts that the index cannot answer
 * are refused by name.
 */
import { AppError } from '../../core/terms/app-error.ts';
import { and, type Expression, expression, not, or } from '../../filter/builder.ts';
import { filterDepthMax, filterLengthMax, Tokens } from '../../filter/cursor.ts';
import { literalsIn } from '../../filter/evaluate.ts';
import { geometryTypes, parseGeometry } from '../../filter/geometry/read-geometry.ts';
import { partOf } from '../../filter/values.ts';
import { everywhere, intersecting, sensedDuring } from './areas.ts';
import {
  collectionProperty,
  everyProduct,
  noProduct,
  queryableProperties,
  type StacOperator,
  type StacProperty,
  type StacValue,
} from './properties.ts';

/** Maximum length of a pattern, in UTF-16 units. */
const patternMax = 1_000;

/**
 * Translates CQL2 JSON. Throws `invalid`.
 *
 * A comparison with an absent value is null in CQL2, and so is its negation. The filter language has no null: a
 * negation is therefore applied to each comparison, and matches only products with a value.
 */
export function readCql2(filter: unknown, isNegated = false, depth = 0): Expression {
  if (depth > filterDepthMax) {
    throw refusal(`The filter is nested deeper than ${filterDepthMax} levels.`);
  }
  if (typeof filter === 'boolean') return filter === isNegated ? noProduct : everyProduct;
  const [op, args] = [partOf(filter, 'op'), partOf(filter, 'args')];
  if (typeof op !== 'string' || !Array.isArray(args)) {
    throw refusal(
      'A filter must be a condition, such as eo:cloud_cover < 20.',
      'In JSON: {"op":"<","args":[{"property":"eo:cloud_cover"},20]}',
    );
  }
  const name = op.toLowerCase();
  if (name === 'and' || name === 'or') {
    const terms = args.map((one) => readCql2(one, isNegated, depth + 1));
    return (name === 'and') === isNegated ? or(...terms) : and(...terms);
  }
  const condition = conditions.get(name);
  if (condition === undefined && name !== 'not') {
    throw refusal(
      `The operator ${JSON.stringify(op.slice(0, 40))} of CQL2 is not supported.`,
      `Supported: and, or, not, ${[...conditions.keys()].join(', ')}.`,
    );
  }
  const count = argumentCounts.get(name) ?? 2;
  if (args.length !== count) {
    throw refusal(`${name.toUpperCase()} needs ${count} arguments, not ${args.length}.`);
  }
  if (condition === undefined) return readCql2(args[0], !isNegated, depth + 1);
  return isNegated ? negated(condition(args)) : condition(args).matching;
}

/** Numbers of arguments, where they are not two. */
const argumentCounts = new Map([
  ['not', 1],
  ['isnull', 1],
  ['between', 3],
]);

interface Matching {
  /** Matches no product without a value. */
  matching: Expression;
  /** The products with a value; null: all products. */
  exists: Expression | null;
}

function negated({ matching: { tree }, exists }: Matching): Expression {
  const others = tree.node === 'not' ? expression(tree.term) : not(expression(tree));
  return exists === null ? others : and(exists, others);
}

type Condition = (args: readonly unknown[]) => Matching;

/** Compares a property with a value; `mirrored` is for exchanged sides. */
const comparing =
  (plain: StacOperator, mirrored: StacOperator = plain): Condition =>
  ([one, other]) => {
    const isMirrored = !isProperty(one) && isProperty(other);
    const [left, right] = isMirrored ? [other, one] : [one, other];
    const { compare, exists } = propertyOf(left);
    return { matching: compare(isMirrored ? mirrored : plain, literalOf(right)), exists };
  };

const equal = comparing('eq');

const conditions: ReadonlyMap<string, Condition> = new Map(
  Object.entries<Condition>({
    '=': equal,
    '<>': (args) => ({ ...equal(args), matching: negated(equal(args)) }),
    '<': comparing('lt', 'gt'),
    '<=': comparing('le', 'ge'),
    '>': comparing('gt', 'lt'),
    '>=': comparing('ge', 'le'),
    between: ([one, first, second]) => {
      const { compare, exists } = propertyOf(one);
      const [low, high] = [literalOf(first), literalOf(second)];
      return { matching: and(compare('ge', low), compare('le', high)), exists };
    },
    in: ([one, list]) => {
      const { compare, exists } = propertyOf(one);
      if (!Array.isArray(list) || list.length === 0) throw refusal('IN needs a list of values.');
      return { matching: or(...list.map((value) => compare('eq', literalOf(value)))), exists };
    },
    like: ([one, pattern]) => {
      const property = propertyOf(one);
      if (typeof pattern !== 'string') throw refusal('LIKE needs a text in single quotes.');
      return { matching: like(property, pattern), exists: property.exists };
    },
    isnull: ([one]) => {
      const exists = isGeometryProperty(one) ? everywhere : propertyOf(one).exists;
      return { matching: exists === null ? noProduct : not(exists), exists: null };
    },
    t_intersects: ([one, other]) => {
      const [property, value] = isProperty(one) ? [one, other] : [other, one];
      if (propertyOf(property).name !== 'datetime') {
        throw refusal('T_INTERSECTS is only supported for datetime.');
      }
      const interval = partOf(value, 'interval');
      const ends = Array.isArray(interval) ? interval : [value];
      const text = ends.map((end) => String(literalOf(end))).join('/');
      return { matching: sensedDuring(text), exists: sensed };
    },
    s_intersects: ([one, other]) => {
      if (!isGeometryProperty(one) && !isGeometryProperty(other)) {
        throw refusal('S_INTERSECTS needs the property geometry and a geometry.');
      }
      const matching = intersecting(isGeometryProperty(one) ? other : one);
      return { matching, exists: everywhere };
    },
  }),
);

/** Products with both times of sensing. */
const sensed = and(
  ...queryableProperties.flatMap(({ name, exists }) =>
    exists !== null && (name === 'start_datetime' || name === 'end_datetime') ? [exists] : [],
  ),
);

const queryableByName: ReadonlyMap<string, StacProperty> = new Map(
  [...queryableProperties, collectionProperty].map((one) => [one.name, one]),
);

/** Returns the property in a comparison. */
function propertyOf(value: unknown): StacProperty {
  const name = partOf(value, 'property');
  if (typeof name !== 'string') {
    refuseOperator(value);
    throw refusal('A condition needs a property on one side and a value on the other.');
  }
  // Clients may write the path in the item.
  const found = queryableByName.get(name.replace(/^properties\./, ''));
  if (found !== undefined) return found;
  const shown = JSON.stringify(name.slice(0, 60));
  throw refusal(
    `The property ${shown} cannot be queried.`,
    'GET /stac/queryables lists the properties.',
  );
}

const isProperty = (value: unknown) => typeof partOf(value, 'property') === 'string';

const isGeometryProperty = (value: unknown) => partOf(value, 'property') === 'geometry';

function literalOf(value: unknown): StacValue {
  const literal = partOf(value, 'timestamp') ?? partOf(value, 'date') ?? value;
  if (typeof literal === 'string' || typeof literal === 'number' || typeof literal === 'boolean') {
    return literal;
  }
  // GDAL writes a negative number as a product: `-1 * 30`.
  const factors = partOf(value, 'op') === '*' ? partOf(value, 'args') : undefined;
  const [one, other, ...more]: unknown[] = Array.isArray(factors) ? factors : [];
  if (typeof one === 'number' && typeof other === 'number' && more.length === 0) return one * other;
  refuseOperator(value);
  throw refusal('A property can only be compared with a text, a number, a time, TRUE or FALSE.');
}

/** Throws for an operator or a function as an operand. */
function refuseOperator(value: unknown): void {
  const name = partOf(value, 'op');
  if (typeof name !== 'string') return;
  const shown = JSON.stringify(name.slice(0, 40));
  throw refusal(
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
  const literals = literalsIn(pattern);
  const [, before, after] = /^(%*)(?:[^\\%_]|\\.)*(%*)$/su.exec(pattern) ?? [];
  if (before === undefined) {
    const longest = literals.reduce((one, other) => (other.length > one.length ? other : one));
    const node = { node: 'text', function: 'like', field: text.field, text: pattern } as const;
    return and(text.contains(longest), expression(node));
  }
  const literal = literals.join('');
  if (before !== '' && after !== '') return text.contains(literal);
  if (before !== '') return text.endsWith(literal);
  return after === '' ? text.eq(literal) : text.startsWith(literal);
}

function refusal(message: string, advice?: string): AppError {
  return new AppError('invalid', message, { advice });
}

/** In a text, a backslash escapes a quote; LIKE needs the other backslashes. */
const form =
  /(?<blank>\s+)|(?<text>'(?:[^'\\]|''|\\.)*')|(?<quoted>"[^"]*")|(?<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?<word>[\p{L}_:][\p{L}\p{N}_:.]*)|(?<sign><>|<=|>=|[=<>(),+\-*/^%])|(?<odd>.)/gsu;

type Cursor = Tokens<'text' | 'quoted' | 'number' | 'word' | 'sign' | 'odd'>;

/**
 * Parses CQL2 text (OGC 21-065r2, annex B) to CQL2 JSON: what a filter may contain is decided by the translation. Throws
 * `invalid`, with the position of the fault.
 */
export function parseCql2Text(text: string): unknown {
  if (text.length > filterLengthMax) {
    throw new AppError('invalid', `The filter has more than ${filterLengthMax} characters.`);
  }
  const cursor: Cursor = new Tokens(text, form);
  const filter = parseOr(cursor, 0);
  if (cursor.peek().kind !== 'end') throw unexpected(cursor, 'AND, OR or the end');
  return filter;
}

function parseOr(cursor: Cursor, depth: number): unknown {
  return parseJoined(cursor, 'or', () =>
    parseJoined(cursor, 'and', () => parseFactor(cursor, depth)),
  );
}

function parseJoined(cursor: Cursor, op: string, parse: () => unknown): unknown {
  const args = [parse()];
  while (cursor.takeIf(op)) args.push(parse());
  return args.length === 1 ? args[0] : { op, args };
}

function parseFactor(cursor: Cursor, depth: number): unknown {
  requireFlat(depth);
  if (cursor.takeIf('not')) return { op: 'not', args: [parseFactor(cursor, depth + 1)] };
  if (!cursor.takeIf('(')) return parsePredicate(cursor, depth);
  const inner = parseOr(cursor, depth + 1);
  require(cursor, ')');
  return inner;
}

const comparisonSigns = ['=', '<>', '<', '<=', '>', '>='];

function parsePredicate(cursor: Cursor, depth: number): unknown {
  const left = parseOperand(cursor, depth);
  const operand = () => parseOperand(cursor, depth);
  const sign = comparisonSigns.find((one) => cursor.takeIf(one));
  if (sign !== undefined) return { op: sign, args: [left, operand()] };
  const isNull = cursor.takeIf('is');
  const isNegated = cursor.takeIf('not');
  const condition = (op: string, ...args: unknown[]) => {
    const plain = { op, args: [left, ...args] };
    return isNegated ? { op: 'not', args: [plain] } : plain;
  };
  if (isNull) {
    require(cursor, 'null');
    return condition('isNull');
  }
  if (cursor.takeIf('like')) return condition('like', operand());
  if (cursor.takeIf('in')) return condition('in', parseList(cursor, depth));
  if (cursor.takeIf('between')) {
    const low = operand();
    require(cursor, 'and');
    return condition('between', low, operand());
  }
  const isComplete = typeof left === 'boolean' || Object.hasOwn(Object(left), 'op');
  if (isComplete && !isNegated) return left;
  throw unexpected(cursor, 'an operator, such as =, <, LIKE or IS NULL');
}

/** Parses a property, a literal or a function, or a product of such. */
function parseOperand(cursor: Cursor, depth: number): unknown {
  const left = parseAtom(cursor, depth);
  return cursor.takeIf('*') ? { op: '*', args: [left, parseAtom(cursor, depth)] } : left;
}

/** Words that are no names. */
const reserved = new Set(['and', 'or', 'not', 'is', 'null', 'like', 'between', 'in']);

function parseAtom(cursor: Cursor, depth: number): unknown {
  requireFlat(depth);
  if (cursor.takeIf('(')) {
    const inner = parseOperand(cursor, depth + 1);
    require(cursor, ')');
    return inner;
  }
  const { kind, raw } = cursor.peek();
  const word = raw.toLowerCase();
  const isName = kind === 'word' && !reserved.has(word);
  if (isName && word.toUpperCase() in geometryTypes) return parseWkt(cursor);
  if (!isName && kind !== 'text' && kind !== 'number' && kind !== 'quoted') {
    throw unexpected(cursor, 'a property or a literal');
  }
  cursor.take();
  if (kind === 'text') {
    return raw.slice(1, -1).replaceAll(/''|\\./gs, (two) => (two.endsWith("'") ? "'" : two));
  }
  if (kind === 'number') return Number(raw);
  if (kind === 'quoted') return { property: raw.slice(1, -1) };
  if (word === 'true' || word === 'false') return word === 'true';
  return cursor.is('(') ? parseCall(cursor, word, depth) : { property: raw };
}

/** Parses the arguments of a function, or the value of a literal such as `DATE('2026-11-20')`. */
function parseCall(cursor: Cursor, word: string, depth: number): unknown {
  const args = parseList(cursor, depth);
  if (word === 'timestamp' || word === 'date') return { [word]: args[0] };
  return word === 'interval' || word === 'bbox' ? { [word]: args } : { op: word, args };
}

function parseList(cursor: Cursor, depth: number): unknown[] {
  require(cursor, '(');
  const values: unknown[] = [];
  do values.push(parseOperand(cursor, depth + 1));
  while (cursor.takeIf(','));
  require(cursor, ')');
  return values;
}

/** Parses well-known text, from the type to the parenthesis that closes it. */
function parseWkt(cursor: Cursor): unknown {
  const { start } = cursor.peek();
  const error = unexpected(cursor, 'a geometry, such as POINT(11.5 48.1)');
  let [open, last] = [0, cursor.take()];
  do {
    last = cursor.take();
    // Such as a text without an end, which would be searched for again and again.
    if (!['word', 'number', 'sign', 'end'].includes(last.kind)) throw error;
    if (last.raw === '(') open += 1;
    if (last.raw === ')') open -= 1;
  } while (last.kind !== 'end' && (open > 0 || last.raw !== ')'));
  const geometry = parseGeometry(cursor.text.slice(start, last.end));
  if (geometry === null) throw error;
  return geometry;
}

function require(cursor: Cursor, word: string): void {
  if (!cursor.takeIf(word)) throw unexpected(cursor, word.toUpperCase());
}

function requireFlat(depth: number): void {
  if (depth <= filterDepthMax) return;
  throw new AppError('invalid', `The filter is nested deeper than ${filterDepthMax} levels.`);
}

function unexpected(cursor: Cursor, expected: string): AppError {
  const { raw, start } = cursor.peek();
  const shown = JSON.stringify(raw.slice(0, 40) || 'the end');
  return new AppError('invalid', `Unexpected ${shown} at character ${start + 1} of the filter.`, {
    advice: `Expected: ${expected}.`,
  });
}
