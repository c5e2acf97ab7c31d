/** A geometry made ready for questions about place: on a globe whose longitudes have no end. */
import type { Geometry, Position, Rings } from '../../domain/geometry.ts';
import { type EdgeIndex, indexEdges } from './edge-index.ts';
import { type Outline, outlineOf } from './outline.ts';
import { clampedLatitude, snappedLongitude } from './unwrap.ts';

/** A polygon with its holes. A place is in it when it lies on an edge, or within an odd number of rings. */
export interface Region {
  /** The edges of all rings; none where it is the whole globe. */
  readonly index: EdgeIndex;
  /** One corner of each ring: x, y, x, y, … */
  readonly corners: readonly number[];
  readonly northInside: boolean;
  readonly southInside: boolean;
  /** Its extent. `west` is within -180 and 180 but for odd rings; all round when 360 or more are between. */
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
}

/**
 * Points and regions. Opaque: ask `shapesIntersect` and `boxesOf`. What cannot be read as places (no
 * positions, or values that are no numbers) is left out, so a shape may be empty and meet nothing.
 */
export interface Shape {
  /** x, y, x, y, …; x from -180 up to, not including, 180. */
  readonly points: readonly number[];
  readonly regions: readonly Region[];
  /** True where the pole belongs to it: as inside, border or point. */
  readonly northPole: boolean;
  readonly southPole: boolean;
}

/**
 * Prepares a geometry (semantics: docs of `unwrapRing` and `outlineOf`). Takes any rings: open ones
 * are closed, what crosses itself is inside by the even-odd rule. Never throws.
 */
export function toShape(geometry: Geometry): Shape {
  const points = positionsOf(geometry).filter(isPlace).flatMap(pointOf);
  const regions = polygonsOf(geometry).flatMap(regionsOf);
  const reaches = (latitude: number, inside: (region: Region) => boolean) =>
    regions.some((region) => inside(region)) ||
    points.some((value, i) => i % 2 === 1 && value === latitude);
  return {
    points,
    regions,
    northPole: reaches(90, (region) => region.north === 90),
    southPole: reaches(-90, (region) => region.south === -90),
  };
}

/** True for a shape without any place. */
export function isEmptyShape(shape: Shape): boolean {
  return shape.points.length === 0 && shape.regions.length === 0;
}

function positionsOf(geometry: Geometry): readonly Position[] {
  if (geometry.type === 'Point') return [geometry.coordinates];
  return geometry.type === 'MultiPoint' ? geometry.coordinates : [];
}

function polygonsOf(geometry: Geometry): readonly Rings[] {
  if (geometry.type === 'Polygon') return [geometry.coordinates];
  return geometry.type === 'MultiPolygon' ? geometry.coordinates : [];
}

function isPlace([longitude, latitude]: Position): boolean {
  return Number.isFinite(longitude) && Number.isFinite(latitude);
}

function pointOf([longitude, latitude]: Position): [number, number] {
  const x = snappedLongitude(longitude);
  return [x === 180 ? -180 : x, clampedLatitude(latitude)];
}

/** The polygon's region; none where it has no outline, a value that is no number, or no inside at all. */
function regionsOf(rings: Rings): Region[] {
  if (rings[0] === undefined || rings[0].length === 0) return [];
  if (!rings.every((ring) => ring.every(isPlace))) return [];
  const outlines = rings.filter((ring) => ring.length > 0).map(outlineOf);
  const northInside = isOdd(outlines, (outline) => outline.northInside);
  const southInside = isOdd(outlines, (outline) => outline.southInside);
  const [only, ...more] = outlines.map((outline) => outline.edges);
  const edges = new Float64Array(
    more.length === 0 ? (only ?? []) : [...(only ?? []), ...more.flat()],
  );
  if (edges.length === 0 && !northInside) return [];
  const box = { west: Infinity, south: Infinity, east: -Infinity, north: -Infinity };
  for (let i = 0; i < edges.length; i += 2) {
    const [x, y] = [edges[i] ?? 0, edges[i + 1] ?? 0];
    if (x < box.west) box.west = x;
    if (x > box.east) box.east = x;
    if (y < box.south) box.south = y;
    if (y > box.north) box.north = y;
  }
  if (northInside) box.north = 90;
  if (southInside) box.south = -90;
  const corners = outlines.flatMap((outline) => outline.edges.slice(0, 2));
  return [{ index: indexEdges(edges), corners, northInside, southInside, ...box }];
}

function isOdd(outlines: readonly Outline[], inside: (outline: Outline) => boolean): boolean {
  return outlines.filter(inside).length % 2 === 1;
}
