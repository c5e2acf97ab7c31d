/** Form of footprints in the index: compact, because they would otherwise be a third of its size. */
import type { Geometry } from '../../domain/filter-tree.ts';

/** Differences of microdegrees, or JSON for coordinates with more decimals. */
export type StoredFootprint = Uint8Array | string;

/** Types with the nesting of their coordinates: 0 is one position. A type's number is its index. */
const nestings = [
  ['Point', 0],
  ['MultiPoint', 1],
  ['Polygon', 2],
  ['MultiPolygon', 3],
] as const satisfies readonly (readonly [Geometry['type'], number])[];

/** The catalogue's footprints have six decimals. */
const unitsPerDegree = 1_000_000;
const unitsMax = 360 * unitsPerDegree;

type Nested = number | readonly Nested[];

/**
 * Returns the number of the type, then each list with its length before it. A position is its difference from the one
 * before, mostly three bytes for each axis.
 */
export function storedFootprint(geometry: Geometry): StoredFootprint {
  const type = nestings.findIndex(([name]) => name === geometry.type);
  const bytes: number[] = [type];
  const last = [0, 0];
  const add = (coordinates: Nested, nesting: number, axis = 0): boolean => {
    if (typeof coordinates === 'number') {
      const units = Math.round(coordinates * unitsPerDegree);
      if (units / unitsPerDegree !== coordinates || Math.abs(units) > unitsMax) return false;
      addInteger(bytes, units - (last[axis] ?? 0));
      last[axis] = units;
      return true;
    }
    if (nesting > 0) addInteger(bytes, coordinates.length);
    else if (coordinates.length !== 2) return false;
    return coordinates.every((one, i) => add(one, nesting - 1, i));
  };
  const isExact = add(geometry.coordinates, nestings[type]?.[1] ?? 0);
  return isExact ? Uint8Array.from(bytes) : JSON.stringify(geometry);
}

/** Returns the geometry that was stored. */
export function footprintGeometry(stored: StoredFootprint): Geometry {
  // Written by `storedFootprint` from a geometry, as is the other form.
  if (typeof stored === 'string') return JSON.parse(stored) as Geometry;
  const [type, nesting] = nestings[stored[0] ?? 0] ?? nestings[0];
  const next = integersAfter(stored, 1);
  let [x, y] = [0, 0];
  const read = (depth: number): Nested => {
    if (depth > 0) return Array.from({ length: next() }, () => read(depth - 1));
    x += next();
    y += next();
    return [x / unitsPerDegree, y / unitsPerDegree];
  };
  return { type, coordinates: read(nesting) } as Geometry;
}

/** Adds an integer in groups of seven bits, the lowest first; the sign is the lowest bit. */
function addInteger(bytes: number[], value: number): void {
  let left = value < 0 ? -2 * value - 1 : 2 * value;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push((left % 0x80) + 0x80);
  bytes.push(left);
}

/** Returns a function that reads the next integer. */
function integersAfter(bytes: Uint8Array, start: number): () => number {
  let at = start;
  return () => {
    let [value, scale] = [0, 1];
    for (; (bytes[at] ?? 0) >= 0x80; at += 1) {
      value += ((bytes[at] ?? 0) - 0x80) * scale;
      scale *= 0x80;
    }
    value += (bytes[at] ?? 0) * scale;
    at += 1;
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  };
}
