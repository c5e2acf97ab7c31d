/** Checks whether two shapes intersect, without rounding; shapes that touch intersect. */
import { orient2d } from 'robust-predicates';
import type { Region, Shape } from './shape.ts';

/**
 * Checks for a common point: of areas, borders of outlines and holes, points, and the poles.
 */
export function shapesIntersect(a: Shape, b: Shape): boolean {
  // At a pole, all longitudes are the same point, but not in the plane.
  if ((a.northPole && b.northPole) || (a.southPole && b.southPole)) return true;
  return (
    a.regions.some((region) => b.regions.some((other) => regionsIntersect(region, other))) ||
    a.regions.some((region) => holdsSome(region, b.points)) ||
    b.regions.some((region) => holdsSome(region, a.points)) ||
    shareSome(a.points, b.points)
  );
}

function regionsIntersect(a: Region, b: Region): boolean {
  if (a.south > b.north || b.south > a.north) return false;
  const [few, many] = a.edges.length <= b.edges.length ? [a, b] : [b, a];
  for (const shift of shiftsOnto(many, few.west, few.east)) {
    if (bordersIntersect(few, many, shift)) return true;
  }
  // The borders do not intersect, so each ring is completely inside or outside of the other region.
  return holdsSome(many, few.corners) || holdsSome(few, many.corners);
}

/** Shifts by whole turns, in degrees, that move an extent onto a region's edges. */
function shiftsOnto(region: Region, west: number, east: number): number[] {
  const shifts: number[] = [];
  const last = Math.floor((region.east - west) / 360);
  for (let turn = Math.ceil((region.west - east) / 360); turn <= last; turn += 1) {
    shifts.push(turn * 360);
  }
  return shifts;
}

function bordersIntersect(few: Region, many: Region, shift: number): boolean {
  for (let i = 0; i < few.edges.length; i += 4) {
    const [x1, y1, x2, y2] = edgeAt(few.edges, i, shift);
    // Edges intersect, even if collinear, if their boxes overlap and neither is on one side of the other.
    const isFound = someEdge(
      many,
      Math.min(x1, x2),
      Math.min(y1, y2),
      Math.max(x1, x2),
      Math.max(y1, y2),
      (ax, ay, bx, by) =>
        !onOneSide(orient2d(ax, ay, bx, by, x1, y1), orient2d(ax, ay, bx, by, x2, y2)) &&
        !onOneSide(orient2d(x1, y1, x2, y2, ax, ay), orient2d(x1, y1, x2, y2, bx, by)),
    );
    if (isFound) return true;
  }
  return false;
}

/** True for two orientations that are both strictly positive or both strictly negative. */
export function onOneSide(a: number, b: number): boolean {
  return (a > 0 && b > 0) || (a < 0 && b < 0);
}

function holdsSome(region: Region, places: readonly number[]): boolean {
  for (let i = 0; i < places.length; i += 2) {
    if (holds(region, places[i] ?? 0, places[i + 1] ?? 0)) return true;
  }
  return false;
}

/** Follows the meridian north to the pole, and changes between inside and outside at each edge. */
function holds(region: Region, longitude: number, y: number): boolean {
  if (y < region.south || y > region.north) return false;
  let inside = region.northInside;
  for (const shift of shiftsOnto(region, longitude, longitude)) {
    const x = longitude + shift;
    const isOnBorder = someEdge(region, x, y, x, Infinity, (x1, y1, x2, y2) => {
      if (x1 === x2) return Math.min(y1, y2) <= y;
      // Positive on the right of a line.
      const side = x1 < x2 ? orient2d(x1, y1, x2, y2, x, y) : orient2d(x2, y2, x1, y1, x, y);
      // An edge includes only its western end, so a corner counts once.
      if (side > 0 && x < Math.max(x1, x2)) inside = !inside;
      return side === 0;
    });
    if (isOnBorder) return true;
  }
  return inside;
}

type EdgeTest = (x1: number, y1: number, x2: number, y2: number) => boolean;

/** True if `test` passes for an edge whose box overlaps the given one. */
function someEdge(
  { index, edges }: Region,
  west: number,
  south: number,
  east: number,
  north: number,
  test: EdgeTest,
): boolean {
  let isFound = false;
  if (index === null) {
    for (let i = 0; i < edges.length && !isFound; i += 4) {
      const [x1, y1, x2, y2] = edgeAt(edges, i);
      const overlaps =
        Math.min(x1, x2) <= east &&
        Math.max(x1, x2) >= west &&
        Math.min(y1, y2) <= north &&
        Math.max(y1, y2) >= south;
      if (overlaps) isFound = test(x1, y1, x2, y2);
    }
    return isFound;
  }
  index.search(west, south, east, north, (edge) => {
    isFound ||= test(...edgeAt(edges, 4 * edge));
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
