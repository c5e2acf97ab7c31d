/** A footprint in the plane: cut along the antimeridian, within 180 and 90 degrees. */
import type { AnyGeometry, Box, Position, Ring, Rings } from '../../domain/filter-tree.ts';
import { toGeoJson } from '../../filter/geometry/geojson.ts';
import {
  lineRing,
  linesOf,
  pointsOf,
  polygonsOf,
  positionsOf,
} from '../../filter/geometry/ring.ts';

/** A polygon with its holes, or a line as a ring without area, and its extent. */
export interface Part extends Box {
  readonly rings: Rings;
  /** Edges of all rings, flat: x and y of the start, x and y of the end. */
  readonly edges: Float64Array;
}

export interface Footprint {
  readonly parts: readonly Part[];
  /** Points of a point geometry. */
  readonly points: readonly Position[];
}

/** Real footprints have a few hundred; more would block the process for too long. */
const cornersMax = 600;
/** Real footprints have up to four, and rarely a hole. */
const ringsMax = 20;
/** Real footprints have none. */
const pointsMax = 100;

/** Null if the geometry is empty, has invalid numbers, or exceeds the limits. */
export function footprintOf(geometry: AnyGeometry): Footprint | null {
  const corners = positionsOf(geometry);
  const rings = [...polygonsOf(geometry).flat(), ...linesOf(geometry)];
  if (corners.length > cornersMax || rings.length > ringsMax) return null;
  if (!corners.every((position) => position.every(Number.isFinite))) return null;
  const clean = toGeoJson(geometry);
  const points = pointsOf(clean);
  const lines = linesOf(clean).map((line) => [lineRing(line)]);
  const parts = [...polygonsOf(clean), ...lines].filter(([ring]) => (ring?.length ?? 0) > 0);
  // A footprint that crosses the antimeridian many times is cut into many parts.
  if (points.length > pointsMax || parts.length > ringsMax) return null;
  return points.length + parts.length === 0 ? null : { parts: parts.map(partOf), points };
}

/** Returns true if a point lies in one of the parts, outside its holes. */
export function contains({ parts }: Footprint, [x, y]: Position): boolean {
  return parts.some(({ edges, west, south, east, north }) => {
    if (x < west || x > east || y < south || y > north) return false;
    return isWithin(edges, x, y);
  });
}

/** Ray casting: returns true if an odd number of edges lies to the east. */
function isWithin(edges: Float64Array, x: number, y: number): boolean {
  let isInside = false;
  for (let i = 0; i < edges.length; i += 4) {
    if (isCrossed(edges, i, y) && crossingOf(edges, i, y) > x) isInside = !isInside;
  }
  return isInside;
}

/** Returns the longitudes at which edges cross a parallel. */
export function crossingsAt({ edges }: Part, latitude: number): number[] {
  const crossings: number[] = [];
  for (let i = 0; i < edges.length; i += 4) {
    if (isCrossed(edges, i, latitude)) crossings.push(crossingOf(edges, i, latitude));
  }
  return crossings;
}

/** Each edge includes its southern end and excludes its northern one. */
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
