/** Rings in the plane: longitudes are continuous across the antimeridian. */
import type { AnyGeometry, Box, Position, Ring, Rings } from '../filter-tree.ts';

/**
 * Longitudes are multiples of 2^-40 degrees, a tenth of a micrometre on the ground. So adding whole turns is exact,
 * and shapes that touch also touch after a turn.
 */
const stepsPerDegree = 2 ** 40;

export interface UnwrappedRing {
  /** Coordinates of the positions; those of the first are repeated if the ring was open. */
  readonly xs: Float64Array;
  readonly ys: Float64Array;
  /** Number of times that the ring goes round the globe, eastwards. */
  readonly turns: number;
}

/** Polygons of a geometry; empty without any. */
export function polygonsOf(geometry: AnyGeometry): readonly Rings[] {
  if (geometry.type === 'Polygon') return [geometry.coordinates];
  if (geometry.type === 'GeometryCollection') return geometry.geometries.flatMap(polygonsOf);
  return geometry.type === 'MultiPolygon' ? geometry.coordinates : [];
}

/** Lines of a geometry; empty without any. */
export function linesOf(geometry: AnyGeometry): readonly (readonly Position[])[] {
  if (geometry.type === 'LineString') return [geometry.coordinates];
  if (geometry.type === 'GeometryCollection') return geometry.geometries.flatMap(linesOf);
  return geometry.type === 'MultiLineString' ? geometry.coordinates : [];
}

/** Points of a geometry; empty without any. Corners are not points. */
export function pointsOf(geometry: AnyGeometry): readonly Position[] {
  if (geometry.type === 'Point') return [geometry.coordinates];
  if (geometry.type === 'GeometryCollection') return geometry.geometries.flatMap(pointsOf);
  return geometry.type === 'MultiPoint' ? geometry.coordinates : [];
}

export function positionsOf(geometry: AnyGeometry): readonly Position[] {
  return [...pointsOf(geometry), ...linesOf(geometry).flat(), ...polygonsOf(geometry).flat(2)];
}

/** Parts of a geometry by kind. */
interface Parts {
  points: readonly Position[];
  lines: readonly (readonly Position[])[];
  polygons: readonly Rings[];
}

export function partsOf(geometry: AnyGeometry): Parts {
  return {
    points: pointsOf(geometry),
    lines: linesOf(geometry),
    polygons: polygonsOf(geometry),
  };
}

/** Returns the geometry of these parts: a collection only if they differ in kind. */
export function joinParts({ points, lines, polygons }: Parts): AnyGeometry {
  const kinds: Record<string, readonly unknown[]> = {
    Point: points,
    LineString: lines,
    Polygon: polygons,
  };
  const geometries = Object.entries(kinds).flatMap(([type, list]) => {
    if (list.length > 1) return [{ type: `Multi${type}`, coordinates: list }];
    return list.map((coordinates) => ({ type, coordinates }));
  }) as AnyGeometry[];
  const [only, ...others] = geometries;
  return only !== undefined && others.length === 0
    ? only
    : { type: 'GeometryCollection', geometries };
}

/** Returns a line as a ring that returns the same way: it has edges, but no area. */
export function lineRing(line: readonly Position[]): Ring {
  return [...line, ...line.slice(0, -1).toReversed()];
}

/** Rounds a longitude to the grid, within -180 to 180 degrees; both limits stay unchanged. */
export function snappedLongitude(longitude: number): number {
  const rest = longitude % 360;
  const turned = rest > 180 ? rest - 360 : rest < -180 ? rest + 360 : rest;
  const within = Math.abs(longitude) <= 180 ? longitude : turned;
  return Math.round(within * stepsPerDegree) / stepsPerDegree;
}

/** Limits a latitude to -90 to 90 degrees. */
export function clampedLatitude(latitude: number): number {
  return Math.min(90, Math.max(-90, latitude));
}

/** Number of whole turns, eastwards, from the range -180 up to, not including, 180 to a longitude. */
export function turnsOf(x: number): number {
  return Math.floor((x + 180) / 360);
}

/** Returns the smallest box around positions without heights (x, y, x, y, …), without regard to the antimeridian. */
export function extentOf(positions: ArrayLike<number>): Box {
  const extent = { west: Infinity, south: Infinity, east: -Infinity, north: -Infinity };
  for (let i = 0; i < positions.length; i += 2) {
    const [x, y] = [positions[i] ?? 0, positions[i + 1] ?? 0];
    extent.west = Math.min(extent.west, x);
    extent.south = Math.min(extent.south, y);
    extent.east = Math.max(extent.east, x);
    extent.north = Math.max(extent.north, y);
  }
  return extent;
}

/** Returns the smallest box around two boxes, without regard to the antimeridian. */
export function joinedBox(one: Box, other: Box): Box {
  return {
    west: Math.min(one.west, other.west),
    south: Math.min(one.south, other.south),
    east: Math.max(one.east, other.east),
    north: Math.max(one.north, other.north),
  };
}

export function isSamePosition(a: Position | undefined, b: Position | undefined): boolean {
  return a?.[0] === b?.[0] && a?.[1] === b?.[1];
}

/** Checks that the last position of a ring is its first. */
export function isClosed(ring: Ring): boolean {
  return ring.length > 1 && isSamePosition(ring[0], ring.at(-1));
}

/** Returns the ring with its first position repeated at the end. */
export function closedRing(ring: Ring): Ring {
  return isClosed(ring) ? ring : [...ring, ...ring.slice(0, 1)];
}

/**
 * Converts a ring to the plane, and closes it. Edges of up to 180 degrees stay as written; wider ones take the shorter
 * way, across the antimeridian. An edge of exactly 360 degrees stays: a side of a rectangle round the globe.
 */
export function unwrapRing(ring: Ring): UnwrappedRing {
  return unwrapPath(closedRing(ring));
}

/** Converts positions to the plane, like those of a ring. */
export function unwrapPath(positions: readonly Position[]): UnwrappedRing {
  const xs = new Float64Array(positions.length);
  const ys = new Float64Array(positions.length);
  let before = 0;
  for (const [i, [longitude, latitude]] of positions.entries()) {
    const x = snappedLongitude(longitude);
    xs[i] = i === 0 ? x : (xs[i - 1] ?? 0) + shortWay(x - before);
    ys[i] = clampedLatitude(latitude);
    before = x;
  }
  return { xs, ys, turns: Math.round(((xs.at(-1) ?? 0) - (xs[0] ?? 0)) / 360) };
}

/** Returns the signed width of an edge from the difference of its longitudes. */
function shortWay(difference: number): number {
  const width = Math.abs(difference);
  if (width <= 180 || width === 360) return difference;
  return difference - 360 * Math.round(difference / 360);
}

/** Returns the pole inside a ring: the nearer one to its mean latitude, weighted by width; null if there is none. */
export function enclosedPole({ xs, ys, turns }: UnwrappedRing): 'north' | 'south' | null {
  if (turns % 2 === 0) return null;
  let sum = 0;
  for (let i = 1; i < xs.length; i += 1) {
    sum += ((xs[i] ?? 0) - (xs[i - 1] ?? 0)) * ((ys[i] ?? 0) + (ys[i - 1] ?? 0));
  }
  return sum * turns >= 0 ? 'north' : 'south';
}
