/** Finds parts of JSON in its bytes (UTF-8) without building values: large answers of services need no memory then. */
import { jsonOf } from '../terms/text.ts';

/** Part of some bytes, without white space around it; `end` is excluded. */
export interface Span {
  start: number;
  end: number;
}

/**
 * Returns the items of an array; null for other bytes, and for more than `itemsMax` items. Does not check what is
 * inside of an item.
 */
export function itemsIn(json: Uint8Array, part: Span, itemsMax: number): Span[] | null {
  const items: Span[] = [];
  const isArray = walk(json, part, false, (item) => items.push(item) <= itemsMax);
  return isArray ? items : null;
}

/** Returns the values of the members with these names; null for bytes that are not an object. The last one counts. */
export function membersIn(
  json: Uint8Array,
  part: Span,
  names: readonly string[],
): Map<string, Span> | null {
  const members = new Map<string, Span>();
  const isObject = walk(json, part, true, (value, key) => {
    const name = smallValue(json, key);
    if (typeof name === 'string' && names.includes(name)) members.set(name, value);
    return true;
  });
  return isObject ? members : null;
}

/** Maximum size of a value that has a meaning of its own: a date, an id, a link. */
const smallBytesMax = 4_096;

/** Parses a short value; returns undefined for a missing, long or invalid one. */
export function smallValue(json: Uint8Array, part: Span | undefined): unknown {
  return part === undefined || part.end - part.start > smallBytesMax
    ? undefined
    : jsonOf(textIn(json, part));
}

const utf8 = new TextDecoder();

export function textIn(json: Uint8Array, { start, end }: Span): string {
  return utf8.decode(json.subarray(start, end));
}

/** Returns the bytes without white space around them, and without a byte order mark. */
export function wholeOf(json: Uint8Array): Span {
  const hasMark = json[0] === 0xef && json[1] === 0xbb && json[2] === 0xbf;
  const start = afterSpace(json, hasMark ? 3 : 0);
  let end = json.length;
  while (end > start && isSpace(json[end - 1])) end -= 1;
  return { start, end };
}

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const object = { open: 0x7b, close: 0x7d };
const array = { open: 0x5b, close: 0x5d };

/** Calls `onPart` for each part until it returns false. Returns true if the bytes are a complete array or object. */
function walk(
  json: Uint8Array,
  { start, end }: Span,
  isObject: boolean,
  onPart: (value: Span, key: Span) => boolean,
): boolean {
  const { open, close } = isObject ? object : array;
  if (json[start] !== open) return false;
  let at = afterSpace(json, start + 1);
  if (json[at] === close) return at + 1 === end;
  for (;;) {
    const key = { start: at, end: at };
    if (isObject) {
      if (json[at] !== quote) return false;
      key.end = endOfString(json, at);
      at = afterSpace(json, key.end);
      if (json[at] !== colon) return false;
      at = afterSpace(json, at + 1);
    }
    const value = { start: at, end: endOfValue(json, at) };
    if (value.end === at || value.end > end || !onPart(value, key)) return false;
    at = afterSpace(json, value.end);
    if (json[at] === close) return at + 1 === end;
    if (json[at] !== comma) return false;
    at = afterSpace(json, at + 1);
  }
}

/** Returns an index after the end of the bytes for an incomplete value. */
function endOfValue(json: Uint8Array, start: number): number {
  const { length } = json;
  const first = json[start];
  if (first === quote) return endOfString(json, start);
  let i = start;
  if (first !== object.open && first !== array.open) {
    while (i < length && !isDelimiter(json[i])) i += 1;
    return i;
  }
  let depth = 0;
  while (i < length) {
    const byte = json[i] ?? 0;
    if (byte === quote) {
      i = endOfString(json, i);
      continue;
    }
    i += 1;
    // `[` and `{` differ in one bit only, as do `]` and `}`.
    if (byte < array.open) continue;
    const bracket = byte | 0x20;
    if (bracket === object.open) depth += 1;
    else if (bracket === object.close) depth -= 1;
    if (depth === 0) return i;
  }
  return length + 1;
}

function endOfString(json: Uint8Array, start: number): number {
  let i = start + 1;
  while (i < json.length && json[i] !== quote) i += json[i] === backslash ? 2 : 1;
  return i + 1;
}

function afterSpace(json: Uint8Array, start: number): number {
  let i = start;
  while (isSpace(json[i])) i += 1;
  return i;
}

/** White space of JSON: space, tab, line feed, carriage return (RFC 8259, 2). */
const isSpace = (byte: number | undefined) =>
  byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;

const isDelimiter = (byte: number | undefined) =>
  byte === comma || byte === array.close || byte === object.close || isSpace(byte);
