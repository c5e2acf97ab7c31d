/** Values of records: reads them, converts them to the type of a comparison, and compares them (decision 35). */

import { readDateUs } from '../core/terms/dates.ts';
import type { AttributeKind, ComparisonOperator, Literal } from './filter-tree.ts';

/** Comparable values: strings, or numbers, which also represent dates and Booleans. */
export type Comparable = string | number;

/** Conversion of attribute values for one condition. */
interface AttributeReading {
  readonly type: Literal['type'];
  readonly literal: Comparable;
  /** Null for a value that is absent, an object, or of a different type. */
  readonly read: (value: unknown) => Comparable | null;
}

/** The literal decides the type; a quoted date is a date if the condition names DateTimeOffset. */
export function attributeReading(valueKind: AttributeKind, literal: Literal): AttributeReading {
  const quotedDate = valueKind === 'DateTimeOffset' ? literalDate(literal) : null;
  if (quotedDate !== null) return { type: 'date', literal: quotedDate, read: readDateUs };
  switch (literal.type) {
    case 'date':
      return { type: 'date', literal: literal.us, read: readDateUs };
    case 'number':
      return { type: 'number', literal: literal.value, read: asNumber };
    case 'boolean':
      return { type: 'boolean', literal: Number(literal.value), read: asTruth };
    case 'text':
      return { type: 'text', literal: literal.value, read: textOrNull };
  }
}

/** Date of a literal: microseconds since 1970, UTC; null if it is not a date. */
export function literalDate(literal: Literal): number | null {
  if (literal.type === 'date') return literal.us;
  return literal.type === 'text' ? readDateUs(literal.value) : null;
}

/** Returns 1 or 0 for a Boolean or its text. */
export function asTruth(value: unknown): number | null {
  if (value === true || value === 'true') return 1;
  return value === false || value === 'false' ? 0 : null;
}

// Linear time: no two parts match the same digit.
const numeral = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

/** Returns a finite number, or the number in a string. */
export function asNumber(value: unknown): number | null {
  const isNumeral = typeof value === 'number' || (typeof value === 'string' && numeral.test(value));
  const read = isNumeral ? Number(value) : Number.NaN;
  return Number.isFinite(read) ? read : null;
}

type Comparison = (value: Comparable, other: Comparable) => boolean;

/** Comparisons of two values of one type. Strings are ordered by code point; case-sensitive. */
export const comparisonOf: Readonly<Record<ComparisonOperator, Comparison>> = {
  eq: (value, other) => value === other,
  ne: (value, other) => value !== other,
  lt: (value, other) => order(value, other) < 0,
  le: (value, other) => order(value, other) <= 0,
  gt: (value, other) => order(value, other) > 0,
  ge: (value, other) => order(value, other) >= 0,
};

/** Returns a negative number, 0 or a positive number. UTF-8 sorts as the code points do, UTF-16 does not. */
function order(value: Comparable, other: Comparable): number {
  if (typeof value === 'number' && typeof other === 'number') return value - other;
  return Buffer.compare(Buffer.from(String(value)), Buffer.from(String(other)));
}

/** JSON of the catalogue; any part may be missing. */
export type ProductRecord = Readonly<Record<string, unknown>>;

export function isRecord(value: unknown): value is ProductRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the record in a body (`value`, or `Value` in old ones); null if there is none. */
export function recordIn(document: unknown, index: number): ProductRecord | null {
  const item: unknown = Array.isArray(document) ? document[index] : document;
  if (!isRecord(item)) return null;
  const { value, Value } = item;
  if (isRecord(value)) return value;
  return isRecord(Value) ? Value : null;
}

/** Returns a member of an object; undefined if it has none, or is not an object. */
export function partOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return (value as ProductRecord)[name];
}

export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
