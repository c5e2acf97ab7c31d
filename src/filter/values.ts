/** Reads values that are compared as one type, and compares them (decision 35). */

import { parseDate } from '../domain/dates.ts';
import type { AttributeKind, ComparisonOperator, Literal } from '../domain/filter-tree.ts';
import { textOrNull } from './product-record.ts';

/** Values that can be compared: two texts, or two numbers (also dates and booleans as such). */
export type Comparable = string | number;

/** How values are read for one condition. */
interface AttributeReading {
  readonly type: Literal['type'];
  readonly literal: Comparable;
  /** Null for a value that is absent, an object, or not of this type. */
  readonly read: (value: unknown) => Comparable | null;
}

/** The literal decides the type; a quoted date is a date where the condition names DateTimeOffset. */
export function attributeReading(valueKind: AttributeKind, literal: Literal): AttributeReading {
  const quotedDate = valueKind === 'DateTimeOffset' ? literalDate(literal) : null;
  if (quotedDate !== null) return { type: 'date', literal: quotedDate, read: asDate };
  switch (literal.type) {
    case 'date':
      return { type: 'date', literal: literal.us, read: asDate };
    case 'number':
      return { type: 'number', literal: literal.value, read: asNumber };
    case 'boolean':
      return { type: 'boolean', literal: Number(literal.value), read: asTruth };
    case 'text':
      return { type: 'text', literal: literal.value, read: textOrNull };
  }
}

/** The date that a literal means: microseconds since 1970, UTC. */
export function literalDate(literal: Literal): number | null {
  if (literal.type === 'date') return literal.us;
  return literal.type === 'text' ? readFilterDate(literal.value) : null;
}

/** 1 or 0 for a truth or its text. */
export function asTruth(value: unknown): number | null {
  if (value === true || value === 'true') return 1;
  return value === false || value === 'false' ? 0 : null;
}

function asDate(value: unknown): number | null {
  return typeof value === 'string' ? readFilterDate(value) : null;
}

// No two parts share a digit: it fails after one way along the text.
const numeral = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

/** A finite number, or the one that a text is. */
export function asNumber(value: unknown): number | null {
  const isNumeral = typeof value === 'number' || (typeof value === 'string' && numeral.test(value));
  const read = isNumeral ? Number(value) : Number.NaN;
  return Number.isFinite(read) ? read : null;
}

const dateParts = /^(\d{4})(-\d\d-\d\d.*)$/s;
/** The first and the last year that microseconds can hold in full. */
const [firstYear, lastYear] = [1685, 2254];

/**
 * Microseconds since 1970, UTC; a date without a zone is UTC. A date beyond what microseconds can hold is the last one
 * that they can, or the first. Null for a text that is no date.
 */
export function readFilterDate(text: string): number | null {
  const read = parseDate(text);
  if (read !== null) return read.us;
  const [, yearText = '', rest = ''] = dateParts.exec(text.trim()) ?? [];
  const year = Number(yearText);
  if (yearText === '' || (year >= firstYear && year <= lastYear)) return null;
  // Whether the day exists is seen in a year of the same length.
  const leap = new Date(Date.UTC(2000 + year, 1, 29)).getUTCMonth() === 1;
  if (parseDate(`${leap ? 2000 : 2001}${rest}`) === null) return null;
  return year > lastYear ? Number.MAX_SAFE_INTEGER : Number.MIN_SAFE_INTEGER;
}

type Comparison = (value: Comparable, other: Comparable) => boolean;

/** How two values of one type compare. Texts go by code points, and case matters. */
export const comparisonOf: Readonly<Record<ComparisonOperator, Comparison>> = {
  eq: (value, other) => value === other,
  ne: (value, other) => value !== other,
  lt: (value, other) => order(value, other) < 0,
  le: (value, other) => order(value, other) <= 0,
  gt: (value, other) => order(value, other) > 0,
  ge: (value, other) => order(value, other) >= 0,
};

/** Negative, 0 or positive. JavaScript itself orders texts by UTF-16 units, SQLite by code points. */
function order(value: Comparable, other: Comparable): number {
  if (typeof value === 'number' && typeof other === 'number') return value - other;
  const [a, b] = [String(value), String(other)];
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1) {
    const [unit, beside] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (unit !== beside) return rank(unit) - rank(beside);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above all other units. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
