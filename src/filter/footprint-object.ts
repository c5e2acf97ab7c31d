/** Reads the place of a record from its GeoJSON as it is, without judging it; null when unreadable. */
import type { Geometry, Position, Ring, Rings } from '../domain/geometry.ts';

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
