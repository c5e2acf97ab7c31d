/** Finds points where rings of a geometry cross or overlap each other, or cross or touch themselves. */
import Flatbush from 'flatbush';
import { orient2d } from 'robust-predicates';
import type { Box, Position, Ring } from '../../domain/filter-tree.ts';
import { type Effort, onOneSide, spend } from './intersects.ts';
import { enclosedPole, extentOf, turnsOf, unwrapRing } from './ring.ts';

/** A ring as a path in the plane without repeated positions. */
export interface RingPath extends Readonly<Box> {
  /** Index of the polygon in the geometry. */
  readonly part: number;
  /** Index of the ring in its polygon; 0 is the outline. */
  readonly ringIndex: number;
  /** Corners as written; edge `i` goes from corner `i` to the next. */
  readonly corners: readonly Position[];
  readonly xs: readonly number[];
  readonly ys: readonly number[];
  /** Change of the longitude after one round: 0, except for rings round a pole. */
  readonly turn: number;
}

/** Creates the path of a closed ring; its extent includes an enclosed pole. */
export function ringPath(ring: Ring, part: number, ringIndex: number): RingPath {
  const unwrapped = unwrapRing(ring);
  const { xs, ys } = unwrapped;
  const count = ring.length - 1;
  const isNew = (i: number, before: number) => xs[i] !== xs[before] || ys[i] !== ys[before];
  const kept = [...ring.keys()].filter((i) => i < count && (i === 0 || isNew(i, i - 1)));
  // The last corner may also repeat the first.
  while (kept.length > 1 && !isNew(kept.at(-1) ?? 0, 0)) kept.pop();
  const pole = enclosedPole(unwrapped);
  const box = extentOf(ring.map((_, i): Position => [xs[i] ?? 0, ys[i] ?? 0]));
  if (pole === 'south') box.south = -90;
  if (pole === 'north') box.north = 90;
  return {
    part,
    ringIndex,
    corners: kept.map((i) => ring[i] ?? [0, 0]),
    xs: kept.map((i) => xs[i] ?? 0),
    ys: kept.map((i) => ys[i] ?? 0),
    turn: 360 * unwrapped.turns,
    ...box,
  };
}

