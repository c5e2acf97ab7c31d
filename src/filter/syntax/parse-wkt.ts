/** Reads the geometry of a filter: `SRID=4326;` and well-known text, inside the quotes. */
import type { Geometry, Position, Ring, Rings } from '../../domain/geometry.ts';
import type { Span } from '../finding.ts';
import { named } from '../hints/unexpected.ts';
import type { Cursor } from './cursor.ts';
import type { Token } from './tokenize.ts';
import { type Found, WktReader } from './wkt-reader.ts';

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
