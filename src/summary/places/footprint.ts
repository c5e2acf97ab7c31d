/** A footprint in the plane: cut along the antimeridian, nothing beyond 180 and 90 degrees. */
import type { Box, Geometry, Position, Ring, Rings } from '../../domain/geometry.ts';
import { toGeoJson } from '../../filter/geometry/geojson.ts';
import { shapesIntersect } from '../../filter/geometry/intersects.ts';
import { type Shape, toShape } from '../../filter/geometry/shape.ts';

/** A polygon with its holes, and its extent. */
export interface Part extends Box {
  readonly rings: Rings;
}

export interface Footprint {
  /** The same as filters see it. */
  readonly shape: Shape;
  readonly parts: readonly Part[];
  /** Those of a geometry of points. */
  readonly points: readonly Position[];
}

/** Real ones have some hundreds; one of 50,000 would take half a second, in which nothing is answered. */
const cornersMax = 5_000;

/** Null where it has no place at all, values that are no numbers, or more corners than are looked at. */
export function footprintOf(geometry: Geometry): Footprint | null {
  const corners = positionsOf(geometry);
  if (corners.length > cornersMax) return null;
  if (!corners.every((position) => position.every(Number.isFinite))) return null;
  const clean = toGeoJson(geometry);
  const points = isOfPoints(clean) ? positionsOf(clean) : [];
  const parts = polygonsOf(clean).filter(([outline]) => (outline?.length ?? 0) > 0);
  if (points.length + parts.length === 0) return null;
  return { shape: toShape(clean), parts: parts.map(partOf), points };
}

/** Whether a place lies in one of the parts. */
export function holds({ shape, parts }: Footprint, place: Position): boolean {
  const [x, y] = place;
  const isInBox = parts.some(({ west, south, east, north }) => {
    return x >= west && x <= east && y >= south && y <= north;
  });
  return isInBox && shapesIntersect(shape, toShape({ type: 'Point', coordinates: place }));
}

/** Where edges cross a parallel. Each edge has its southern end and not its northern one. */
export function crossingsAt(rings: Rings, latitude: number): number[] {
  const crossings: number[] = [];
  for (const ring of rings) {
    for (let i = 1; i < ring.length; i += 1) {
      const [[x1, y1] = nowhere, [x2, y2] = nowhere] = [ring[i - 1], ring[i]];
      if (y1 <= latitude === y2 <= latitude) continue;
      crossings.push(x1 + ((latitude - y1) / (y2 - y1)) * (x2 - x1));
    }
  }
  return crossings;
}

const nowhere: Position = [0, 0];

function isOfPoints({ type }: Geometry): boolean {
  return type === 'Point' || type === 'MultiPoint';
}

/** None for points. */
export function polygonsOf(geometry: Geometry): readonly Rings[] {
  if (geometry.type === 'Polygon') return [geometry.coordinates];
  return geometry.type === 'MultiPolygon' ? geometry.coordinates : [];
}

function positionsOf(geometry: Geometry): readonly Position[] {
  if (geometry.type === 'Point') return [geometry.coordinates];
  if (geometry.type === 'MultiPoint') return geometry.coordinates;
  return polygonsOf(geometry).flat(2);
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
  return { rings, ...box };
}
