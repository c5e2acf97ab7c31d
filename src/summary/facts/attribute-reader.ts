/** Reads the attributes of a record: of any age, with any value missing, absurd or hostile. */
import { type ProductRecord, partOf } from '../../filter/product-record.ts';

export interface AttributeReader {
  /** A text that matches the whole pattern; anything else is null. Numbers are read as texts. */
  code(name: string, pattern: RegExp): string | null;
  /** A finite number from `least` to `most`, or its text; anything else is null. */
  number(name: string, least: number, most: number): number | null;
  /** As `number`, but whole. */
  integer(name: string, least: number, most: number): number | null;
}

/** More than any record has; what comes after is not read. */
const attributesMax = 500;
const textMax = 24;

// No two parts share a digit.
const numeral = /^[+-]?\d{1,12}(?:\.\d{1,20})?$/;

/** Names are compared without regard to case: old records write them in small letters. */
export function attributeReader({ Attributes: attributes }: ProductRecord): AttributeReader {
  const values = new Map<string, unknown>();
  for (const item of Array.isArray(attributes) ? attributes.slice(0, attributesMax) : []) {
    const name = partOf(item, 'Name');
    if (typeof name !== 'string') continue;
    const key = name.toLowerCase();
    if (!values.has(key)) values.set(key, partOf(item, 'Value'));
  }
  const numberOf = (name: string, least: number, most: number) => {
    const value = values.get(name.toLowerCase());
    const isNumeral = typeof value === 'number' || (typeof value === 'string' && isShort(value));
    if (!isNumeral || !(typeof value === 'number' || numeral.test(value))) return null;
    const read = Number(value);
    return read >= least && read <= most ? read : null;
  };
  return {
    code: (name, pattern) => {
      const value = values.get(name.toLowerCase());
      const text = typeof value === 'number' ? String(value) : value;
      return typeof text === 'string' && text.length <= textMax && pattern.test(text) ? text : null;
    },
    number: numberOf,
    integer: (name, least, most) => {
      const read = numberOf(name, least, most);
      return read !== null && Number.isInteger(read) ? read : null;
    },
  };
}

function isShort(text: string): boolean {
  return text.length <= 40;
}
