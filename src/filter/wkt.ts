/** Reads the geometry of a filter: `SRID=4326;` and well-known text, inside the quotes. */
import type { Geometry, Position, Ring, Rings } from '../domain/geometry.ts';
import { type Cursor, named, type Token } from './cursor.ts';
import type { FilterFinding, Span } from './finding.ts';

interface ReadWkt {
  readonly srid: { readonly value: number; readonly span: Span };
  readonly geometry: Geometry;
}

const types = 'POINT, POLYGON, MULTIPOINT or MULTIPOLYGON';

const supported = /^(?:MULTI)?(?:POINT|POLYGON)$/;

const foreign =
  /^(?:(?:MULTI)?(?:LINESTRING|CURVE|SURFACE)|GEOMETRYCOLLECTION|LINEARRING|CIRCULARSTRING|COMPOUNDCURVE|CURVEPOLYGON|TRIANGLE|TIN|POLYHEDRALSURFACE|ENVELOPE|BOX|CIRCLE)$/;

/**
 * Reads the geometry inside a quoted token, notes with the cursor where it, its rings and its
 * positions stand, and fails at the exact character. Whether rings are closed and degrees are on the
 * globe is not asked here.
 */
export function parseWkt(cursor: Cursor, token: Token): ReadWkt {
  const reader = new WktReader(cursor, token);
  const srid = readSrid(reader);
  const geometry = reader.note(() => readGeometry(reader));
  if (reader.next() !== undefined) reader.fail({ expected: 'the closing quote' });
  return { srid, geometry };
}

function readSrid(reader: WktReader): ReadWkt['srid'] {
  const hint = "Write geography'SRID=4326;…'.";
  const word = reader.word();
  if (word?.text.toUpperCase() !== 'SRID') {
    const message = 'The reference system is missing before the geometry.';
    reader.fail({ message, expected: '`SRID=4326;`', hint }, word);
  }
  reader.take('=');
  const digits = reader.integer();
  if (digits === null) return reader.fail({ expected: 'the number 4326', hint });
  reader.take(';');
  return { value: Number(digits.text), span: { start: digits.start, end: digits.end } };
}

function readGeometry(reader: WktReader): Geometry {
  const word = reader.word();
  const type = word?.text.toUpperCase() ?? '';
  if (word === null || !supported.test(type)) failType(reader, word);
  const second = reader.word();
  if (second !== null) failSecondWord(reader, second);
  switch (type) {
    case 'POINT':
      return { type: 'Point', coordinates: readBracketed(reader, readPosition) };
    case 'MULTIPOINT':
      return { type: 'MultiPoint', coordinates: readList(reader, readLoosePosition) };
    case 'POLYGON':
      return { type: 'Polygon', coordinates: readRings(reader) };
    default:
      return { type: 'MultiPolygon', coordinates: readList(reader, readRings) };
  }
}

function failType(reader: WktReader, word: Found | null): never {
  const type = word?.text.toUpperCase() ?? '';
  const flat = type.replace(/ZM?$|M$/, '');
  if (supported.test(flat)) {
    failSecondWord(reader, word);
  }
  const known = foreign.test(flat);
  const message = known
    ? `${named(type)} is not a geometry that the catalogue takes.`
    : 'This is not well-known text (WKT).';
  reader.fail({ message, expected: types }, word);
}

/** `POINT Z`, `POINT EMPTY`, and anything else between the type and its parenthesis. */
function failSecondWord(reader: WktReader, word: Found | null): never {
  const text = word?.text.toUpperCase() ?? '';
  if (text === 'EMPTY') {
    reader.fail({ message: 'An empty geometry meets nothing.', expected: '`(`' }, word);
  }
  if (/(?:Z|M|ZM)$/.test(text)) {
    const message = 'Positions have two numbers here, longitude and latitude.';
    reader.fail({ message, hint: `Leave out Z and M, and the numbers that belong to them.` }, word);
  }
  reader.fail({ expected: '`(`' }, word);
}

function readRings(reader: WktReader): Rings {
  return readList(reader, readRing);
}

function readRing(reader: WktReader): Ring {
  return reader.note(() => readList(reader, readPosition));
}

/** A position of a MULTIPOINT, with or without parentheses of its own. */
function readLoosePosition(reader: WktReader): Position {
  return reader.next() === '(' ? readBracketed(reader, readPosition) : readPosition(reader);
}

function readPosition(reader: WktReader): Position {
  return reader.note(() => {
    const position = [readNumber(reader, 'longitude'), readNumber(reader, 'latitude')] as const;
    const third = reader.number();
    if (third === null) return position;
    const message = 'A position has two numbers, longitude and latitude; this one has a third.';
    return reader.fail({ message, hint: 'Leave out the height.' }, third);
  });
}

function readNumber(reader: WktReader, what: string): number {
  const found = reader.number();
  const expected = `a number (${what})`;
  if (found === null) {
    const next = reader.next();
    const missing = next === ',' || next === ')' || next === undefined;
    return reader.fail({ expected, ...(missing ? { message: `The ${what} is missing.` } : {}) });
  }
  const value = Number(found.text);
  if (Number.isFinite(value)) return value;
  return reader.fail({ message: `${named(found.text)} is no number of degrees.`, expected }, found);
}

function readBracketed<Part>(reader: WktReader, read: (reader: WktReader) => Part): Part {
  reader.take('(');
  const part = read(reader);
  reader.take(')');
  return part;
}

function readList<Part>(reader: WktReader, read: (reader: WktReader) => Part): Part[] {
  reader.take('(');
  const parts = [read(reader)];
  while (reader.takeIf(',')) parts.push(read(reader));
  reader.take(')', '`,` or `)`');
  return parts;
}

