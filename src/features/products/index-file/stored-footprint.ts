/** Form of footprints in the index: compact, because they would otherwise be a third of its size. */
import type { AnyGeometry } from '../../../filter/filter-tree.ts';

/** Differences of coordinates, or JSON for coordinates with more decimals and for collections. */
export type StoredFootprint = Uint8Array | string;

/** Types with the nesting of their coordinates: 0 is one position. */
const nestings = [
  ['Point', 0],
  ['MultiPoint', 1],
  ['LineString', 1],
  ['MultiLineString', 2],
  ['Polygon', 2],
  ['MultiPolygon', 3],
] as const satisfies readonly (readonly [AnyGeometry['type'], number])[];

/** Footprints of the catalogue have six decimals, those of Sentinel-2 twelve. */
const unitsPerDegree = [1e6, 1e12] as const;

type Nested = number | readonly Nested[];

/**
 * Returns the number of type and unit, then each list with its length before it. A position is its difference from the
 * one before, three to six bytes for each axis.
 */
export function storedFootprint(geometry: AnyGeometry): StoredFootprint {
  return compact(geometry, 0) ?? compact(geometry, 1) ?? JSON.stringify(geometry);
}

/** Returns null for a collection, and if a coordinate is not a multiple of the unit, or out of range. */
function compact(geometry: AnyGeometry, unit: 0 | 1): Uint8Array | null {
  if (geometry.type === 'GeometryCollection') return null;
  const { type, coordinates } = geometry;
  const number = nestings.findIndex(([name]) => name === type);
  const scale = unitsPerDegree[unit];
  const bytes = [unit * nestings.length + number];
  const last = [0, 0];
  const add = (value: Nested, nesting: number, axis = 0): boolean => {
    if (typeof value === 'number') {
      const units = Math.round(value * scale);
      if (units / scale !== value || Math.abs(value) > 360) return false;
      addInteger(bytes, units - (last[axis] ?? 0));
      last[axis] = units;
      return true;
    }
    if (nesting > 0) addInteger(bytes, value.length);
    else if (value.length !== 2) return false;
    return value.every((one, i) => add(one, nesting - 1, i));
  };
  return add(coordinates, nestings[number]?.[1] ?? 0) ? Uint8Array.from(bytes) : null;
}

/** Returns the geometry that was stored. */
export function footprintGeometry(stored: StoredFootprint): AnyGeometry {
  // Written by `storedFootprint` from a geometry, as is the other form.
  if (typeof stored === 'string') return JSON.parse(stored) as AnyGeometry;
  const [first = 0] = stored;
  const [type, nesting] = nestings[first % nestings.length] ?? nestings[0];
  const scale = unitsPerDegree[first < nestings.length ? 0 : 1];
  const next = integersAfter(stored, 1);
  let [x, y] = [0, 0];
  const read = (depth: number): Nested => {
    if (depth > 0) return Array.from({ length: next() }, () => read(depth - 1));
    x += next();
    y += next();
    return [x / scale, y / scale];
  };
  return { type, coordinates: read(nesting) } as AnyGeometry;
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
