/** Reads the text of a footprint in time linear in its length, whatever stands in it. */
import type { Geometry, Position } from '../domain/geometry.ts';

// Each pattern fails at a place after one way along the text: none has two parts that share a sign.
const blanks = /\s*/y;
const head = /\s*(?:geography'\s*)?(?:SRID=4326;\s*)?(MULTIPOINT|POINT|MULTIPOLYGON|POLYGON)/iy;
const number = /[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?(?=[\s(),])/iy;
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
    this.accept(blanks);
    return this.#text[this.#place];
  }

  takeIf(symbol: string): boolean {
    if (this.next() !== symbol) return false;
    this.#place += 1;
    return true;
  }

  /** Null also for a number that is too large to be one. */
  number(): number | null {
    this.accept(blanks);
    const text = this.accept(number);
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
