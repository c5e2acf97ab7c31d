/** A footprint in the plane: cut along the antimeridian, nothing beyond 180 and 90 degrees. */
import type { Box, Geometry, Position, Ring, Rings } from '../../domain/filter-tree.ts';
import { toGeoJson } from '../../filter/geometry/geojson.ts';
import { pointsOf, polygonsOf, positionsOf } from '../../filter/geometry/ring.ts';

/** A polygon with its holes, and its extent. */
export interface Part extends Box {
  readonly rings: Rings;
  /** Of all rings, flat: x and y of the beginning, x and y of the end. */
  readonly edges: Float64Array;
}

export interface Footprint {
  readonly parts: readonly Part[];
  /** Those of a geometry of points. */
  readonly points: readonly Position[];
}

/** Real ones have some hundreds; what more would cost is time in which nothing is answered. */
const cornersMax = 600;
/** Real ones have up to four, and hardly a hole. */
const ringsMax = 20;
/** Real ones have none. */
const pointsMax = 100;

/** Null where it has no place at all, values that are no numbers, or more parts than are looked at. */
export function footprintOf(geometry: Geometry): Footprint | null {
  const corners = positionsOf(geometry);
  if (corners.length > cornersMax || polygonsOf(geometry).flat().length > ringsMax) return null;
  if (!corners.every((position) => position.every(Number.isFinite))) return null;
  const clean = toGeoJson(geometry);
  const points = pointsOf(clean);
  const parts = polygonsOf(clean).filter(([outline]) => (outline?.length ?? 0) > 0);
  // One that runs across the antimeridian again and again is cut into many.
  if (points.length > pointsMax || parts.length > ringsMax) return null;
  return points.length + parts.length === 0 ? null : { parts: parts.map(partOf), points };
}

/** Whether a place lies in one of the parts, and in none of its holes. */
export function contains({ parts }: Footprint, [x, y]: Position): boolean {
  return parts.some(({ edges, west, south, east, north }) => {
    if (x < west || x > east || y < south || y > north) return false;
    return isWithin(edges, x, y);
  });
}

/** An odd number of edges lies on the way to the east. */
function isWithin(edges: Float64Array, x: number, y: number): boolean {
  let isInside = false;
  for (let i = 0; i < edges.length; i += 4) {
    if (isCrossed(edges, i, y) && crossingOf(edges, i, y) > x) isInside = !isInside;
  }
  return isInside;
}

/** Where edges cross a parallel. */
export function crossingsAt({ edges }: Part, latitude: number): number[] {
  const crossings: number[] = [];
  for (let i = 0; i < edges.length; i += 4) {
    if (isCrossed(edges, i, latitude)) crossings.push(crossingOf(edges, i, latitude));
  }
  return crossings;
}

/** Each edge has its southern end and not its northern one. */
function isCrossed(edges: Float64Array, i: number, latitude: number): boolean {
  return (edges[i + 1] ?? 0) <= latitude !== (edges[i + 3] ?? 0) <= latitude;
}

function crossingOf(edges: Float64Array, i: number, latitude: number): number {
  const [x1, y1, x2, y2] = [edges[i] ?? 0, edges[i + 1] ?? 0, edges[i + 2] ?? 0, edges[i + 3] ?? 0];
  return x1 + ((latitude - y1) / (y2 - y1)) * (x2 - x1);
}

function edgesOf(rings: Rings): Float64Array {
  const numbers = rings.flatMap((ring) =>
    ring.slice(1).flatMap((to, i) => [...(ring[i] ?? to), ...to]),
  );
  return Float64Array.from(numbers);
}

function partOf(rings: Rings): Part {
  const outline: Ring = rings[0] ?? [];
  const box = { west: Infinity, south: Infinity, east: -Infinity, north: -Infinity };
  for (const [x, y] of outline) {
    box.west = Math.min(box.west, x);
    box.east = Math.max(box.east, x);
    box.south = Math.min(box.south, y);
    box.north = Math.max(box.north, y);
  }
  return { rings, edges: edgesOf(rings), ...box };
}
