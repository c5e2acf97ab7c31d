/** Finds where the rings of a geometry cross, run along or touch each other and themselves. */
import Flatbush from 'flatbush';
import { orient2d } from 'robust-predicates';
import type { Box, Position, Ring } from '../../domain/filter-tree.ts';
import { type Effort, onOneSide, spend } from './intersects.ts';
import { enclosedPole, turnsOf, type UnwrappedRing, unwrapRing } from './ring.ts';

/** A ring as a path in the plane without repeated positions. */
export interface RingPath extends Readonly<Box> {
  /** The part of the geometry that it is a ring of, and its place there: 0 is the outline. */
  readonly part: number;
  readonly place: number;
  /** The corners as written; edge `i` goes from corner `i` to the next. */
  readonly corners: readonly Position[];
  readonly xs: readonly number[];
  readonly ys: readonly number[];
  /** What the longitude has grown by after one time round: 0, but for rings round a pole. */
  readonly turn: number;
  /** True when what the ring encloses is to the left of its way. */
  readonly leftIsInside: boolean;
}

/** The path of a closed ring; its extent goes up to the pole that the ring goes round. */
export function ringPath(ring: Ring, part: number, place: number): RingPath {
  const unwrapped = unwrapRing(ring);
  const { xs, ys } = unwrapped;
  const count = ring.length - 1;
  const isNew = (i: number, before: number) => xs[i] !== xs[before] || ys[i] !== ys[before];
  const kept = [...ring.keys()].filter((i) => i < count && (i === 0 || isNew(i, i - 1)));
  // The last corner may repeat the first, too.
  while (kept.length > 1 && !isNew(kept.at(-1) ?? 0, 0)) kept.pop();
  const pole = enclosedPole(unwrapped);
  const box = { west: Infinity, south: Infinity, east: -Infinity, north: -Infinity };
  for (const [i, x] of xs.entries()) {
    const y = ys[i] ?? 0;
    box.west = Math.min(box.west, x);
    box.south = Math.min(box.south, y);
    box.east = Math.max(box.east, x);
    box.north = Math.max(box.north, y);
  }
  if (pole === 'south') box.south = -90;
  if (pole === 'north') box.north = 90;
  return {
    part,
    place,
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

type Place = readonly [x: number, y: number];

/** A corner in the plane; numbers continue before the first and after the last. */
function cornerAt({ xs, ys, turn }: RingPath, i: number): Place {
  const times = Math.floor(i / xs.length);
  const at = i - times * xs.length;
  return [(xs[at] ?? 0) + times * turn, ys[at] ?? 0];
}

/** Two rings, or one and itself, that share a place. */
export interface Contact {
  readonly a: RingPath;
  readonly b: RingPath;
  /** The corner of `b` at whose edge it is. */
  readonly at: Position | undefined;
  readonly place: Place;
  /** `touch`: the rings stay on one side of each other there. */
  readonly kind: 'self' | 'cross' | 'along' | 'touch';
  /** For a touch: whether each ring is, there, on the inner side of the other. */
  readonly bInsideA: boolean;
  readonly aInsideB: boolean;
}

/** An edge in the plane from one end to the other, or a box from one corner to the opposite one. */
interface Extent {
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

/** An edge of a ring, moved by whole turns. */
interface PathEdge extends Extent {
  readonly path: RingPath;
  readonly i: number;
  readonly shift: number;
}

/** What comparing two edges takes, and what a contact does, in steps. */
const [meetingSteps, contactSteps] = [30, 600];

/** Gives every contact to `report`, some of them more than once, until it gives false. Throws EffortExhausted. */
export function findContacts(
  paths: readonly RingPath[],
  effort: Effort,
  report: (contact: Contact) => boolean,
): void {
  visitOverlaps(paths.flatMap(edgesOf), 'edges', effort, (first, second) => {
    spend(effort, meetingSteps);
    const met = meeting(first, second);
    if (met === null) return true;
    const [a, b] = [first.path, second.path];
    const sides = a === b ? selfSides(first, second, met) : sidesAt(first, second, met);
    if (sides === null) return true;
    spend(effort, contactSteps);
    return report({ a, b, at: b.corners[second.i], place: met.place, ...sides });
  });
}

/** The edges, the ring's west end from -180 up to 180, and again one turn less where it reaches further. */
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

/** The kind of a contact and the sides that the rings are on. */
type Sides = Pick<Contact, 'kind' | 'bInsideA' | 'aInsideB'>;
const noSides = { bInsideA: false, aInsideB: false };

function selfSides({ path, i, shift }: PathEdge, other: PathEdge, { kind }: Meeting): Sides | null {
  if (i === other.i) return null;
  // The ends of a rectangle round the globe lie on each other, as they must.
  if (isBand(path) && shift !== other.shift) return null;
  const distance = Math.abs(i - other.i);
  const areNeighbours = distance === 1 || distance === path.xs.length - 1;
  return areNeighbours && kind !== 'along' ? null : { kind: 'self', ...noSides };
}

function sidesAt(first: PathEdge, second: PathEdge, { place, kind }: Meeting): Sides | null {
  const [a, b] = [first.path, second.path];
  if (isSeam(first) || isSeam(second)) return null;
  if (isCutThere(first, second)) {
    // Outlines lie outside of each other, and on the inner side of holes.
    return { kind: 'touch', bInsideA: a.place !== 0, aInsideB: b.place !== 0 };
  }
  if (kind !== 'touch') return { kind, ...noSides };
  const [aBefore, aAfter] = waysFrom(first, place);
  const [bBefore, bAfter] = waysFrom(second, place);
  const isBLeft = isLeft(aBefore, place, aAfter, bBefore);
  const isALeft = isLeft(bBefore, place, bAfter, aBefore);
  return {
    kind: isBLeft === isLeft(aBefore, place, aAfter, bAfter) ? 'touch' : 'cross',
    bInsideA: isBLeft === a.leftIsInside,
    aInsideB: isALeft === b.leftIsInside,
  };
}

/** A rectangle round the globe. */
function isBand({ turn, west, east }: RingPath): boolean {
  return turn === 0 && east - west === 360;
}

/** Two parts that end on either side of the antimeridian: how a polygon is cut there (RFC 7946, 3.1.9). */
function isCutThere(first: PathEdge, second: PathEdge): boolean {
  const isWritten = ({ path }: PathEdge) => path.west >= -180 && path.east <= 180;
  if (first.path.part === second.path.part || first.shift === second.shift) return false;
  return isWritten(first) && isWritten(second);
}

/** A side of a rectangle round the globe that lies on its other end: no border. */
function isSeam({ path, x1, x2, shift }: PathEdge): boolean {
  return isBand(path) && x1 === x2 && (x1 === path.west + shift || x1 === path.east + shift);
}

/** A place that two edges share, and how. */
interface Meeting {
  readonly place: Place;
  readonly kind: 'cross' | 'along' | 'touch';
}

function meeting(a: PathEdge, b: PathEdge): Meeting | null {
  const b1 = orient2d(a.x1, a.y1, a.x2, a.y2, b.x1, b.y1);
  const b2 = orient2d(a.x1, a.y1, a.x2, a.y2, b.x2, b.y2);
  if (onOneSide(b1, b2)) return null;
  const a1 = orient2d(b.x1, b.y1, b.x2, b.y2, a.x1, a.y1);
  const a2 = orient2d(b.x1, b.y1, b.x2, b.y2, a.x2, a.y2);
  if (onOneSide(a1, a2)) return null;
  if (b1 === 0 && b2 === 0) return meetingInLine(a, b);
  if (b1 === 0) return { place: [b.x1, b.y1], kind: 'touch' };
  if (b2 === 0) return { place: [b.x2, b.y2], kind: 'touch' };
  if (a1 === 0) return { place: [a.x1, a.y1], kind: 'touch' };
  if (a2 === 0) return { place: [a.x2, a.y2], kind: 'touch' };
  const part = a1 / (a1 - a2);
  return { place: [a.x1 + part * (a.x2 - a.x1), a.y1 + part * (a.y2 - a.y1)], kind: 'cross' };
}

/** Edges in one line, with boxes that overlap: at one of their ends, or along a part of them. */
function meetingInLine(a: Extent, b: Extent): Meeting {
  const axis = a.x1 === a.x2 ? 1 : 0;
  const ends = [a, b].flatMap(({ x1, y1, x2, y2 }): Place[] => [
    [x1, y1],
    [x2, y2],
  ]);
  const [, place = [a.x1, a.y1], next = place] = ends.sort((p, q) => p[axis] - q[axis]);
  const isOnePlace = place[0] === next[0] && place[1] === next[1];
  return { place, kind: isOnePlace ? 'touch' : 'along' };
}

/** Where a ring comes from and goes to at a place on one of its edges. */
function waysFrom({ path, i, shift, x1, y1, x2, y2 }: PathEdge, [x, y]: Place): [Place, Place] {
  const corner = (at: number): Place => [cornerAt(path, at)[0] + shift, cornerAt(path, at)[1]];
  if (x === x1 && y === y1) return [corner(i - 1), [x2, y2]];
  return [[x1, y1], x === x2 && y === y2 ? corner(i + 2) : [x2, y2]];
}

/** True for a direction on the left of a way that bends at `place`. */
function isLeft(before: Place, place: Place, after: Place, other: Place): boolean {
  // Positive is to the right.
  const bend = orient2d(...before, ...place, ...after);
  const ofFirst = orient2d(...before, ...place, ...other);
  const ofSecond = orient2d(...place, ...after, ...other);
  return bend <= 0 ? ofFirst < 0 && ofSecond < 0 : ofFirst < 0 || ofSecond < 0;
}

/**
 * Visits each pair of edges, or of boxes, whose extents overlap once, until a visit gives false. Where the edges are
 * shorter along slanting axes, their extents there are indexed, so that slanting stripes do not all meet each other;
 * the corners of a box say nothing of these axes. Throws EffortExhausted.
 */
export function visitOverlaps<Item extends Extent>(
  all: readonly Item[],
  kind: 'edges' | 'boxes',
  effort: Effort,
  visit: (item: Item, other: Item) => boolean,
): void {
  if (all.length === 0) return;
  // So faults are found from west to east.
  const items = all.toSorted((a, b) => Math.min(a.x1, a.x2) - Math.min(b.x1, b.x2));
  const straight = items.map(({ x1, y1, x2, y2 }) => boxBetween(x1, y1, x2, y2));
  // Rounding a sum keeps the order of sums, so nothing that touches is missed.
  const slanting = items.map((e) => boxBetween(e.x1 + e.y1, e.x1 - e.y1, e.x2 + e.y2, e.x2 - e.y2));
  const boxes = kind === 'edges' && areaOf(slanting) < areaOf(straight) ? slanting : straight;
  const index = new Flatbush(items.length);
  for (const { west, south, east, north } of boxes) index.add(west, south, east, north);
  index.finish();
  for (const [i, item] of items.entries()) {
    const [box, own] = [boxes[i], straight[i]];
    if (box === undefined || own === undefined) continue;
    let isGoingOn = true;
    index.search(box.west, box.south, box.east, box.north, (j) => {
      spend(effort, 1);
      const [other, beside] = [items[j], straight[j]];
      if (!isGoingOn || j <= i || other === undefined || beside === undefined) return false;
      if (overlap(own, beside)) isGoingOn = visit(item, other);
      return false;
    });
    if (!isGoingOn) return;
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
