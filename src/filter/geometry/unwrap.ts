/** Lays rings out in the plane: longitudes that run on across the antimeridian instead of jumping. */
import type { Position, Ring } from '../../domain/geometry.ts';

/**
 * Longitudes are held in steps of 2^-40 degrees, a tenth of a micrometre on the ground. So adding or
 * taking away whole turns is exact, and what touches goes on touching on the other side of the globe.
 */
const stepsPerDegree = 2 ** 40;

export interface UnwrappedRing {
  /** One place for each position, and the first once more where the ring is closed by it. */
  readonly xs: Float64Array;
  readonly ys: Float64Array;
  /** How often the ring goes round the globe on its way back to its first position, eastwards. */
  readonly turns: number;
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

/** True where a ring comes back to its first position. */
export function isClosed(ring: Ring): boolean {
  const [first, last] = [ring[0], ring.at(-1)];
  return ring.length > 1 && first?.[0] === last?.[0] && first?.[1] === last?.[1];
}

/**
 * The ring in the plane, closed if it was not. An edge is as wide as written up to 180 degrees; a
 * wider one goes the short way, across the antimeridian. One of exactly 360 degrees stays: it is a
 * side of a rectangle round the whole globe.
 */
export function unwrapRing(ring: Ring): UnwrappedRing {
  const positions: readonly Position[] = isClosed(ring) ? ring : [...ring, ...ring.slice(0, 1)];
  const xs = new Float64Array(positions.length);
  const ys = new Float64Array(positions.length);
  let before = 0;
  for (const [i, [longitude, latitude]] of positions.entries()) {
    const x = snappedLongitude(longitude);
    xs[i] = i === 0 ? x : (xs[i - 1] ?? 0) + shortWay(x - before);
    ys[i] = clampedLatitude(latitude);
    before = x;
  }
  const turns = Math.round(((xs.at(-1) ?? 0) - (xs[0] ?? 0)) / 360);
  return { xs, ys, turns };
}

/** The width of an edge from the difference of its longitudes. */
function shortWay(difference: number): number {
  const width = Math.abs(difference);
  if (width <= 180 || width === 360) return difference;
  return difference - 360 * Math.round(difference / 360);
}
