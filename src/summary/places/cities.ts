/**
 * The large places within a footprint, or the nearest one. The data, cities.json, are those of
 * GeoNames (https://www.geonames.org, CC BY 4.0): places of 100,000 people and more, but for suburbs
 * of larger ones, written by scripts/generate-places.js.
 */
import type { Position, Ring } from '../../domain/geometry.ts';
import data from './cities.json' with { type: 'json' };
import { type Footprint, holds } from './footprint.ts';
import { degreeKm, directionTo, distanceKm, radiansOf, wrapped } from './globe.ts';
import type { NearPlace } from './place.ts';

export interface City {
  readonly name: string;
  /** The English name of its country. */
  readonly country: string;
  readonly population: number;
  readonly position: Position;
}

/** How many places within a footprint are told. */
const withinMax = 3;

/** How far the nearest place may be. */
const nearestMaxKm = 500;

/** All, the largest first. */
export function openCities(): City[] {
  const countries = new Map(Object.entries(data.countries));
  return data.cities.map((line) => {
    const [name = '', code = '', longitude, latitude, population] = line.split(';');
    return {
      name,
      country: countries.get(code) ?? code,
      population: Number(population),
      position: [Number(longitude), Number(latitude)],
    };
  });
}

/** Those that go by a larger one beside them, such as Newark by New York City: their names. */
export const suburbs: readonly string[] = data.suburbs;

/** See `Place`: its `near`. Empty where the nearest is more than 500 km away. */
export function nearPlaces(
  cities: readonly City[],
  footprint: Footprint,
  centre: Position,
): NearPlace[] {
  const within: NearPlace[] = [];
  for (const city of cities) {
    if (!holds(footprint, city.position)) continue;
    within.push({ ...withoutPosition(city), distanceKm: 0, direction: null });
    if (within.length === withinMax) return within;
  }
  if (within.length > 0) return within;
  let nearest: { city: City; km: number } | null = null;
  for (const city of cities) {
    const km = kmToEdge(footprint, city.position);
    if (km <= (nearest?.km ?? nearestMaxKm)) nearest = { city, km };
  }
  if (nearest === null) return [];
  const { city, km } = nearest;
  const direction = directionTo(city.position, centre);
  return [{ ...withoutPosition(city), distanceKm: roundedKm(km), direction }];
}

function withoutPosition({ name, country, population }: City) {
  return { name, country, population };
}

/** In steps of 1 km up to 20, of 5 up to 100, then of 10; never 0. */
function roundedKm(km: number): number {
  const step = km < 20 ? 1 : km < 100 ? 5 : 10;
  return Math.max(1, Math.round(km / step) * step);
}

/** Infinity where it is certainly more than the largest that counts. */
function kmToEdge({ parts, points }: Footprint, from: Position): number {
  let km = Infinity;
  for (const part of parts) {
    if (!isNear(part, from)) continue;
    for (const ring of part.rings) km = Math.min(km, kmToRing(ring, from));
  }
  for (const point of points) {
    const [west, south] = point;
    if (isNear({ west, south, east: west, north: south }, from))
      km = Math.min(km, distanceKm(from, point));
  }
  return km;
}

function isNear(box: { west: number; south: number; east: number; north: number }, at: Position) {
  const [x, y] = at;
  const reach = nearestMaxKm / degreeKm;
  if (y < box.south - reach || y > box.north + reach) return false;
  const sideReach = reach / Math.max(0.01, Math.cos(radiansOf(Math.min(90, Math.abs(y) + reach))));
  const half = (box.east - box.west) / 2;
  return Math.abs(wrapped(x - box.west - half)) <= half + sideReach;
}

/** To the nearest place of its edges: found in the plane round the place, measured on the globe. */
function kmToRing(ring: Ring, from: Position): number {
  const stretch = Math.cos(radiansOf(from[1]));
  let nearest: { position: Position; squared: number } | null = null;
  for (let i = Math.min(1, ring.length - 1); i < ring.length; i += 1) {
    const [[x1, y1] = from, [x2, y2] = from] = [ring[Math.max(0, i - 1)], ring[i]];
    const [x, y] = [wrapped(x1 - from[0]) * stretch, y1 - from[1]];
    const [right, up] = [(x2 - x1) * stretch, y2 - y1];
    const length = right ** 2 + up ** 2;
    const part = length === 0 ? 0 : Math.min(1, Math.max(0, -(x * right + y * up) / length));
    const squared = (x + part * right) ** 2 + (y + part * up) ** 2;
    if (nearest !== null && nearest.squared <= squared) continue;
    nearest = { position: [x1 + part * (x2 - x1), y1 + part * (y2 - y1)], squared };
  }
  return nearest === null ? Infinity : distanceKm(from, nearest.position);
}
