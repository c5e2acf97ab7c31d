/** Form of footprints in the index: compact, because they would otherwise be a third of its size. */
import type { Geometry } from '../../domain/filter-tree.ts';

/** Microdegrees as 32-bit integers, or JSON for coordinates with more decimals. */
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

type Nested = number | readonly Nested[];

/** Returns the number of the type, then each list with its length before it, then positions. */
export function storedFootprint(geometry: Geometry): StoredFootprint {
  const type = nestings.findIndex(([name]) => name === geometry.type);
  const numbers = [type];
  const isExact = add(numbers, geometry.coordinates, nestings[type]?.[1] ?? 0);
  return isExact ? new Uint8Array(Int32Array.from(numbers).buffer) : JSON.stringify(geometry);
}

/** Adds coordinates; returns false if 32-bit integers cannot represent them exactly. */
function add(numbers: number[], coordinates: Nested, nesting: number): boolean {
  if (typeof coordinates === 'number') {
    const units = Math.round(coordinates * unitsPerDegree);
    numbers.push(units);
    return units / unitsPerDegree === coordinates && units === (units | 0);
  }
  if (nesting > 0) numbers.push(coordinates.length);
  else if (coordinates.length !== 2) return false;
  return coordinates.every((one) => add(numbers, one, nesting - 1));
}

/** Returns the geometry that was stored. */
export function footprintGeometry(stored: StoredFootprint): Geometry {
  // Written by `storedFootprint` from a geometry, as is the other form.
  if (typeof stored === 'string') return JSON.parse(stored) as Geometry;
  const numbers = new Int32Array(Uint8Array.from(stored).buffer);
  const [type, nesting] = nestings[numbers[0] ?? 0] ?? nestings[0];
  let at = 1;
  const degrees = () => (numbers[at++] ?? 0) / unitsPerDegree;
  const read = (depth: number): Nested =>
    depth === 0
      ? [degrees(), degrees()]
      : Array.from({ length: numbers[at++] ?? 0 }, () => read(depth - 1));
  return { type, coordinates: read(nesting) } as Geometry;
}
