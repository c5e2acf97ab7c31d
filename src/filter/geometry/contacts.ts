/** Where the rings of a geometry cross, run along or touch each other and themselves. */
import { orient2d } from 'robust-predicates';
import type { Position, Ring } from '../../domain/geometry.ts';
import { type Effort, spend } from './intersects.ts';
import { enclosedPole, type UnwrappedRing, unwrapRing } from './ring.ts';

type Place = readonly [x: number, y: number];

/** Two rings, or one and itself, that share a place. */
export interface Contact {
  readonly a: RingPath;
  readonly b: RingPath;
  /** Corner of `b` at whose edge it is. */
  readonly corner: number;
  readonly place: Place;
  /** `touch`: the rings stay on one side of each other there. */
  readonly kind: 'self' | 'cross' | 'along' | 'touch';
  /** For a touch: whether each ring is, there, on the inner side of the other. */
  readonly bInsideA: boolean;
  readonly aInsideB: boolean;
}

/** Two rings that touch without crossing, at a place. */
export interface Touch {
  readonly a: RingPath;
  readonly b: RingPath;
  readonly place: string;
}

/** An edge of a ring, moved by whole turns. */
interface PathEdge {
  readonly path: RingPath;
  readonly i: number;
  readonly shift: number;
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

/** What looking at two edges takes, and what a contact does, in steps. */
const [meetingSteps, contactSteps] = [30, 600];

/**
 * Gives every contact to `report`, some of them more than once, until it gives false. Throws
 * EffortExhausted.
 */
export function findContacts(
  paths: readonly RingPath[],
  effort: Effort,
  report: (contact: Contact) => boolean,
): void {
  sweepEdges(paths.flatMap(edgesOf), effort, (first, second) => {
    spend(effort, meetingSteps);
    const contact =
      first.path === second.path ? selfContact(first, second) : contactOf(first, second);
    if (contact === null) return true;
    spend(effort, contactSteps);
    return report(contact);
  });
}

/** The edges, the ring's west end from -180 up to 180, and again one turn less where it reaches further. */
function edgesOf(path: RingPath): PathEdge[] {
  const edges: PathEdge[] = [];
  const first = -360 * Math.floor((path.west + 180) / 360);
  for (let shift = first; path.east + shift >= -180 && shift > first - 1080; shift -= 360) {
    for (const i of path.xs.keys()) {
      const [[x1, y1], [x2, y2]] = [cornerAt(path, i), cornerAt(path, i + 1)];
      edges.push({ path, i, shift, x1: x1 + shift, y1, x2: x2 + shift, y2 });
    }
  }
  return edges;
}

function selfContact(first: PathEdge, second: PathEdge): Contact | null {
  const { path } = first;
  const { place, kind } = meeting(first, second) ?? {};
  if (place === undefined || first.i === second.i) return null;
  // The ends of a rectangle round the globe lie on each other, as they must.
  const isBand = path.turn === 0 && path.east - path.west === 360;
  if (isBand && first.shift !== second.shift) return null;
  if (areNeighbours(path, first.i, second.i) && kind !== 'along') return null;
  return {
    a: path,
    b: path,
    corner: second.i,
    place,
    kind: 'self',
    bInsideA: false,
    aInsideB: false,
  };
}

function contactOf(first: PathEdge, second: PathEdge): Contact | null {
  const met = meeting(first, second);
  if (met === null || isSeam(first) || isSeam(second)) return null;
  const [a, b] = [first.path, second.path];
  const contact = { a, b, corner: second.i, place: met.place };
  if (isCutThere(first, second)) {
    // Outlines lie outside of each other, and on the inner side of holes.
    return { ...contact, kind: 'touch', bInsideA: a.place !== 0, aInsideB: b.place !== 0 };
  }
  if (met.kind !== 'touch') {
    return { ...contact, kind: met.kind, bInsideA: false, aInsideB: false };
  }
  const [aBefore, aAfter] = waysFrom(first, met.place);
  const [bBefore, bAfter] = waysFrom(second, met.place);
  const isBLeft = isLeft(aBefore, met.place, aAfter, bBefore);
  const isALeft = isLeft(bBefore, met.place, bAfter, aBefore);
  const staysOnOneSide = isBLeft === isLeft(aBefore, met.place, aAfter, bAfter);
  return {
    ...contact,
    kind: staysOnOneSide ? 'touch' : 'cross',
    bInsideA: isBLeft === first.path.leftIsInside,
    aInsideB: isALeft === second.path.leftIsInside,
  };
}

/** Two parts that end on either side of the antimeridian: how a polygon is cut there (RFC 7946, 3.1.9). */
function isCutThere(first: PathEdge, second: PathEdge): boolean {
  const isWritten = ({ path }: PathEdge) => path.west >= -180 && path.east <= 180;
  if (first.path.part === second.path.part || first.shift === second.shift) return false;
  return isWritten(first) && isWritten(second);
}

/** A side of a rectangle round the globe that lies on its other end: no border. */
function isSeam({ path, x1, x2, shift }: PathEdge): boolean {
  if (path.turn !== 0 || path.east - path.west !== 360 || x1 !== x2) return false;
  return x1 === path.west + shift || x1 === path.east + shift;
}

/** A place that two edges share, and how. */
function meeting(
  a: PathEdge,
  b: PathEdge,
): { place: Place; kind: 'cross' | 'along' | 'touch' } | null {
  const b1 = orient2d(a.x1, a.y1, a.x2, a.y2, b.x1, b.y1);
  const b2 = orient2d(a.x1, a.y1, a.x2, a.y2, b.x2, b.y2);
  if ((b1 > 0 && b2 > 0) || (b1 < 0 && b2 < 0)) return null;
  const a1 = orient2d(b.x1, b.y1, b.x2, b.y2, a.x1, a.y1);
  const a2 = orient2d(b.x1, b.y1, b.x2, b.y2, a.x2, a.y2);
  if ((a1 > 0 && a2 > 0) || (a1 < 0 && a2 < 0)) return null;
  if (b1 === 0 && b2 === 0) return meetingInLine(a, b);
  if (b1 === 0) return { place: [b.x1, b.y1], kind: 'touch' };
  if (b2 === 0) return { place: [b.x2, b.y2], kind: 'touch' };
  if (a1 === 0) return { place: [a.x1, a.y1], kind: 'touch' };
  if (a2 === 0) return { place: [a.x2, a.y2], kind: 'touch' };
  const part = a1 / (a1 - a2);
  return { place: [a.x1 + part * (a.x2 - a.x1), a.y1 + part * (a.y2 - a.y1)], kind: 'cross' };
}

/** Edges in one line, with boxes that overlap: at one of their ends, or along a part of them. */
function meetingInLine(a: PathEdge, b: PathEdge): { place: Place; kind: 'along' | 'touch' } {
  const isUpright = a.x1 === a.x2;
  const ends: readonly Place[] = [
    [a.x1, a.y1],
    [a.x2, a.y2],
    [b.x1, b.y1],
    [b.x2, b.y2],
  ];
  const sorted = ends.toSorted((p, q) => (isUpright ? p[1] - q[1] : p[0] - q[0]));
  const [place = [a.x1, a.y1], next = place] = sorted.slice(1, 3);
  const isOnePlace = place[0] === next[0] && place[1] === next[1];
  return { place, kind: isOnePlace ? 'touch' : 'along' };
}

/** Where a ring comes from and goes to at a place on one of its edges. */
function waysFrom({ path, i, shift, x1, y1, x2, y2 }: PathEdge, [x, y]: Place): [Place, Place] {
  const moved = ([cornerX, cornerY]: Place): Place => [cornerX + shift, cornerY];
  if (x === x1 && y === y1) return [moved(cornerAt(path, i - 1)), [x2, y2]];
  if (x === x2 && y === y2) return [[x1, y1], moved(cornerAt(path, i + 2))];
  return [
    [x1, y1],
    [x2, y2],
  ];
}

/** Whether a direction is on the left of a way that bends at `place`. */
function isLeft(before: Place, place: Place, after: Place, other: Place): boolean {
  // Positive is to the right.
  const bend = orient2d(...before, ...place, ...after);
  const ofFirst = orient2d(...before, ...place, ...other);
  const ofSecond = orient2d(...place, ...after, ...other);
  return bend <= 0 ? ofFirst < 0 && ofSecond < 0 : ofFirst < 0 || ofSecond < 0;
}

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
function cornerAt(path: RingPath, i: number): readonly [x: number, y: number] {
  const count = path.xs.length;
  const times = Math.floor(i / count);
  const at = i - times * count;
  return [(path.xs[at] ?? 0) + times * path.turn, path.ys[at] ?? 0];
}

/** Whether two edges of a path follow each other. */
function areNeighbours(path: RingPath, i: number, j: number): boolean {
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

/** An edge in the plane from one end to the other, or a box from one corner to the opposite one. */
interface Swept {
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

type Direction = (x: number, y: number) => number;

const straight: readonly Direction[] = [(x) => x, (_x, y) => y];

/** Rounding a sum keeps the order of sums, so nothing that touches is missed. */
const slanting: readonly Direction[] = [(x, y) => x + y, (x, y) => x - y];

/**
 * Visits each pair of edges whose boxes overlap once, until a visit gives false. Sweeps in the direction
 * in which the edges are shortest: so stripes of long parallel edges do not all meet each other. Throws
 * EffortExhausted.
 */
function sweepEdges<Edge extends Swept>(
  edges: readonly Edge[],
  effort: Effort,
  visit: (edge: Edge, other: Edge) => boolean,
): void {
  sweep(edges, [...straight, ...slanting], effort, visit);
}

/** The same for boxes, of which the corners alone say nothing of slanting directions. */
export function sweepBoxes<Box extends Swept>(
  boxes: readonly Box[],
  effort: Effort,
  visit: (box: Box, other: Box) => boolean,
): void {
  sweep(boxes, straight, effort, visit);
}

function sweep<Item extends Swept>(
  items: readonly Item[],
  directions: readonly Direction[],
  effort: Effort,
  visit: (item: Item, other: Item) => boolean,
): void {
  const sorted = sortedAlong(items, bestDirection(items, directions));
  const starts = Float64Array.from(sorted, ({ start }) => start);
  const boxes = boxesRound(sorted);
  for (const [i, { item, end }] of sorted.entries()) {
    let j = i + 1;
    for (; j < starts.length && (starts[j] ?? Infinity) <= end; j += 1) {
      if (!boxesOverlap(boxes, 4 * i, 4 * j)) continue;
      const next = sorted[j]?.item;
      if (next !== undefined && !visit(item, next)) return;
    }
    spend(effort, j - i);
  }
}

function bestDirection(items: readonly Swept[], directions: readonly Direction[]): Direction {
  const lengths = directions.map((along) =>
    items.reduce((sum, { x1, y1, x2, y2 }) => sum + Math.abs(along(x2, y2) - along(x1, y1)), 0),
  );
  return directions[lengths.indexOf(Math.min(...lengths))] ?? ((x) => x);
}

function sortedAlong<Item extends Swept>(
  items: readonly Item[],
  along: Direction,
): { item: Item; start: number; end: number }[] {
  const spans = items.map((item) => {
    const [a, b] = [along(item.x1, item.y1), along(item.x2, item.y2)];
    return { item, start: Math.min(a, b), end: Math.max(a, b) };
  });
  return spans.sort((a, b) => a.start - b.start);
}

/** West, south, east and north of each, side by side: most of the work is to look at them in turn. */
function boxesRound(spans: readonly { item: Swept }[]): Float64Array {
  const boxes = new Float64Array(4 * spans.length);
  for (const [i, { item }] of spans.entries()) {
    const { x1, y1, x2, y2 } = item;
    boxes.set([Math.min(x1, x2), Math.min(y1, y2), Math.max(x1, x2), Math.max(y1, y2)], 4 * i);
  }
  return boxes;
}

function boxesOverlap(boxes: Float64Array, a: number, b: number): boolean {
  const at = (i: number) => boxes[i] ?? 0;
  return (
    at(a + 2) >= at(b) && at(b + 2) >= at(a) && at(a + 3) >= at(b + 1) && at(b + 3) >= at(a + 1)
  );
}
