/**
 * A ring as a line on the globe: its edges, and which of the poles it goes round.
 *
 * With that, what is inside can be told without any closing edge along a pole or a meridian: a line
 * drawn north from a place ends at the pole, and every edge that it crosses changes the side.
 */
import type { Ring } from '../../domain/geometry.ts';
import { type UnwrappedRing, unwrapRing } from './unwrap.ts';

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
