/** A ring as a path without repeated positions, to see how it lies to itself and to others. */
import type { Position, Ring } from '../../domain/geometry.ts';
import { enclosedPole } from './outline.ts';
import { type UnwrappedRing, unwrapRing } from './unwrap.ts';

export interface RingPath {
  /** The part of the geometry that it is a ring of, and its place there: 0 is the outline. */
  readonly part: number;
  readonly place: number;
  /** The corners as written; edge `i` goes from corner `i` to the next. */
  readonly corners: readonly Position[];
  readonly xs: readonly number[];
  readonly ys: readonly number[];
  /** What the longitude has grown by after one time round: 0, but for rings round a pole. */
  readonly turn: number;
  /** The extent; up to the pole that the ring goes round. */
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
  /** Whether what the ring encloses is to the left of its way. */
  readonly leftIsInside: boolean;
}

export function ringPath(ring: Ring, part: number, place: number): RingPath {
  const unwrapped = unwrapRing(ring);
  const corners: Position[] = [];
  const xs: number[] = [];
  const ys: number[] = [];
  for (const [i, corner] of ring.slice(0, -1).entries()) {
    const [x = 0, y = 0] = [unwrapped.xs[i], unwrapped.ys[i]];
    if (x === xs.at(-1) && y === ys.at(-1)) continue;
    corners.push(corner);
    xs.push(x);
    ys.push(y);
  }
  // The last corner may repeat the first, too.
  while (xs.length > 1 && xs.at(-1) === xs[0] && ys.at(-1) === ys[0]) {
    corners.pop();
    xs.pop();
    ys.pop();
  }
  const pole = enclosedPole(unwrapped);
  const [west, east] = rangeOf(unwrapped.xs);
  const [south, north] = rangeOf(unwrapped.ys);
  return {
    part,
    place,
    corners,
    xs,
    ys,
    turn: 360 * unwrapped.turns,
    west,
    south: pole === 'south' ? -90 : south,
    east,
    north: pole === 'north' ? 90 : north,
    leftIsInside: leftIsInside(unwrapped, pole),
  };
}

/** The least and the greatest; by a loop, as no call takes a ring's worth of arguments. */
function rangeOf(values: Float64Array): [number, number] {
  let [least, greatest] = [Infinity, -Infinity];
  for (const value of values) {
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  return [least, greatest];
}

/** A corner in the plane; numbers go on before the first and after the last. */
export function cornerAt(path: RingPath, i: number): readonly [x: number, y: number] {
  const count = path.xs.length;
  const times = Math.floor(i / count);
  const at = i - times * count;
  return [(path.xs[at] ?? 0) + times * path.turn, path.ys[at] ?? 0];
}

/** Whether two edges of a path follow each other. */
export function areNeighbours(path: RingPath, i: number, j: number): boolean {
  const distance = Math.abs(i - j);
  return distance === 1 || distance === path.xs.length - 1;
}

function leftIsInside(unwrapped: UnwrappedRing, pole: 'north' | 'south' | null): boolean {
  // Going east, north is to the left.
  if (pole !== null) return unwrapped.turns > 0 === (pole === 'north');
  const { xs, ys } = unwrapped;
  const [x0 = 0, y0 = 0] = [xs[0], ys[0]];
  let doubledArea = 0;
  for (let i = 1; i < xs.length; i += 1) {
    const [ax, ay] = [(xs[i - 1] ?? 0) - x0, (ys[i - 1] ?? 0) - y0];
    const [bx, by] = [(xs[i] ?? 0) - x0, (ys[i] ?? 0) - y0];
    doubledArea += ax * by - bx * ay;
  }
  return doubledArea > 0;
}
