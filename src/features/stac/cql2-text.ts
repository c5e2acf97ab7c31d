/**
 * Parses CQL2 text (OGC 21-065r2, annex B) to CQL2 JSON: what a filter may contain is decided by the translation.
 */
import { AppError } from '../../core/terms/app-error.ts';
import { filterDepthMax, filterLengthMax, Tokens } from '../../filter/cursor.ts';
import { geometryTypes, parseGeometry } from '../../filter/geometry/read-geometry.ts';

/** In a text, a backslash escapes a quote; LIKE needs the other backslashes. */
const form =
  /(?<blank>\s+)|(?<text>'(?:[^'\\]|''|\\.)*')|(?<quoted>"[^"]*")|(?<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?<word>[\p{L}_:][\p{L}\p{N}_:.]*)|(?<sign><>|<=|>=|[=<>(),+\-*/^%])|(?<odd>.)/gsu;

type Cursor = Tokens<'text' | 'quoted' | 'number' | 'word' | 'sign' | 'odd'>;

/** Throws `invalid`, with the position of the fault. */
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
