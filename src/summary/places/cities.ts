/**
 * Finds the cities within a footprint, or the nearest one. The data, cities.json, are from GeoNames
 * (https://www.geonames.org, CC BY 4.0): places of 100,000 or more people, without suburbs of larger ones. They are
 * written by scripts/generate-places.js.
 */
import type { Box, Position } from '../../domain/filter-tree.ts';
import data from './cities.json' with { type: 'json' };
import { contains, type Footprint } from './footprint.ts';
import { degreeKm, directionTo, distanceKm, type NearPlace, radiansOf, wrapped } from './globe.ts';

export interface City {
  readonly name: string;
  /** English name of the country. */
  readonly country: string;
  readonly population: number;
  readonly position: Position;
}

/** Maximum number of cities within a footprint. */
const withinMax = 3;

/** Maximum distance of the nearest city. */
const nearestMaxKm = 500;

/** A footprint with more edges is simplified to find the nearest city. */
const edgesMax = 400;

/** Returns all cities, the largest first. */
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

/** Names of suburbs of a larger city, such as Newark of New York City. */
export const suburbs: readonly string[] = data.suburbs;

/** Returns `near` of a `Place`; empty if the nearest city is more than 500 km away. */
export function nearPlaces(
  cities: readonly City[],
  footprint: Footprint,
  centre: Position,
): NearPlace[] {
  const within: NearPlace[] = [];
  for (const city of cities) {
    if (!contains(footprint, city.position)) continue;
    within.push({ ...withoutPosition(city), distanceKm: 0, direction: null });
    if (within.length === withinMax) return within;
  }
  if (within.length > 0) return within;
  const nearest = nearestOf(cities, footprint);
  if (nearest === null) return [];
  const { city, km, edge } = nearest;
  // From a city at the edge, the direction to the centre is used.
  const direction = directionTo(city.position, km < 1 ? centre : edge);
  return [{ ...withoutPosition(city), distanceKm: roundedKm(km), direction }];
}

function withoutPosition({ name, country, population }: City) {
  return { name, country, population };
}

/** Rounds to 1 km below 20 km, 5 km below 100 km, else 10 km; at least 1 km. */
function roundedKm(km: number): number {
  const step = km < 20 ? 1 : km < 100 ? 5 : 10;
  return Math.max(1, Math.round(km / step) * step);
}

interface Nearest {
  city: City;
  km: number;
  /** Nearest point of the footprint's edge. */
  edge: Position;
}

/** Returns the nearest city, the largest of equally near ones; null if none is near enough. */
function nearestOf(cities: readonly City[], footprint: Footprint): Nearest | null {
  const points = footprint.points.map(([x, y]): Box => ({ west: x, south: y, east: x, north: y }));
  const boxes = [...footprint.parts, ...points];
  const lines = linesOf(footprint);
  let nearest: Nearest | null = null;
  for (const city of cities) {
    if (!isNear(boxes, city.position)) continue;
    const { km, edge } = nearestOnLines(lines, city.position);
    if (km > nearestMaxKm || (nearest !== null && km >= nearest.km)) continue;
    nearest = { city, km, edge };
    // A nearer city would be described alike.
    if (km < 1) break;
  }
  return nearest;
}

/** Returns true if one of the boxes may be near enough. */
function isNear(boxes: readonly Box[], [x, y]: Position): boolean {
  const reach = nearestMaxKm / degreeKm;
  const sideReach = reach / Math.max(0.01, Math.cos(radiansOf(Math.min(90, Math.abs(y) + reach))));
  return boxes.some(({ west, south, east, north }) => {
    if (y < south - reach || y > north + reach) return false;
    const half = (east - west) / 2;
    return Math.abs(wrapped(x - west - half)) <= half + sideReach;
  });
}

/** Returns the edges, each as x and y of its start and its extent to the east and north. */
function linesOf({ parts, points }: Footprint): Float64Array {
  const rings = parts.flatMap((part) => part.rings);
  const edges = rings.reduce((sum, ring) => sum + ring.length, 0);
  const step = Math.ceil(edges / edgesMax);
  const lines: number[] = [];
  for (const ring of rings) {
    for (let i = 0; i === 0 || i < ring.length - 1; i += step) {
      const [[x, y] = noPlace, [nextX, nextY] = noPlace] = [
        ring[i],
        ring[Math.min(i + step, ring.length - 1)],
      ];
      lines.push(x, y, nextX - x, nextY - y);
    }
  }
  for (const [x, y] of points) lines.push(x, y, 0, 0);
  return Float64Array.from(lines);
}

const noPlace: Position = [0, 0];

/** Returns the nearest point of the lines: found in the plane around `from`, measured on the globe. */
function nearestOnLines(lines: Float64Array, from: Position): Omit<Nearest, 'city'> {
  const [fromX, fromY] = from;
  const stretch = Math.cos(radiansOf(fromY));
  let leastSquared = Infinity;
  let [nearestX, nearestY] = noPlace;
  for (let i = 0; i + 3 < lines.length; i += 4) {
    const [lineX, lineY] = [lines[i] ?? 0, lines[i + 1] ?? 0];
    const [turned, up] = [lines[i + 2] ?? 0, lines[i + 3] ?? 0];
    let away = lineX - fromX;
    if (away > 180) away -= 360;
    else if (away < -180) away += 360;
    const [x, y, right] = [away * stretch, lineY - fromY, turned * stretch];
    const along = -(x * right + y * up);
    const length = right * right + up * up;
    const part = along <= 0 ? 0 : along >= length ? 1 : along / length;
    const [nearX, nearY] = [x + part * right, y + part * up];
    const squared = nearX * nearX + nearY * nearY;
    if (squared >= leastSquared) continue;
    leastSquared = squared;
    nearestX = lineX + part * turned;
    nearestY = lineY + part * up;
  }
  const edge: Position = [nearestX, nearestY];
  return { km: leastSquared === Infinity ? Infinity : distanceKm(from, edge), edge };
}
