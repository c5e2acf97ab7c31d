/** Parses the geometry of a filter: `SRID=4326;` and well-known text, inside the quotes. */
import type { Geometry, Position, Ring, Rings } from '../domain/filter-tree.ts';
import type { Cursor, Token } from './cursor.ts';
import { type FilterFinding, quoted, type Span } from './finding.ts';

interface ReadWkt {
  readonly srid: { readonly value: number; readonly span: Span };
  readonly geometry: Geometry;
}

/**
 * Parses the geometry inside a quoted token, and records the spans of the geometry, its rings and positions in the
 * cursor. Fails at the exact character. Does not check that rings are closed and degrees in range.
 */
export function parseWkt(cursor: Cursor, token: Token): ReadWkt {
  const reader = new WktReader(cursor, token);
  const srid = reader.srid();
  const geometry = reader.recorded(() => reader.geometry());
  if (reader.next() !== undefined) reader.fail({ expected: 'the closing quote' });
  return { srid, geometry };
}

interface Found extends Span {
  readonly text: string;
}

type Fault = Partial<Pick<FilterFinding, 'message' | 'expected'>>;

const supported = /^(?:MULTI)?(?:POINT|POLYGON)$/;
const whitespace = /[ \t\r\n]*/y;
// Linear time: no two parts match the same digit.
const number = /[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?(?![\w.])/iy;
const integer = /[+-]?\d{1,15}(?![\w.])/y;
const letters = /[a-z]+/iy;
const anything = /[^\s(),;=']+|[^']/uy;

/** Reads the text between the quotes of a token; offsets are relative to the filter. */
class WktReader {
  readonly #cursor: Cursor;
  readonly #end: number;
  #offset: number;

  constructor(cursor: Cursor, token: Token) {
    this.#cursor = cursor;
    this.#offset = token.start + 1;
    this.#end = token.end - 1;
  }

  srid(): ReadWkt['srid'] {
    const word = this.#accept(letters);
    if (word?.text.toUpperCase() !== 'SRID') {
      const message = 'The reference system is missing before the geometry.';
      this.fail({ message, expected: '`SRID=4326;`' }, word);
    }
    this.#take('=');
    const digits = this.#accept(integer);
    if (digits === null) return this.fail({ expected: 'the number 4326' });
    this.#take(';');
    return { value: Number(digits.text), span: { start: digits.start, end: digits.end } };
  }

  geometry(): Geometry {
    const word = this.#accept(letters);
    const type = word?.text.toUpperCase() ?? '';
    if (!supported.test(type)) {
      this.fail({ expected: 'POINT, POLYGON, MULTIPOINT or MULTIPOLYGON' }, word);
    }
    switch (type) {
      case 'POINT':
        return { type: 'Point', coordinates: this.#inParentheses(() => this.#position()) };
      case 'MULTIPOINT':
        return { type: 'MultiPoint', coordinates: this.#list(() => this.#loosePosition()) };
      case 'POLYGON':
        return { type: 'Polygon', coordinates: this.#rings() };
      default:
        return { type: 'MultiPolygon', coordinates: this.#list(() => this.#rings()) };
    }
  }

  /** Returns the next character that is not white space; undefined at the end. */
  next(): string | undefined {
    this.#skipWhitespace();
    return this.#offset < this.#end ? this.#cursor.text[this.#offset] : undefined;
  }

  /** Records the span of the object that is read. */
  recorded<Part extends object>(read: () => Part): Part {
    const start = this.#skipWhitespace();
    const part = read();
    this.#cursor.spans.set(part, { start, end: this.#offset });
    return part;
  }

  /** Fails at the span; by default, at the next word or character. */
  fail(fault: Fault, span?: Span | null): never {
    const at = span ?? this.#upcoming();
    const text = this.#cursor.text.slice(at.start, at.end);
    const message =
      at.start < this.#end ? `Unexpected ${quoted(text)}.` : 'Unexpected end of the geometry.';
    this.#cursor.fail(at, { code: 'invalid-wkt', message, ...fault });
  }

  #rings(): Rings {
    return this.#list((): Ring => this.recorded(() => this.#list(() => this.#position())));
  }

  /** Parses a position of a MULTIPOINT, with or without parentheses. */
  #loosePosition(): Position {
    return this.next() === '(' ? this.#inParentheses(() => this.#position()) : this.#position();
  }

  #position(): Position {
    return this.recorded(() => [this.#number('longitude'), this.#number('latitude')]);
  }

  #number(name: 'longitude' | 'latitude'): number {
    const found = this.#accept(number);
    const value = Number(found?.text);
    return Number.isFinite(value) ? value : this.fail({ expected: `a number (${name})` }, found);
  }

  #inParentheses<Part>(read: () => Part): Part {
    this.#take('(');
    const part = read();
    this.#take(')');
    return part;
  }

  #list<Part>(read: () => Part): Part[] {
    this.#take('(');
    const parts = [read()];
    while (this.#takeIf(',')) parts.push(read());
    this.#take(')', '`,` or `)`');
    return parts;
  }

  #takeIf(symbol: string): boolean {
    if (this.next() !== symbol) return false;
    this.#offset += 1;
    return true;
  }

  #take(symbol: string, expected = `\`${symbol}\``): void {
    if (!this.#takeIf(symbol)) this.fail({ expected });
  }

  #upcoming(): Span {
    const start = this.#skipWhitespace();
    if (start >= this.#end) return { start: this.#end, end: this.#end + 1 };
    // A quote inside the geometry is written twice.
    return this.#accept(anything) ?? { start, end: start + 2 };
  }

  #skipWhitespace(): number {
    whitespace.lastIndex = this.#offset;
    this.#offset += whitespace.exec(this.#cursor.text)?.[0].length ?? 0;
    return this.#offset;
  }

  #accept(pattern: RegExp): Found | null {
    const start = this.#skipWhitespace();
    pattern.lastIndex = start;
    // No pattern matches a quote, so none goes beyond the end.
    const text = start < this.#end ? pattern.exec(this.#cursor.text)?.[0] : undefined;
    if (text === undefined) return null;
    this.#offset = start + text.length;
    return { text, start, end: this.#offset };
  }
}
