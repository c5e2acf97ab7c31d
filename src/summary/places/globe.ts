/** Distances and directions on the globe, taken as a sphere. */
import type { Position } from '../../domain/filter-tree.ts';

const radiusKm = 6371.0088;

/** The length of one degree of latitude. */
export const degreeKm = (Math.PI / 180) * radiusKm;

export function radiansOf(degrees: number): number {
  return (degrees * Math.PI) / 180;
}

/** Area of a ring, closed or not, on the sphere: between each side and the equator, as far as the sine of latitude is linear on it. */
export function ringAreaKm2(ring: readonly Position[]): number {
  let sum = 0;
  for (const [i, [x, y]] of ring.entries()) {
    const [fromX, fromY] = ring.at(i - 1) ?? [x, y];
    sum += radiansOf(x - fromX) * (Math.sin(radiansOf(y)) + Math.sin(radiansOf(fromY)));
  }
  return Math.abs(sum / 2) * radiusKm ** 2;
}

/** Longitudes from -180 up to, not including, 180; for differences of longitudes: the short way. */
export function wrapped(longitude: number): number {
  return longitude - 360 * Math.floor((longitude + 180) / 360);
}

/** Along the great circle, by the haversine formula. */
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

/** Where one sets out for the other place along the great circle, in eight names. */
export function directionTo([fromX, fromY]: Position, [toX, toY]: Position): string {
  const [from, to, turn] = [radiansOf(fromY), radiansOf(toY), radiansOf(toX - fromX)];
  const east = Math.sin(turn) * Math.cos(to);
  const north = Math.cos(from) * Math.sin(to) - Math.sin(from) * Math.cos(to) * Math.cos(turn);
  const eighth = Math.round(Math.atan2(east, north) / (Math.PI / 4));
  return directions[(eighth + 8) % 8] ?? 'north';
}

/** The middle of weighted places; null where they lie evenly round the globe. */
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
  /** The English name. */
  name: string;
  /** The part of the footprint that lies in it, 0 to 1; roughly, and never 0. */
  share: number;
}

export interface NearPlace {
  name: string;
  /** The English name of its country. */
  country: string;
  population: number;
  /** From the edge of the footprint, roughly; 0 for a place within it. */
  distanceKm: number;
  /** From the place to the footprint's nearest edge, such as `north-east`; null for a place within it. */
  direction: string | null;
}

export interface Place {
  /** Countries and territories, and seas and oceans, each with the largest share first. */
  countries: readonly PlaceShare[];
  seas: readonly PlaceShare[];
  /** The largest places within the footprint, at most three; where there is none, the nearest one. */
  near: readonly NearPlace[];
  /** Of the footprint on the globe. */
  areaSquareKm: number;
  centre: { longitude: number; latitude: number };
}
