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

export interface Outline {
  /** x1, y1, x2, y2 of each edge; x runs on across the antimeridian. */
  readonly edges: readonly number[];
  /** True where the pole itself is on the ring's inner side. */
  readonly northInside: boolean;
  readonly southInside: boolean;
}

/**
 * The outline of a ring. A ring that goes round a pole encloses the nearer one, which is to say the
 * smaller area. A rectangle's sides along a pole or on one meridian, all round the globe, are no
 * border: they are taken away.
 */
export function outlineOf(ring: Ring): Outline {
  const unwrapped = unwrapRing(ring);
  const pole = enclosedPole(unwrapped);
  const alongNorth = goesRoundAt(unwrapped, 90);
  const alongSouth = goesRoundAt(unwrapped, -90);
  const edges = edgesOf(unwrapped, alongNorth, alongSouth);
  return {
    edges: unwrapped.turns === 0 ? withoutSeam(edges) : edges,
    northInside: (pole === 'north') !== alongNorth,
    southInside: (pole === 'south') !== alongSouth,
  };
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

/** Whether the edges that lie on a pole's latitude make a full turn. */
function goesRoundAt({ xs, ys }: UnwrappedRing, latitude: number): boolean {
  let sum = 0;
  for (let i = 1; i < xs.length; i += 1) {
    if (ys[i] === latitude && ys[i - 1] === latitude) sum += (xs[i] ?? 0) - (xs[i - 1] ?? 0);
  }
  return Math.abs(sum) === 360;
}

function edgesOf({ xs, ys }: UnwrappedRing, noNorth: boolean, noSouth: boolean): number[] {
  const edges: number[] = [];
  for (let i = 1; i < xs.length; i += 1) {
    const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = [xs[i - 1], ys[i - 1], xs[i], ys[i]];
    if (noNorth && y1 === 90 && y2 === 90) continue;
    if (noSouth && y1 === -90 && y2 === -90) continue;
    if (x1 !== x2 || y1 !== y2) edges.push(x1, y1, x2, y2);
  }
  const [x = 0, y = 0] = [xs[0], ys[0]];
  // A ring of one place is still that place.
  return edges.length > 0 || noNorth || noSouth ? edges : [x, y, x, y];
}

/** Takes away where the west and the east end of a ring right round the globe lie on each other. */
function withoutSeam(edges: readonly number[]): readonly number[] {
  let west = Infinity;
  let east = -Infinity;
  for (let i = 0; i < edges.length; i += 2) {
    west = Math.min(west, edges[i] ?? 0);
    east = Math.max(east, edges[i] ?? 0);
  }
  if (east - west !== 360) return edges;
  const kept: number[] = [];
  // By how many of the sides on the seam there are more, or fewer, north of a latitude.
  const changes = new Map<number, number>();
  const change = (latitude: number, by: number) =>
    changes.set(latitude, (changes.get(latitude) ?? 0) + by);
  for (let i = 0; i < edges.length; i += 4) {
    const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = edges.slice(i, i + 4);
    if (x1 !== x2 || (x1 !== west && x1 !== east)) kept.push(x1, y1, x2, y2);
    else {
      change(Math.min(y1, y2), 1);
      change(Math.max(y1, y2), -1);
    }
  }
  const heights = [...changes.keys()].sort((a, b) => a - b);
  let layers = 0;
  for (const [i, south] of heights.entries()) {
    layers += changes.get(south) ?? 0;
    const north = heights[i + 1] ?? south;
    if (layers % 2 === 1) kept.push(west, south, west, north);
  }
  return kept;
}
