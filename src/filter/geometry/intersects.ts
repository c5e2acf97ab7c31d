/** Whether two shapes have a place in common; touching is enough. */

import { someEdge } from './edge-index.ts';
import { type Effort, spend } from './effort.ts';
import { edgesMeet, sideOf } from './segments.ts';
import type { Region, Shape } from './shape.ts';

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
