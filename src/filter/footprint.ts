/** Reads the place of a record as it is, without judging it: text or GeoJSON; null when unreadable. */
import type { Geometry, Position, Ring, Rings } from '../domain/geometry.ts';

const form =
  /^\s*(?:geography')?\s*(?:SRID=4326;)?\s*(POINT|MULTIPOINT|POLYGON|MULTIPOLYGON)\s*(\(.*\))\s*'?\s*$/is;
const types: Readonly<Record<string, Geometry['type']>> = {
  POINT: 'Point',
  MULTIPOINT: 'MultiPoint',
  POLYGON: 'Polygon',
  MULTIPOLYGON: 'MultiPolygon',
};
const number = String.raw`[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?`;
/** A position with any further coordinates, which are of no use. */
const position = new RegExp(String.raw`(${number})\s+(${number})(?:\s+${number})*`, 'gi');

/**
 * Reads `geography'SRID=4326;POLYGON ((…))'` as records carry it. Rings may be open, cross themselves
 * or lie outside of the globe.
 */
export function readFootprintText(text: string): Geometry | null {
  const [, typeName = '', body = ''] = form.exec(text) ?? [];
  const type = types[typeName.toUpperCase()];
  if (type === undefined) return null;
  // With square brackets and commas it is the coordinates of GeoJSON; the rest is up to JSON's reader.
  const pairs = body.replace(
    position,
    (_all, x: string, y: string) => `[${Number(x)},${Number(y)}]`,
  );
  const bare = type === 'MultiPoint' ? pairs.replaceAll(/\(\s*(\[[^\]]*\])\s*\)/g, '$1') : pairs;
  const json = bare.replaceAll('(', '[').replaceAll(')', ']');
  try {
    const coordinates: unknown = JSON.parse(json);
    return readFootprintObject({
      type,
      coordinates: type === 'Point' && Array.isArray(coordinates) ? coordinates[0] : coordinates,
    });
  } catch {
    return null;
  }
}

/** Reads a record's GeoFootprint: GeoJSON. */
export function readFootprintObject(value: unknown): Geometry | null {
  if (typeof value !== 'object' || value === null) return null;
  const { type, coordinates } = value as { type?: unknown; coordinates?: unknown };
  if (!hasPlaces(coordinates)) return null;
  if (type === 'Point' && isPosition(coordinates)) return { type, coordinates };
  if (type === 'MultiPoint' && isRing(coordinates)) return { type, coordinates };
  if (type === 'Polygon' && isRings(coordinates)) return { type, coordinates };
  if (type === 'MultiPolygon' && isListOf(coordinates, isRings)) return { type, coordinates };
  return null;
}

function hasPlaces(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

function isPosition(value: unknown): value is Position {
  return Array.isArray(value) && Number.isFinite(value[0]) && Number.isFinite(value[1]);
}

function isRing(value: unknown): value is Ring {
  return isListOf(value, isPosition);
}

function isRings(value: unknown): value is Rings {
  return isListOf(value, isRing);
}

function isListOf<Item>(value: unknown, isItem: (item: unknown) => item is Item): value is Item[] {
  return Array.isArray(value) && value.every(isItem);
}
