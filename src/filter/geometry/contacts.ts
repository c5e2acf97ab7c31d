/** Finds points where rings of a geometry cross, overlap or touch each other or themselves. */
import Flatbush from 'flatbush';
import { orient2d } from 'robust-predicates';
import type { Box, Position, Ring } from '../../domain/filter-tree.ts';
import { type Effort, onOneSide, spend } from './intersects.ts';
import { enclosedPole, extentOf, turnsOf, type UnwrappedRing, unwrapRing } from './ring.ts';

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
  /** True if the enclosed area is to the left of the ring's direction. */
  readonly leftIsInside: boolean;
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
    leftIsInside: leftIsInside(unwrapped, pole),
  };
}

function leftIsInside({ xs, ys, turns }: UnwrappedRing, pole: 'north' | 'south' | null): boolean {
  // Going east, north is to the left.
  if (pole !== null) return turns > 0 === (pole === 'north');
  const [x0 = 0, y0 = 0] = [xs[0], ys[0]];
  let doubledArea = 0;
  for (let i = 1; i < xs.length; i += 1) {
    const [ax, ay] = [(xs[i - 1] ?? 0) - x0, (ys[i - 1] ?? 0) - y0];
    const [bx, by] = [(xs[i] ?? 0) - x0, (ys[i] ?? 0) - y0];
    doubledArea += ax * by - bx * ay;
  }
  return doubledArea > 0;
}

type Point = readonly [x: number, y: number];

/** Corner in the plane; indices may be below 0 or above the last. */
function cornerAt({ xs, ys, turn }: RingPath, i: number): Point {
  const times = Math.floor(i / xs.length);
  const at = i - times * xs.length;
  return [(xs[at] ?? 0) + times * turn, ys[at] ?? 0];
}

