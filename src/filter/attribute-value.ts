/** Reads the value of an attribute, and what it is compared with, as the same type (decision 35). */
import type { AttributeKind, Literal } from '../domain/filter-tree.ts';
import type { Comparable } from './comparison.ts';
import { readFilterDate } from './parse-date.ts';
import { textOrNull } from './record-parts.ts';

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
