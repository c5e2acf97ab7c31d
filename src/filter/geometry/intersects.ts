/** Decides whether two shapes have a place in common, without any rounding; touching is enough. */
import { orient2d } from 'robust-predicates';
import type { Region, Shape } from './shape.ts';

/**
 * What is left of the work that a check may take, in steps of some nanoseconds; several geometries may share it. So no
 * geometry can stall the thread that checks it. A clock would refuse on one machine what another takes.
 */
export interface Effort {
  left: number;
}

/** About a tenth of a second: ten times what a coast with 5,000 corners and its islands takes. */
export const newEffort = (): Effort => ({ left: 15_000_000 });

/** The effort is used up: what was found until then says nothing about the rest. */
export class EffortExhausted extends Error {}

/** Takes steps; throws EffortExhausted when none are left. */
export function spend(effort: Effort, steps: number): void {
  effort.left -= steps;
  if (effort.left < 0) throw new EffortExhausted();
}

/** What checking one edge takes, in steps. */
const edgeSteps = 5;

/**
 * True where the shapes meet: insides, borders of outlines and holes, points, and the poles. With an effort, points
 * take from it for each edge that is north of them, and EffortExhausted may be thrown.
 */
export function shapesIntersect(a: Shape, b: Shape, effort?: Effort): boolean {
  // Every longitude at a pole is the same place, which the plane does not know.
  if ((a.northPole && b.northPole) || (a.southPole && b.southPole)) return true;
  return (
    a.regions.some((region) => b.regions.some((other) => regionsMeet(region, other))) ||
    a.regions.some((region) => holdsSome(region, b.points, effort)) ||
    b.regions.some((region) => holdsSome(region, a.points, effort)) ||
    shareSome(a.points, b.points)
  );
}

function regionsMeet(a: Region, b: Region): boolean {
  if (a.south > b.north || b.south > a.north) return false;
  const [few, many] = a.edges.length <= b.edges.length ? [a, b] : [b, a];
  for (const shift of shiftsOnto(many, few.west, few.east)) {
    if (bordersMeet(few, many, shift)) return true;
  }
  // The borders are apart, so each ring is wholly inside or outside of the other region.
  return holdsSome(many, few.corners) || holdsSome(few, many.corners) || !a.index || !b.index;
}

/** The turns, in degrees, that bring an extent onto a region's edges. */
function shiftsOnto(region: Region, west: number, east: number): number[] {
  const shifts: number[] = [];
  const last = Math.floor((region.east - west) / 360);
  for (let turn = Math.ceil((region.west - east) / 360); turn <= last; turn += 1) {
    shifts.push(turn * 360);
  }
  return shifts;
}

function bordersMeet(few: Region, many: Region, shift: number): boolean {
  for (let i = 0; i < few.edges.length; i += 4) {
    const [x1, y1, x2, y2] = edgeAt(few.edges, i, shift);
    // Boxes that overlap, and neither edge wholly on one side of the other: they meet, even in one line.
    const isMet = someEdge(
      many,
      Math.min(x1, x2),
      Math.min(y1, y2),
      Math.max(x1, x2),
      Math.max(y1, y2),
      (ax, ay, bx, by) =>
        !onOneSide(orient2d(ax, ay, bx, by, x1, y1), orient2d(ax, ay, bx, by, x2, y2)) &&
        !onOneSide(orient2d(x1, y1, x2, y2, ax, ay), orient2d(x1, y1, x2, y2, bx, by)),
    );
    if (isMet) return true;
  }
  return false;
}

/** True for two orientations that are both strictly positive or both strictly negative. */
export function onOneSide(a: number, b: number): boolean {
  return (a > 0 && b > 0) || (a < 0 && b < 0);
}

function holdsSome(region: Region, places: readonly number[], effort?: Effort): boolean {
  for (let i = 0; i < places.length; i += 2) {
    if (holds(region, places[i] ?? 0, places[i + 1] ?? 0, effort)) return true;
  }
  return false;
}

/** Goes north from the place to the pole, and changes the side at each edge on the way. */
function holds(region: Region, longitude: number, y: number, effort?: Effort): boolean {
  if (y < region.south || y > region.north) return false;
  let inside = region.northInside;
  for (const shift of shiftsOnto(region, longitude, longitude)) {
    const x = longitude + shift;
    const isOnBorder = someEdge(region, x, y, x, Infinity, (x1, y1, x2, y2) => {
      if (effort !== undefined) spend(effort, edgeSteps);
      if (x1 === x2) return Math.min(y1, y2) <= y;
      // Positive on the right of a line.
      const side = x1 < x2 ? orient2d(x1, y1, x2, y2, x, y) : orient2d(x2, y2, x1, y1, x, y);
      // Each edge has its western end and not its eastern one, so a corner counts once.
      if (side > 0 && x < Math.max(x1, x2)) inside = !inside;
      return side === 0;
    });
    if (isOnBorder) return true;
  }
  return inside;
}

type EdgeTest = (x1: number, y1: number, x2: number, y2: number) => boolean;

/** True when the answer is yes for an edge whose box meets the given one. */
function someEdge(
  { index, edges }: Region,
  west: number,
  south: number,
  east: number,
  north: number,
  isWanted: EdgeTest,
): boolean {
  let isFound = false;
  index?.search(west, south, east, north, (edge) => {
    isFound ||= isWanted(...edgeAt(edges, 4 * edge));
    return false;
  });
  return isFound;
}

function edgeAt(edges: Float64Array, i: number, shift = 0): [number, number, number, number] {
  const [x1, x2] = [edges[i] ?? 0, edges[i + 2] ?? 0];
  return [x1 + shift, edges[i + 1] ?? 0, x2 + shift, edges[i + 3] ?? 0];
}

function shareSome(a: readonly number[], b: readonly number[]): boolean {
  const [few, many] = a.length <= b.length ? [a, b] : [b, a];
  const places = new Set<string>();
  for (let i = 0; i < few.length; i += 2) places.add(`${few[i]} ${few[i + 1]}`);
  return many.some((x, i) => i % 2 === 0 && places.has(`${x} ${many[i + 1]}`));
}
