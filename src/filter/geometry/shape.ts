/** A geometry made ready for questions about place: on a globe whose longitudes have no end. */
import type { Box, Geometry, Position, Rings } from '../../domain/geometry.ts';
import { clampedLatitude, type Outline, outlineOf, snappedLongitude } from './ring.ts';

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

/**
 * Edges in the order of their ring lie near each other, so boxes are laid round runs of them, and
 * boxes round runs of those. An edge is x1, y1, x2, y2, a box is west, south, east, north.
 */
interface EdgeIndex {
  readonly edges: Float64Array;
  /** The boxes of the edges' runs, then of their runs, and so on until one is left. */
  readonly levels: readonly Float64Array[];
}

/** What each run holds. */
const runLength = 8;

/** Lays the boxes. */
function indexEdges(edges: Float64Array): EdgeIndex {
  const levels: Float64Array[] = [];
  let below = edges;
  while (below.length > 4) {
    below = boxesRound(below);
    levels.push(below);
  }
  return { edges, levels };
}

/** Asks about each edge whose box meets the given one, until the answer is yes; then gives true. */
export function someEdge(
  index: EdgeIndex,
  west: number,
  south: number,
  east: number,
  north: number,
  isWanted: (edge: number) => boolean,
): boolean {
  const visit = (level: number, first: number): boolean => {
    const items = index.levels[level] ?? index.edges;
    const end = Math.min(items.length, first + 4 * runLength);
    for (let i = first; i < end; i += 4) {
      const [x1, y1, x2, y2] = [
        items[i] ?? 0,
        items[i + 1] ?? 0,
        items[i + 2] ?? 0,
        items[i + 3] ?? 0,
      ];
      if (x1 < west && x2 < west) continue;
      if (x1 > east && x2 > east) continue;
      if (y1 < south && y2 < south) continue;
      if (y1 > north && y2 > north) continue;
      if (level < 0 ? isWanted(i) : visit(level - 1, i * runLength)) return true;
    }
    return false;
  };
  return visit(index.levels.length - 1, 0);
}

function boxesRound(items: Float64Array): Float64Array {
  const boxes = new Float64Array(4 * Math.ceil(items.length / (4 * runLength)));
  for (let box = 0; box < boxes.length; box += 4) {
    const end = Math.min(items.length, (box + 4) * runLength);
    let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = box * runLength; i < end; i += 2) {
      const [x, y] = [items[i] ?? 0, items[i + 1] ?? 0];
      if (x < west) west = x;
      if (x > east) east = x;
      if (y < south) south = y;
      if (y > north) north = y;
    }
    boxes.set([west, south, east, north], box);
  }
  return boxes;
}

interface Range {
  west: number;
  east: number;
}

/**
 * One box, or two where the shape reaches the antimeridian; none for an empty shape. Shapes that meet
 * have boxes that meet, whatever the side they are on: the boxes of a shape at a pole go all round,
 * and one that ends at 180 degrees also has a box at -180.
 */
export function boxesOf(shape: Shape): Box[] {
  const ranges = rangesOf(shape);
  if (ranges.length === 0) return [];
  const { south, north } = latitudesOf(shape);
  if (shape.northPole || shape.southPole) return [{ west: -180, south, east: 180, north }];
  const { west, east } = smallestCover(ranges);
  if (east - west >= 360) return [{ west: -180, south, east: 180, north }];
  if (east < 180) return [{ west, south, east, north }];
  return [
    { west, south, east: 180, north },
    { west: -180, south, east: east - 360, north },
  ];
}

/** Where each part lies, with its west end from -180 up to, not including, 180. */
function rangesOf({ points, regions }: Shape): Range[] {
  const ranges: Range[] = regions.map((region) => {
    if (region.northInside || region.southInside) return { west: -180, east: 180 };
    const shift = 360 * Math.floor((region.west + 180) / 360);
    return { west: region.west - shift, east: region.east - shift };
  });
  for (let i = 0; i < points.length; i += 2)
    ranges.push({ west: points[i] ?? 0, east: points[i] ?? 0 });
  return ranges;
}

function latitudesOf({ points, regions }: Shape): { south: number; north: number } {
  let [south, north] = [Infinity, -Infinity];
  for (const region of regions) {
    south = Math.min(south, region.south);
    north = Math.max(north, region.north);
  }
  for (let i = 1; i < points.length; i += 2) {
    south = Math.min(south, points[i] ?? 0);
    north = Math.max(north, points[i] ?? 0);
  }
  return { south, north };
}

/** The smallest range that holds all the others: what the largest gap between them leaves. */
function smallestCover(ranges: readonly Range[]): Range {
  const sorted = [...ranges].sort((a, b) => a.west - b.west);
  let reach = -Infinity;
  for (const { east } of sorted) reach = Math.max(reach, east);
  // The easternmost may reach round the globe, over the beginning.
  let covered = reach - 360;
  let widestGap = -Infinity;
  let cover: Range = { west: -180, east: 180 };
  for (const { west, east } of sorted) {
    if (west - covered > widestGap) {
      widestGap = west - covered;
      cover = { west, east: covered + 360 };
    }
    covered = Math.max(covered, east);
  }
  return cover;
}