/** A point that two rings share, or a ring with itself. */
export interface Contact {
  readonly a: RingPath;
  readonly b: RingPath;
  /** Corner at which the edge of `b` begins. */
  readonly at: Position | undefined;
  readonly point: Point;
  /** `touch`: the rings do not cross there. */
  readonly kind: 'self' | 'cross' | 'along' | 'touch';
  /** For a touch: each ring is on the inner side of the other at this point. */
  readonly bInsideA: boolean;
  readonly aInsideB: boolean;
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

/** Cost of comparing two edges, and of a contact, in steps. */
const [comparisonSteps, contactSteps] = [30, 600];

/** Passes contacts to `report`, some more than once, until it returns false. Throws EffortExhausted. */
export function findContacts(
  paths: readonly RingPath[],
  effort: Effort,
  report: (contact: Contact) => boolean,
): void {
  visitOverlaps(paths.flatMap(edgesOf), 'edges', effort, (first, second) => {
    spend(effort, comparisonSteps);
    const shared = sharedPoint(first, second);
    if (shared === null) return true;
    const [a, b] = [first.path, second.path];
    const sides = a === b ? selfSides(first, second, shared) : sidesAt(first, second, shared);
    if (sides === null) return true;
    spend(effort, contactSteps);
    return report({ a, b, at: b.corners[second.i], point: shared.point, ...sides });
  });
}

/** Returns the edges with the ring's west end in -180 to 180, and again shifted by -360 if the ring reaches beyond 180. */
function edgesOf(path: RingPath): PathEdge[] {
  const edges: PathEdge[] = [];
  const first = -360 * turnsOf(path.west);
  for (let shift = first; path.east + shift >= -180 && shift > first - 1080; shift -= 360) {
    for (const i of path.xs.keys()) {
      const [[x1, y1], [x2, y2]] = [cornerAt(path, i), cornerAt(path, i + 1)];
      edges.push({ path, i, shift, x1: x1 + shift, y1, x2: x2 + shift, y2 });
    }
  }
  return edges;
}

/** Kind of a contact, and the sides of the rings. */
type Sides = Pick<Contact, 'kind' | 'bInsideA' | 'aInsideB'>;
const noSides = { bInsideA: false, aInsideB: false };

function selfSides(
  { path, i, shift }: PathEdge,
  other: PathEdge,
  { kind }: SharedPoint,
): Sides | null {
  if (i === other.i) return null;
  // The ends of a rectangle round the globe coincide.
  if (isBand(path) && shift !== other.shift) return null;
  const distance = Math.abs(i - other.i);
  const areNeighbours = distance === 1 || distance === path.xs.length - 1;
  return areNeighbours && kind !== 'along' ? null : { kind: 'self', ...noSides };
}

function sidesAt(first: PathEdge, second: PathEdge, { point, kind }: SharedPoint): Sides | null {
  const [a, b] = [first.path, second.path];
  if (isSeam(first) || isSeam(second)) return null;
  if (isCutThere(first, second)) {
    // Outlines are outside of each other, and on the inner side of holes.
    return { kind: 'touch', bInsideA: a.ringIndex !== 0, aInsideB: b.ringIndex !== 0 };
  }
  if (kind !== 'touch') return { kind, ...noSides };
  const [aBefore, aAfter] = neighboursOf(first, point);
  const [bBefore, bAfter] = neighboursOf(second, point);
  const isBLeft = isLeft(aBefore, point, aAfter, bBefore);
  const isALeft = isLeft(bBefore, point, bAfter, aBefore);
  return {
    kind: isBLeft === isLeft(aBefore, point, aAfter, bAfter) ? 'touch' : 'cross',
    bInsideA: isBLeft === a.leftIsInside,
    aInsideB: isALeft === b.leftIsInside,
  };
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

/** A point that two edges share. */
interface SharedPoint {
  readonly point: Point;
  readonly kind: 'cross' | 'along' | 'touch';
}

function sharedPoint(a: PathEdge, b: PathEdge): SharedPoint | null {
  const b1 = orient2d(a.x1, a.y1, a.x2, a.y2, b.x1, b.y1);
  const b2 = orient2d(a.x1, a.y1, a.x2, a.y2, b.x2, b.y2);
  if (onOneSide(b1, b2)) return null;
  const a1 = orient2d(b.x1, b.y1, b.x2, b.y2, a.x1, a.y1);
  const a2 = orient2d(b.x1, b.y1, b.x2, b.y2, a.x2, a.y2);
  if (onOneSide(a1, a2)) return null;
  if (b1 === 0 && b2 === 0) return sharedPointOfLine(a, b);
  if (b1 === 0) return { point: [b.x1, b.y1], kind: 'touch' };
  if (b2 === 0) return { point: [b.x2, b.y2], kind: 'touch' };
  if (a1 === 0) return { point: [a.x1, a.y1], kind: 'touch' };
  if (a2 === 0) return { point: [a.x2, a.y2], kind: 'touch' };
  const part = a1 / (a1 - a2);
  return { point: [a.x1 + part * (a.x2 - a.x1), a.y1 + part * (a.y2 - a.y1)], kind: 'cross' };
}

/** For collinear edges with overlapping boxes: they share an end, or overlap. */
function sharedPointOfLine(a: Extent, b: Extent): SharedPoint {
  const axis = a.x1 === a.x2 ? 1 : 0;
  const ends = [a, b].flatMap(({ x1, y1, x2, y2 }): Point[] => [
    [x1, y1],
    [x2, y2],
  ]);
  const [, point = [a.x1, a.y1], next = point] = ends.sort((p, q) => p[axis] - q[axis]);
  const isOnePoint = point[0] === next[0] && point[1] === next[1];
  return { point, kind: isOnePoint ? 'touch' : 'along' };
}

/** Returns the corners before and after a point on an edge. */
function neighboursOf({ path, i, shift, x1, y1, x2, y2 }: PathEdge, [x, y]: Point): [Point, Point] {
  const corner = (at: number): Point => [cornerAt(path, at)[0] + shift, cornerAt(path, at)[1]];
  if (x === x1 && y === y1) return [corner(i - 1), [x2, y2]];
  return [[x1, y1], x === x2 && y === y2 ? corner(i + 2) : [x2, y2]];
}

/** True for a direction on the left of a path with a bend at `point`. */
function isLeft(before: Point, point: Point, after: Point, other: Point): boolean {
  // Positive is to the right.
  const bend = orient2d(...before, ...point, ...after);
  const ofFirst = orient2d(...before, ...point, ...other);
  const ofSecond = orient2d(...point, ...after, ...other);
  return bend <= 0 ? ofFirst < 0 && ofSecond < 0 : ofFirst < 0 || ofSecond < 0;
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