/** Ends of an edge in the plane, or opposite corners of a box. */
interface Extent {
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

/** An edge of a ring, shifted by whole turns. */
interface PathEdge extends Extent {
  readonly path: RingPath;
  readonly i: number;
  readonly shift: number;
}

/** Two rings that cross or share a part of an edge, or a ring that crosses or touches itself. */
interface Crossing {
  readonly a: RingPath;
  readonly b: RingPath;
  /** Corner at which the edge of `b` begins. */
  readonly at: Position | undefined;
}

/** Cost of comparing two edges, in steps. */
const comparisonSteps = 30;

/** Returns the first crossing, or null. Rings may touch each other at points. Throws EffortExhausted. */
export function findCrossing(paths: readonly RingPath[], effort: Effort): Crossing | null {
  let found: Crossing | null = null;
  visitOverlaps(paths.flatMap(edgesOf), 'edges', effort, (first, second) => {
    spend(effort, comparisonSteps);
    const [a, b] = [first.path, second.path];
    const isAllowed = a === b ? isAllowedInRing(first, second) : isAllowedBetween(first, second);
    if (isAllowed) return true;
    found = { a, b, at: b.corners[second.i] };
    return false;
  });
  return found;
}

/** Returns the edges with the ring's west end in -180 to 180, and again shifted by -360 if the ring reaches beyond 180. */
function edgesOf(path: RingPath): PathEdge[] {
  const { xs, ys, turn, west, east } = path;
  const edges: PathEdge[] = [];
  const first = -360 * turnsOf(west);
  for (let shift = first; east + shift >= -180 && shift > first - 1080; shift -= 360) {
    for (const [i, x] of xs.entries()) {
      const isLast = i === xs.length - 1;
      const [x2, y2] = isLast
        ? [(xs[0] ?? 0) + turn, ys[0] ?? 0]
        : [xs[i + 1] ?? 0, ys[i + 1] ?? 0];
      edges.push({ path, i, shift, x1: x + shift, y1: ys[i] ?? 0, x2: x2 + shift, y2 });
    }
  }
  return edges;
}

function isAllowedInRing(first: PathEdge, second: PathEdge): boolean {
  const { path, i, shift } = first;
  if (i === second.i) return true;
  // The ends of a rectangle round the globe coincide.
  if (isBand(path) && shift !== second.shift) return true;
  const distance = Math.abs(i - second.i);
  const areNeighbours = distance === 1 || distance === path.xs.length - 1;
  const contact = contactOf(first, second);
  return contact === 'none' || (areNeighbours && contact === 'touch');
}

function isAllowedBetween(first: PathEdge, second: PathEdge): boolean {
  const contact = contactOf(first, second);
  if (contact === 'none' || contact === 'touch') return true;
  return isSeam(first) || isSeam(second) || isCutThere(first, second);
}

/** Checks for a rectangle round the globe. */
function isBand({ turn, west, east }: RingPath): boolean {
  return turn === 0 && east - west === 360;
}

/** Checks for two parts that end on both sides of the antimeridian, as a polygon is cut there (RFC 7946, 3.1.9). */
function isCutThere(first: PathEdge, second: PathEdge): boolean {
  const isWritten = ({ path }: PathEdge) => path.west >= -180 && path.east <= 180;
  if (first.path.part === second.path.part || first.shift === second.shift) return false;
  return isWritten(first) && isWritten(second);
}

/** Checks for a side of a rectangle round the globe that coincides with the opposite side: it is not a border. */
function isSeam({ path, x1, x2, shift }: PathEdge): boolean {
  return isBand(path) && x1 === x2 && (x1 === path.west + shift || x1 === path.east + shift);
}

/** `touch`: the edges share one point that is an end of one of them; `along`: they overlap. */
function contactOf(a: PathEdge, b: PathEdge): 'none' | 'cross' | 'touch' | 'along' {
  const b1 = orient2d(a.x1, a.y1, a.x2, a.y2, b.x1, b.y1);
  const b2 = orient2d(a.x1, a.y1, a.x2, a.y2, b.x2, b.y2);
  if (onOneSide(b1, b2)) return 'none';
  const a1 = orient2d(b.x1, b.y1, b.x2, b.y2, a.x1, a.y1);
  const a2 = orient2d(b.x1, b.y1, b.x2, b.y2, a.x2, a.y2);
  if (onOneSide(a1, a2)) return 'none';
  if (b1 !== 0 || b2 !== 0) return [b1, b2, a1, a2].includes(0) ? 'touch' : 'cross';
  // Collinear edges with overlapping boxes.
  const [p, q] = [boxBetween(a.x1, a.y1, a.x2, a.y2), boxBetween(b.x1, b.y1, b.x2, b.y2)];
  const isLonger =
    Math.min(p.east, q.east) > Math.max(p.west, q.west) ||
    Math.min(p.north, q.north) > Math.max(p.south, q.south);
  return isLonger ? 'along' : 'touch';
}

/**
 * Visits each pair of edges or boxes with overlapping extents once, until `visit` returns false. If the extents of
 * edges are smaller along diagonal axes, those are indexed, so that diagonal stripes do not all overlap; for boxes,
 * opposite corners do not give these extents. Throws EffortExhausted.
 */
export function visitOverlaps<Item extends Extent>(
  all: readonly Item[],
  kind: 'edges' | 'boxes',
  effort: Effort,
  visit: (item: Item, other: Item) => boolean,
): void {
  if (all.length === 0) return;
  // Sorted, so that faults are reported from west to east.
  const items = all.toSorted((a, b) => Math.min(a.x1, a.x2) - Math.min(b.x1, b.x2));
  const straight = items.map(({ x1, y1, x2, y2 }) => boxBetween(x1, y1, x2, y2));
  // Rounding preserves the order of sums, so no contact is missed.
  const diagonal = items.map((e) => boxBetween(e.x1 + e.y1, e.x1 - e.y1, e.x2 + e.y2, e.x2 - e.y2));
  const boxes = kind === 'edges' && areaOf(diagonal) < areaOf(straight) ? diagonal : straight;
  const index = new Flatbush(items.length);
  for (const { west, south, east, north } of boxes) index.add(west, south, east, north);
  index.finish();
  for (const [i, item] of items.entries()) {
    const [box, own] = [boxes[i], straight[i]];
    if (box === undefined || own === undefined) continue;
    let isContinued = true;
    index.search(box.west, box.south, box.east, box.north, (j) => {
      spend(effort, 1);
      const [other, otherBox] = [items[j], straight[j]];
      if (!isContinued || j <= i || other === undefined || otherBox === undefined) return false;
      if (overlap(own, otherBox)) isContinued = visit(item, other);
      return false;
    });
    if (!isContinued) return;
  }
}

function boxBetween(x1: number, y1: number, x2: number, y2: number): Box {
  const [west, south] = [Math.min(x1, x2), Math.min(y1, y2)];
  return { west, south, east: Math.max(x1, x2), north: Math.max(y1, y2) };
}

function areaOf(boxes: readonly Box[]): number {
  return boxes.reduce((sum, one) => sum + (one.east - one.west) * (one.north - one.south), 0);
}

function overlap(a: Box, b: Box): boolean {
  return a.east >= b.west && b.east >= a.west && a.north >= b.south && b.north >= a.south;
}
