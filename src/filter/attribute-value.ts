/** Reads the value of an attribute, and what it is compared with, as the same type. */
import type { AttributeKind, Literal } from '../domain/filter-tree.ts';
import type { Comparable } from './comparison.ts';
import { readFilterDate } from './parse-date.ts';

/** How values are read for one condition; `literal` is null when nothing can equal or differ from it. */
interface AttributeReading {
  readonly literal: Comparable | null;
  /** Null for a value that is absent, an object, or not of the literal's type. */
  readonly read: (value: unknown) => Comparable | null;
}

/** The literal decides how a value is read, and before it the kind DateTimeOffset. */
export function attributeReading(valueKind: AttributeKind, literal: Literal): AttributeReading {
  if (valueKind === 'DateTimeOffset' || literal.type === 'date') {
    return { literal: literalDate(literal), read: asDate };
  }
  switch (literal.type) {
    case 'number':
      return { literal: literal.value, read: asNumber };
    case 'boolean':
      return { literal: Number(literal.value), read: asTruth };
    case 'text':
      return { literal: literal.value, read: asText };
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

function asNumber(value: unknown): number | null {
  const isNumeral = typeof value === 'number' || (typeof value === 'string' && numeral.test(value));
  const read = isNumeral ? Number(value) : Number.NaN;
  return Number.isFinite(read) ? read : null;
}

function asText(value: unknown): string | null {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}
