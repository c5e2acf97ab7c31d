/** Whether two shapes have a place in common; touching is enough. */

import { orient2d } from 'robust-predicates';
import { type Region, type Shape, someEdge } from './shape.ts';

/** What looking at an edge takes, in steps. */
const edgeSteps = 5;

/**
 * True where the shapes meet: insides, borders of outlines and holes, points, and the poles. With an
 * effort, points take from it for each edge that is north of them, and EffortExhausted may be thrown.
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
  const [few, many] = a.index.edges.length <= b.index.edges.length ? [a, b] : [b, a];
  for (const shift of shiftsOnto(many, few.west, few.east)) {
    if (bordersMeet(few, many, shift)) return true;
  }
  // The borders are apart, so each ring is wholly inside or outside of the other region.
  return holdsSome(many, few.corners) || holdsSome(few, many.corners) || isGlobe(a) || isGlobe(b);
}

function isGlobe(region: Region): boolean {
  return region.index.edges.length === 0;
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
  const edges = few.index.edges;
  for (let i = 0; i < edges.length; i += 4) {
    const [x1, y1] = [(edges[i] ?? 0) + shift, edges[i + 1] ?? 0];
    const [x2, y2] = [(edges[i + 2] ?? 0) + shift, edges[i + 3] ?? 0];
    const [west, south] = [Math.min(x1, x2), Math.min(y1, y2)];
    const [east, north] = [Math.max(x1, x2), Math.max(y1, y2)];
    const isMet = (j: number) => edgesMeet(many.index.edges, j, edges, i, shift);
    if (someEdge(many.index, west, south, east, north, isMet)) return true;
  }
  return false;
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
    const { edges } = region.index;
    const isOnBorder = someEdge(region.index, x, y, x, Infinity, (i) => {
      if (effort !== undefined) spend(effort, edgeSteps);
      const [x1, y1, x2, y2] = [
        edges[i] ?? 0,
        edges[i + 1] ?? 0,
        edges[i + 2] ?? 0,
        edges[i + 3] ?? 0,
      ];
      if (x1 === x2) return Math.min(y1, y2) <= y;
      const side = x1 < x2 ? sideOf(x1, y1, x2, y2, x, y) : sideOf(x2, y2, x1, y1, x, y);
      // Each edge has its western end and not its eastern one, so a corner counts once.
      if (side > 0 && x < Math.max(x1, x2)) inside = !inside;
      return side === 0;
    });
    if (isOnBorder) return true;
  }
  return inside;
}

function shareSome(a: readonly number[], b: readonly number[]): boolean {
  const [few, many] = a.length <= b.length ? [a, b] : [b, a];
  if (few.length === 0) return false;
  const places = new Set<string>();
  for (let i = 0; i < few.length; i += 2) places.add(`${few[i]} ${few[i + 1]}`);
  for (let i = 0; i < many.length; i += 2) {
    if (places.has(`${many[i]} ${many[i + 1]}`)) return true;
  }
  return false;
}

/**
 * On which side of the line from (x1, y1) to (x2, y2) a place lies: positive to the right of it,
 * negative to the left, 0 exactly on it.
 */
function sideOf(x1: number, y1: number, x2: number, y2: number, x: number, y: number): number {
  return orient2d(x1, y1, x2, y2, x, y);
}

/**
 * Whether edge `i` of one list (x1, y1, x2, y2, …) and edge `j` of another, moved east by `shift`, have a
 * place in common; their ends belong to them.
 */
function edgesMeet(a: Float64Array, i: number, b: Float64Array, j: number, shift: number): boolean {
  const [ax, ay, bx, by] = [a[i] ?? 0, a[i + 1] ?? 0, a[i + 2] ?? 0, a[i + 3] ?? 0];
  const cx = (b[j] ?? 0) + shift;
  const cy = b[j + 1] ?? 0;
  const dx = (b[j + 2] ?? 0) + shift;
  const dy = b[j + 3] ?? 0;
  if (ax < cx && ax < dx && bx < cx && bx < dx) return false;
  if (ax > cx && ax > dx && bx > cx && bx > dx) return false;
  if (ay < cy && ay < dy && by < cy && by < dy) return false;
  if (ay > cy && ay > dy && by > cy && by > dy) return false;
  // Boxes that overlap, and neither edge wholly on one side of the other: they meet, even in one line.
  const c = orient2d(ax, ay, bx, by, cx, cy);
  const d = orient2d(ax, ay, bx, by, dx, dy);
  if ((c > 0 && d > 0) || (c < 0 && d < 0)) return false;
  const first = orient2d(cx, cy, dx, dy, ax, ay);
  const second = orient2d(cx, cy, dx, dy, bx, by);
  return !((first > 0 && second > 0) || (first < 0 && second < 0));
}

/**
 * What is left, in steps of some nanoseconds; several geometries may share it. A clock would refuse on
 * one machine what another takes.
 */
export interface Effort {
  left: number;
}

/** About a tenth of a second: ten times what a coast with 5,000 corners and its islands takes. */
const stepsMax = 15_000_000;

export function newEffort(): Effort {
  return { left: stepsMax };
}

/** The effort is used up: what was found until then says nothing about the rest. */
export class EffortExhausted extends Error {}

/** Takes steps; throws EffortExhausted when none are left. */
export function spend(effort: Effort, steps: number): void {
  effort.left -= steps;
  if (effort.left < 0) throw new EffortExhausted();
}
