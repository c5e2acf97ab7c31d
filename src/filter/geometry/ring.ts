/** Rings laid out in the plane: longitudes run on across the antimeridian instead of jumping. */
import type { Geometry, Position, Ring, Rings } from '../../domain/filter-tree.ts';

/**
 * Longitudes are held in steps of 2^-40 degrees, a tenth of a micrometre on the ground. So adding whole turns is
 * exact, and what touches also touches on the other side of the globe.
 */
const stepsPerDegree = 2 ** 40;

export interface UnwrappedRing {
  /** One place for each position, and the first once more where the ring was open. */
  readonly xs: Float64Array;
  readonly ys: Float64Array;
  /** How often the ring goes round the globe, eastwards. */
  readonly turns: number;
}

/** The polygons of a geometry; none for points. */
export function polygonsOf(geometry: Geometry): readonly Rings[] {
  if (geometry.type === 'Polygon') return [geometry.coordinates];
  return geometry.type === 'MultiPolygon' ? geometry.coordinates : [];
}

/** The points of a geometry; none for polygons. */
export function pointsOf(geometry: Geometry): readonly Position[] {
  if (geometry.type === 'Point') return [geometry.coordinates];
  return geometry.type === 'MultiPoint' ? geometry.coordinates : [];
}

/** All positions of a geometry. */
export function positionsOf(geometry: Geometry): readonly Position[] {
  return [...pointsOf(geometry), ...polygonsOf(geometry).flat(2)];
}

/** A longitude on the grid, within -180 to 180 degrees; both of these stay as they are. */
export function snappedLongitude(longitude: number): number {
  const rest = longitude % 360;
  const turned = rest > 180 ? rest - 360 : rest < -180 ? rest + 360 : rest;
  const within = Math.abs(longitude) <= 180 ? longitude : turned;
  return Math.round(within * stepsPerDegree) / stepsPerDegree;
}

/** Latitudes beyond the poles are the poles. */
export function clampedLatitude(latitude: number): number {
  return Math.min(90, Math.max(-90, latitude));
}

/** Number of whole turns, counted eastwards, by which a longitude is beyond -180 up to, not including, 180. */
export function turnsOf(x: number): number {
  return Math.floor((x + 180) / 360);
}

export function isSamePlace(a: Position | undefined, b: Position | undefined): boolean {
  return a?.[0] === b?.[0] && a?.[1] === b?.[1];
}

/** True where a ring comes back to its first position. */
export function isClosed(ring: Ring): boolean {
  return ring.length > 1 && isSamePlace(ring[0], ring.at(-1));
}

/** The ring with its first position at the end. */
export function closedRing(ring: Ring): Ring {
  return isClosed(ring) ? ring : [...ring, ...ring.slice(0, 1)];
}

/**
 * The ring in the plane, closed if it was not. An edge is as wide as written up to 180 degrees; a wider one goes the
 * short way, across the antimeridian. One of exactly 360 degrees stays: a side of a rectangle round the globe.
 */
export function unwrapRing(ring: Ring): UnwrappedRing {
  const positions = closedRing(ring);
  const xs = new Float64Array(positions.length);
  const ys = new Float64Array(positions.length);
  let before = 0;
  for (const [i, [longitude, latitude]] of positions.entries()) {
    const x = snappedLongitude(longitude);
    xs[i] = i === 0 ? x : (xs[i - 1] ?? 0) + shortWay(x - before);
    ys[i] = clampedLatitude(latitude);
    before = x;
  }
  return { xs, ys, turns: Math.round(((xs.at(-1) ?? 0) - (xs[0] ?? 0)) / 360) };
}

/** The width of an edge from the difference of its longitudes. */
function shortWay(difference: number): number {
  const width = Math.abs(difference);
  if (width <= 180 || width === 360) return difference;
  return difference - 360 * Math.round(difference / 360);
}

/** The pole that a ring goes round: the one nearer to its mean latitude by width; null if it does not. */
export function enclosedPole({ xs, ys, turns }: UnwrappedRing): 'north' | 'south' | null {
  if (turns % 2 === 0) return null;
  let sum = 0;
  for (let i = 1; i < xs.length; i += 1) {
    sum += ((xs[i] ?? 0) - (xs[i - 1] ?? 0)) * ((ys[i] ?? 0) + (ys[i - 1] ?? 0));
  }
  return sum * turns >= 0 ? 'north' : 'south';
}
