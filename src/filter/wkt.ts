/** Reads the geometry of a filter: `SRID=4326;` and well-known text, inside the quotes. */
import type { Geometry, Position, Ring, Rings } from '../domain/filter-tree.ts';
import type { Cursor, Token } from './cursor.ts';
import { type FilterFinding, named, type Span } from './finding.ts';

interface ReadWkt {
  readonly srid: { readonly value: number; readonly span: Span };
  readonly geometry: Geometry;
}

/**
 * Reads the geometry inside a quoted token, notes with the cursor where it, its rings and its positions stand, and
 * fails at the exact character. Whether rings are closed and degrees are on the globe is not asked here.
 */
export function parseWkt(cursor: Cursor, token: Token): ReadWkt {
  const reader = new WktReader(cursor, token);
  const srid = reader.srid();
  const geometry = reader.noted(() => reader.geometry());
  if (reader.next() !== undefined) reader.fail({ expected: 'the closing quote' });
  return { srid, geometry };
}

interface Found extends Span {
  readonly text: string;
}

type Fault = Partial<Pick<FilterFinding, 'message' | 'expected' | 'hint'>>;

const supported = /^(?:MULTI)?(?:POINT|POLYGON)$/;
const foreign =
  /^(?:(?:MULTI)?(?:LINESTRING|CURVE|SURFACE)|GEOMETRYCOLLECTION|LINEARRING|CIRCULARSTRING|COMPOUNDCURVE|CURVEPOLYGON|TRIANGLE|TIN|POLYHEDRALSURFACE|ENVELOPE|BOX|CIRCLE)$/;

const blanks = /[ \t\r\n]*/y;
// No two parts share a digit: it fails after one way along the text.
const number = /[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?(?![\w.])/iy;
const integer = /[+-]?\d{1,15}(?![\w.])/y;
const letters = /[a-z]+/iy;
const anything = /[^\s(),;=']+|[^']/uy;

/** The text between the quotes of a token, and how far it is read; offsets are those of the filter. */
class WktReader {
  readonly #cursor: Cursor;
  readonly #end: number;
  #place: number;

  constructor(cursor: Cursor, token: Token) {
    this.#cursor = cursor;
    this.#place = token.start + 1;
    this.#end = token.end - 1;
  }

  srid(): ReadWkt['srid'] {
    const hint = "Write geography'SRID=4326;…'.";
    const word = this.#accept(letters);
    if (word?.text.toUpperCase() !== 'SRID') {
      const message = 'The reference system is missing before the geometry.';
      this.fail({ message, expected: '`SRID=4326;`', hint }, word);
    }
    this.#take('=');
    const digits = this.#accept(integer);
    if (digits === null) return this.fail({ expected: 'the number 4326', hint });
    this.#take(';');
    return { value: Number(digits.text), span: { start: digits.start, end: digits.end } };
  }

  geometry(): Geometry {
    const word = this.#accept(letters);
    const type = word?.text.toUpperCase() ?? '';
    if (word === null || !supported.test(type)) this.#failType(word, type);
    const second = this.#accept(letters);
    if (second !== null) this.#failSecondWord(second);
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

  /** The character behind blanks; undefined at the end. */
  next(): string | undefined {
    this.#skipBlanks();
    return this.#place < this.#end ? this.#cursor.text[this.#place] : undefined;
  }

  /** Notes where an object that is read stood. */
  noted<Part extends object>(read: () => Part): Part {
    const start = this.#skipBlanks();
    const part = read();
    this.#cursor.spans.set(part, { start, end: this.#place });
    return part;
  }

  /** Fails at the span, or at what comes next. */
  fail(fault: Fault, span?: Span | null): never {
    const at = span ?? this.#upcoming();
    const text = this.#cursor.text.slice(at.start, at.end);
    const message =
      at.start < this.#end ? `${named(text)} cannot stand here.` : 'The geometry ends too early.';
    this.#cursor.fail(at, { code: 'invalid-wkt', message, ...fault });
  }

  #failType(word: Found | null, type: string): never {
    const flat = type.replace(/ZM?$|M$/, '');
    if (supported.test(flat)) this.#failSecondWord(word);
    const message = foreign.test(flat)
      ? `${named(type)} is not a geometry that the catalogue takes.`
      : 'This is not well-known text (WKT).';
    this.fail({ message, expected: 'POINT, POLYGON, MULTIPOINT or MULTIPOLYGON' }, word);
  }

  /** `POINT Z`, `POINT EMPTY`, and anything else between the type and its parenthesis. */
  #failSecondWord(word: Found | null): never {
    const text = word?.text.toUpperCase() ?? '';
    if (text === 'EMPTY') {
      this.fail({ message: 'An empty geometry meets nothing.', expected: '`(`' }, word);
    }
    if (!/[ZM]$/.test(text)) this.fail({ expected: '`(`' }, word);
    const message = 'Positions have two numbers here, longitude and latitude.';
    this.fail({ message, hint: 'Leave out Z and M, and the numbers that belong to them.' }, word);
  }

  #rings(): Rings {
    return this.#list((): Ring => this.noted(() => this.#list(() => this.#position())));
  }

  /** A position of a MULTIPOINT, with or without parentheses of its own. */
  #loosePosition(): Position {
    return this.next() === '(' ? this.#inParentheses(() => this.#position()) : this.#position();
  }

  #position(): Position {
    return this.noted(() => {
      const position = [this.#number('longitude'), this.#number('latitude')] as const;
      const third = this.#accept(number);
      if (third === null) return position;
      const message = 'A position has two numbers, longitude and latitude; this one has a third.';
      return this.fail({ message, hint: 'Leave out the height.' }, third);
    });
  }

  #number(what: string): number {
    const found = this.#accept(number);
    const expected = `a number (${what})`;
    if (found === null) {
      const isMissing = [',', ')', undefined].includes(this.next());
      return this.fail({ expected, ...(isMissing ? { message: `The ${what} is missing.` } : {}) });
    }
    const value = Number(found.text);
    if (Number.isFinite(value)) return value;
    return this.fail({ message: `${named(found.text)} is no number of degrees.`, expected }, found);
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
    this.#place += 1;
    return true;
  }

  #take(symbol: string, expected = `\`${symbol}\``): void {
    if (!this.#takeIf(symbol)) this.fail({ expected });
  }

  #upcoming(): Span {
    const start = this.#skipBlanks();
    if (start >= this.#end) return { start: this.#end, end: this.#end + 1 };
    // A quote inside the geometry is doubled.
    return this.#accept(anything) ?? { start, end: start + 2 };
  }

  #skipBlanks(): number {
    blanks.lastIndex = this.#place;
    this.#place += blanks.exec(this.#cursor.text)?.[0].length ?? 0;
    return this.#place;
  }

  #accept(pattern: RegExp): Found | null {
    const start = this.#skipBlanks();
    pattern.lastIndex = start;
    // No pattern takes a quote, so none reaches beyond the end.
    const text = start < this.#end ? pattern.exec(this.#cursor.text)?.[0] : undefined;
    if (text === undefined) return null;
    this.#place = start + text.length;
    return { text, start, end: this.#place };
  }
}
