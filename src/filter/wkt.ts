/** Parses the geometry of a filter: `SRID=4326;` and well-known text, inside the quotes. */

import type { Cursor, Token } from './cursor.ts';
import type { Geometry, Position, Ring, Rings } from './filter-tree.ts';
import { quoted, type Span } from './finding.ts';

interface ReadWkt {
  readonly srid: { readonly value: number; readonly span: Span };
  readonly geometry: Geometry;
}

interface Found extends Span {
  readonly text: string;
}

const whitespace = /[ \t\r\n]*/y;
// Linear time: no two parts match the same digit.
const number = /[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?(?![\w.])/iy;
const integer = /[+-]?\d{1,15}(?![\w.])/y;
const letters = /[a-z]+/iy;
const anything = /[^\s(),;=']+|[^']/uy;

/** Reads the text between the quotes of a token; offsets are relative to the filter. */
function createScanner(cursor: Cursor, token: Token) {
  const end = token.end - 1;
  let offset = token.start + 1;
  const skipWhitespace = () => {
    whitespace.lastIndex = offset;
    offset += whitespace.exec(cursor.text)?.[0].length ?? 0;
    return offset;
  };
  const accept = (pattern: RegExp): Found | null => {
    const start = skipWhitespace();
    pattern.lastIndex = start;
    // No pattern matches a quote, so none goes beyond the end.
    const text = start < end ? pattern.exec(cursor.text)?.[0] : undefined;
    if (text === undefined) return null;
    offset = start + text.length;
    return { text, start, end: offset };
  };
  /** Fails at the word that was read; by default, at the next word or character. */
  const fail = (expected: string, read?: Found | null): never => {
    const start = skipWhitespace();
    // At the end, the closing quote. A quote inside the geometry is written twice.
    const at = read ?? accept(anything) ?? { start, end: start + (start < end ? 2 : 1) };
    const found = quoted(cursor.text.slice(at.start, at.end));
    const message = at.start < end ? `Unexpected ${found}.` : 'Unexpected end of the geometry.';
    return cursor.fail(at, { code: 'invalid-wkt', message, expected });
  };
  const nextIs = (symbol: string) => skipWhitespace() < end && cursor.text[offset] === symbol;
  const takeIf = (symbol: string) => {
    const isNext = nextIs(symbol);
    if (isNext) offset += 1;
    return isNext;
  };
  const take = (symbol: string, expected = `\`${symbol}\``) => takeIf(symbol) || fail(expected);
  /** Records the span of the object that is read. */
  const recorded = <Part extends object>(read: () => Part): Part => {
    const start = skipWhitespace();
    const part = read();
    cursor.spans.set(part, { start, end: offset });
    return part;
  };
  const isAtEnd = () => skipWhitespace() >= end;
  return { accept, fail, nextIs, takeIf, take, recorded, isAtEnd };
}

type Scanner = ReturnType<typeof createScanner>;

/**
 * Parses the geometry inside a quoted token, and records the spans of the geometry, its rings and positions in the
 * cursor. Fails at the exact character. Does not check that rings are closed and degrees in range.
 */
export function parseWkt(cursor: Cursor, token: Token): ReadWkt {
  const scanner = createScanner(cursor, token);
  const { accept, fail, take } = scanner;
  const word = accept(letters);
  if (word?.text.toUpperCase() !== 'SRID') fail('the reference system: `SRID=4326;`', word);
  take('=');
  const srid = accept(integer) ?? fail('the number 4326');
  take(';');
  const geometry = scanner.recorded(() => parseGeometry(scanner));
  if (!scanner.isAtEnd()) fail('the closing quote');
  const { start, end } = srid;
  return { srid: { value: Number(srid.text), span: { start, end } }, geometry };
}

function parseGeometry({ accept, fail, nextIs, take, takeIf, recorded }: Scanner): Geometry {
  const degrees = (name: string): number => {
    const found = accept(number);
    const value = Number(found?.text);
    return Number.isFinite(value) ? value : fail(`a number (${name})`, found);
  };
  const position = () => recorded((): Position => [degrees('longitude'), degrees('latitude')]);
  const inParentheses = (): Position => {
    take('(');
    const part = position();
    take(')');
    return part;
  };
  const list = <Part>(read: () => Part): Part[] => {
    take('(');
    const parts = [read()];
    while (takeIf(',')) parts.push(read());
    take(')', '`,` or `)`');
    return parts;
  };
  const rings = (): Rings => list(() => recorded((): Ring => list(position)));
  const word = accept(letters);
  switch (word?.text.toUpperCase()) {
    case 'POINT':
      return { type: 'Point', coordinates: inParentheses() };
    case 'MULTIPOINT':
      // Each point may be in parentheses.
      return {
        type: 'MultiPoint',
        coordinates: list(() => (nextIs('(') ? inParentheses() : position())),
      };
    case 'POLYGON':
      return { type: 'Polygon', coordinates: rings() };
    case 'MULTIPOLYGON':
      return { type: 'MultiPolygon', coordinates: list(rings) };
    default:
      return fail('POINT, POLYGON, MULTIPOINT or MULTIPOLYGON', word);
  }
}
