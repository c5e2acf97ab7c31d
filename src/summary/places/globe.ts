/** Distances and directions on the globe, as a sphere. */
import type { Position } from '../../domain/filter-tree.ts';

const radiusKm = 6371.0088;

/** Length of one degree of latitude. */
export const degreeKm = (Math.PI / 180) * radiusKm;

export function radiansOf(degrees: number): number {
  return (degrees * Math.PI) / 180;
}

/**
 * Returns the area of a ring, closed or not, on the sphere: sums the areas between each side and the equator,
 * assuming that the sine of latitude is linear along the side.
 */
export function ringAreaKm2(ring: readonly Position[]): number {
  let sum = 0;
  for (const [i, [x, y]] of ring.entries()) {
    const [fromX, fromY] = ring.at(i - 1) ?? [x, y];
    sum += radiansOf(x - fromX) * (Math.sin(radiansOf(y)) + Math.sin(radiansOf(fromY)));
  }
  return Math.abs(sum / 2) * radiusKm ** 2;
}

/** Wraps a longitude to -180 (inclusive) to 180 (exclusive), or a difference of longitudes to the short way. */
export function wrapped(longitude: number): number {
  return longitude - 360 * Math.floor((longitude + 180) / 360);
}

/** Returns the great-circle distance, by the haversine formula. */
export function distanceKm([fromX, fromY]: Position, [toX, toY]: Position): number {
  const rise = Math.sin(radiansOf(toY - fromY) / 2) ** 2;
  const turn = Math.sin(radiansOf(toX - fromX) / 2) ** 2;
  const part = rise + Math.cos(radiansOf(fromY)) * Math.cos(radiansOf(toY)) * turn;
  return 2 * radiusKm * Math.asin(Math.min(1, Math.sqrt(part)));
}

const directions = [
  'north',
  'north-east',
  'east',
  'south-east',
  'south',
  'south-west',
  'west',
  'north-west',
] as const;

/** Returns the initial direction of the great circle to another point, as one of eight names. */
export function directionTo([fromX, fromY]: Position, [toX, toY]: Position): string {
  const [from, to, turn] = [radiansOf(fromY), radiansOf(toY), radiansOf(toX - fromX)];
  const east = Math.sin(turn) * Math.cos(to);
  const north = Math.cos(from) * Math.sin(to) - Math.sin(from) * Math.cos(to) * Math.cos(turn);
  const eighth = Math.round(Math.atan2(east, north) / (Math.PI / 4));
  return directions[(eighth + 8) % 8] ?? 'north';
}

/** Returns the centre of weighted points; null if they are spread evenly round the globe. */
export function middleOf(
  places: Iterable<{ position: Position; weight: number }>,
): Position | null {
  let [x, y, z, sum] = [0, 0, 0, 0];
  for (const { position, weight } of places) {
    const [longitude, latitude] = [radiansOf(position[0]), radiansOf(position[1])];
    x += weight * Math.cos(latitude) * Math.cos(longitude);
    y += weight * Math.cos(latitude) * Math.sin(longitude);
    z += weight * Math.sin(latitude);
    sum += weight;
  }
  if (!(Math.hypot(x, y, z) > 1e-6 * sum)) return null;
  const degrees = 180 / Math.PI;
  return [Math.atan2(y, x) * degrees, Math.atan2(z, Math.hypot(x, y)) * degrees];
}

export interface PlaceShare {
  /** English name. */
  name: string;
  /** Approximate share of the footprint, above 0 and at most 1. */
  share: number;
}

export interface NearPlace {
  name: string;
  /** English name of the country. */
  country: string;
  population: number;
  /** Approximate distance from the edge of the footprint; 0 for a city within it. */
  distanceKm: number;
  /** Direction from the city to the nearest edge, such as `north-east`; null for a city within the footprint. */
  direction: string | null;
}

export interface Place {
  /** Countries and territories, by share. */
  countries: readonly PlaceShare[];
  /** Seas and oceans, by share. */
  seas: readonly PlaceShare[];
  /** The largest cities within the footprint, at most three; if there is none, the nearest one. */
  near: readonly NearPlace[];
  /** Area of the footprint. */
  areaSquareKm: number;
  centre: { longitude: number; latitude: number };
}