interface Found extends Span {
  readonly text: string;
}

type Fault = Partial<Pick<FilterFinding, 'message' | 'expected' | 'hint'>>;

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

  /** The place of what comes next, behind blanks. */
  skipBlanks(): number {
    blanks.lastIndex = this.#place;
    this.#place += blanks.exec(this.#cursor.text)?.[0].length ?? 0;
    return this.#place;
  }

  word(): Found | null {
    return this.#accept(letters);
  }

  integer(): Found | null {
    return this.#accept(integer);
  }

  number(): Found | null {
    return this.#accept(number);
  }

  next(): string | undefined {
    const place = this.skipBlanks();
    return place < this.#end ? this.#cursor.text[place] : undefined;
  }

  /** Takes the symbol if it comes next. */
  takeIf(symbol: string): boolean {
    if (this.next() !== symbol) return false;
    this.#place += 1;
    return true;
  }

  take(symbol: string, expected = `\`${symbol}\``): void {
    if (!this.takeIf(symbol)) this.fail({ expected });
  }

  /** Notes where an object that is read stood. */
  note<Part extends object>(read: () => Part): Part {
    const start = this.skipBlanks();
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

  #upcoming(): Span {
    const start = this.skipBlanks();
    if (start >= this.#end) return { start: this.#end, end: this.#end + 1 };
    const found = this.#accept(anything);
    // A quote inside the geometry is doubled.
    return found ?? { start, end: start + 2 };
  }

  #accept(pattern: RegExp): Found | null {
    const start = this.skipBlanks();
    pattern.lastIndex = start;
    // No pattern takes a quote, so none reaches beyond the end.
    const text = start < this.#end ? pattern.exec(this.#cursor.text)?.[0] : undefined;
    if (text === undefined) return null;
    this.#place = start + text.length;
    return { text, start, end: this.#place };
  }
}

// Each pattern fails at a place after one way along the text: none has two parts that share a sign.
const blanksOfFootprintText = /\s*/y;

const head = /\s*(?:geography'\s*)?(?:SRID=4326;\s*)?(MULTIPOINT|POINT|MULTIPOLYGON|POLYGON)/iy;

const numberOfFootprintText = /[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?(?=[\s(),])/iy;

const tail = /\s*(?:'\s*)?$/y;

/**
 * Reads `geography'SRID=4326;POLYGON ((…))'` as records carry it; null when it cannot be read. Rings
 * may be open, cross themselves or lie outside of the globe; coordinates after the first two are left
 * out.
 */
export function readFootprintText(text: string): Geometry | null {
  const reader = new FootprintReader(text);
  const geometry = geometryOf(reader);
  return geometry !== null && reader.accept(tail) !== null ? geometry : null;
}

class FootprintReader {
  readonly #text: string;
  #place = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** What the pattern finds at this place: its group, or all of it. */
  accept(pattern: RegExp): string | null {
    pattern.lastIndex = this.#place;
    const found = pattern.exec(this.#text);
    if (found === null) return null;
    this.#place = pattern.lastIndex;
    return found[1] ?? found[0];
  }

  /** The sign behind blanks. */
  next(): string | undefined {
    this.accept(blanksOfFootprintText);
    return this.#text[this.#place];
  }

  takeIf(symbol: string): boolean {
    if (this.next() !== symbol) return false;
    this.#place += 1;
    return true;
  }

  /** Null also for a number that is too large to be one. */
  number(): number | null {
    this.accept(blanksOfFootprintText);
    const text = this.accept(numberOfFootprintText);
    const value = text === null ? Number.NaN : Number(text);
    return Number.isFinite(value) ? value : null;
  }
}

/** Reads a part; null when it is none. */
type Read<Part> = (reader: FootprintReader) => Part | null;

function geometryOf(reader: FootprintReader): Geometry | null {
  switch (reader.accept(head)?.toUpperCase()) {
    case 'POINT': {
      const [coordinates] = listOf(positionOf)(reader) ?? [];
      return coordinates === undefined ? null : { type: 'Point', coordinates };
    }
    case 'MULTIPOINT':
      return withPlaces('MultiPoint', listOf(loosePositionOf)(reader));
    case 'POLYGON':
      return withPlaces('Polygon', ringsOf(reader));
    case 'MULTIPOLYGON':
      return withPlaces('MultiPolygon', listOf(ringsOf)(reader));
    default:
      return null;
  }
}

function withPlaces<Type extends Geometry['type'], Part>(type: Type, coordinates: Part | null) {
  return coordinates === null ? null : { type, coordinates };
}

const ringOf = listOf(positionOf);

const ringsOf = listOf(ringOf);

function listOf<Part>(read: Read<Part>): Read<readonly Part[]> {
  return (reader) => {
    if (!reader.takeIf('(')) return null;
    const parts: Part[] = [];
    do {
      const part = read(reader);
      if (part === null) return null;
      parts.push(part);
    } while (reader.takeIf(','));
    return reader.takeIf(')') ? parts : null;
  };
}

/** A position of a MULTIPOINT, with or without parentheses of its own. */
function loosePositionOf(reader: FootprintReader): Position | null {
  if (!reader.takeIf('(')) return positionOf(reader);
  const position = positionOf(reader);
  return reader.takeIf(')') ? position : null;
}

function positionOf(reader: FootprintReader): Position | null {
  const [longitude, latitude] = [reader.number(), reader.number()];
  if (longitude === null || latitude === null) return null;
  while (reader.number() !== null);
  return [longitude, latitude];
}
