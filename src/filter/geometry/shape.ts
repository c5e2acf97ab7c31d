/** A geometry prepared for spatial queries, with continuous longitudes. */
import Flatbush from 'flatbush';
import type { AnyGeometry, Box, Position, Ring, Rings } from '../filter-tree.ts';
import {
  clampedLatitude,
  enclosedPole,
  lineRing,
  linesOf,
  pointsOf,
  polygonsOf,
  snappedLongitude,
  turnsOf,
  type UnwrappedRing,
  unwrapRing,
} from './ring.ts';

/**
 * A line, or a polygon with its holes, and its extent: `west` is within -180 and 180 except for unusual rings; a width of 360 or
 * more is the whole globe. It contains the points on its edges, and those inside an odd number of rings.
 */
export interface Region extends Readonly<Box> {
  /** x1, y1, x2, y2 of the edges of all rings. */
  readonly edges: Float64Array;
  /** The boxes of the edges; null for few edges, which are read one by one. */
  readonly index: Flatbush | null;
  /** A corner of each ring: x, y, x, y, … */
  readonly corners: readonly number[];
  readonly northInside: boolean;
  readonly southInside: boolean;
}

/**
 * Points and regions. Opaque: use `shapesIntersect` and `boxesOf`. Invalid parts (without positions, or with values
 * that are not numbers) are ignored, so a shape may be empty and intersect nothing.
 */
export interface Shape {
  /** x, y, x, y, …; x from -180 up to, not including, 180. */
  readonly points: readonly number[];
  readonly regions: readonly Region[];
  /** True if the pole is inside, on the border, or a point. */
  readonly northPole: boolean;
  readonly southPole: boolean;
}

/**
 * Prepares a geometry (semantics: docs of `unwrapRing` and `outlineOf`). Accepts all rings: closes open ones, and
 * applies the even-odd rule to self-intersecting ones. Never throws.
 */
export function toShape(geometry: AnyGeometry): Shape {
  const points = pointsOf(geometry)
    .filter(isFinitePosition)
    .flatMap(([longitude, latitude]) => {
      const x = snappedLongitude(longitude);
      return [x === 180 ? -180 : x, clampedLatitude(latitude)];
    });
  const regions = [
    ...polygonsOf(geometry).flatMap((rings) => regionsOf(rings, outlineOf)),
    ...linesOf(geometry).flatMap((line) => regionsOf([line], outlineOfLine)),
  ];
  const hasPoint = (latitude: number) => points.some((y, i) => i % 2 === 1 && y === latitude);
  return {
    points,
    regions,
    northPole: regions.some(({ north }) => north === 90) || hasPoint(90),
    southPole: regions.some(({ south }) => south === -90) || hasPoint(-90),
  };
}

/** Checks for a shape without points and regions. */
export function isEmptyShape(shape: Shape): boolean {
  return shape.points.length === 0 && shape.regions.length === 0;
}

function isFinitePosition([longitude, latitude]: Position): boolean {
  return Number.isFinite(longitude) && Number.isFinite(latitude);
}

/** Returns the region of a polygon or a line; none if it has no outline, an invalid value, or no area. */
function regionsOf(rings: Rings, toOutline: (ring: Ring) => Outline): Region[] {
  if (rings[0] === undefined || rings[0].length === 0) return [];
  if (!rings.every((ring) => ring.every(isFinitePosition))) return [];
  const outlines = rings.filter((ring) => ring.length > 0).map(toOutline);
  const northInside = outlines.filter((one) => one.northInside).length % 2 === 1;
  const southInside = outlines.filter((one) => one.southInside).length % 2 === 1;
  const [first] = outlines;
  const all = outlines.length === 1 ? first?.edges : outlines.flatMap(({ edges }) => edges);
  const edges = new Float64Array(all ?? []);
  const { west, south, east, north } = extentOf(edges);
  return [
    {
      edges,
      index: indexOf(edges),
      corners: outlines.flatMap((outline) => outline.edges.slice(0, 2)),
      northInside,
      southInside,
      west,
      south: southInside ? -90 : south,
      east,
      north: northInside ? 90 : north,
    },
  ];
}

function extentOf(edges: Float64Array): Box {
  const box = { west: Infinity, south: Infinity, east: -Infinity, north: -Infinity };
  for (let i = 0; i < edges.length; i += 2) {
    const [x, y] = [edges[i] ?? 0, edges[i + 1] ?? 0];
    box.west = Math.min(box.west, x);
    box.south = Math.min(box.south, y);
    box.east = Math.max(box.east, x);
    box.north = Math.max(box.north, y);
  }
  return box;
}

/** Number of edges from which an index is faster than reading all edges. */
const indexedEdgesMin = 32;

function indexOf(edges: Float64Array): Flatbush | null {
  if (edges.length < 4 * indexedEdgesMin) return null;
  const index = new Flatbush(edges.length / 4);
  for (let i = 0; i < edges.length; i += 4) {
    const [x1, y1] = [edges[i] ?? 0, edges[i + 1] ?? 0];
    const [x2, y2] = [edges[i + 2] ?? 0, edges[i + 3] ?? 0];
    index.add(Math.min(x1, x2), Math.min(y1, y2), Math.max(x1, x2), Math.max(y1, y2));
  }
  index.finish();
  return index;
}

/** A ring as a line on the globe. */
interface Outline {
  readonly edges: readonly number[];
  /** True if the pole is on the inner side of the ring. */
  readonly northInside: boolean;
  readonly southInside: boolean;
}

/**
 * Returns the outline of a ring. No edge closes it along a pole or a meridian: a line north from a point ends at the
 * pole, and changes between inside and outside at every edge. A ring round a pole encloses the nearer pole, the
 * smaller area.
 */
function outlineOf(ring: Ring): Outline {
  const unwrapped = unwrapRing(ring);
  const pole = enclosedPole(unwrapped);
  return {
    edges: edgesOf(unwrapped),
    northInside: pole === 'north',
    southInside: pole === 'south',
  };
}

/** Returns the edges of a line in both directions, so that no point is between them. */
function outlineOfLine(line: Ring): Outline {
  const edges = edgesOf(unwrapRing(lineRing(line)));
  return { edges, northInside: false, southInside: false };
}

function edgesOf({ xs, ys }: UnwrappedRing): number[] {
  const edges: number[] = [];
  for (let i = 1; i < xs.length; i += 1) {
    const [x1, y1, x2, y2] = [xs[i - 1] ?? 0, ys[i - 1] ?? 0, xs[i] ?? 0, ys[i] ?? 0];
    if (x1 !== x2 || y1 !== y2) edges.push(x1, y1, x2, y2);
  }
  const [x = 0, y = 0] = [xs[0], ys[0]];
  // A ring of one position is a point.
  return edges.length > 0 ? edges : [x, y, x, y];
}

/**
 * Returns the bounding boxes of a shape, for an index without support for the antimeridian: one, or two if the shape
 * reaches the antimeridian; none for an empty shape. Boxes of intersecting shapes always intersect: a shape at a pole
 * has a box with all longitudes, and one that ends at 180 degrees also has a box at -180.
 */
export function boxesOf({ points, regions, northPole, southPole }: Shape): Box[] {
  const ranges = regions.map((region): Range => {
    if (region.northInside || region.southInside) return { west: -180, east: 180 };
    const shift = 360 * turnsOf(region.west);
    return { west: region.west - shift, east: region.east - shift };
  });
  let [south, north] = [Infinity, -Infinity];
  for (const region of regions) {
    south = Math.min(south, region.south);
    north = Math.max(north, region.north);
  }
  for (let i = 0; i < points.length; i += 2) {
    const [x = 0, y = 0] = [points[i], points[i + 1]];
    ranges.push({ west: x, east: x });
    south = Math.min(south, y);
    north = Math.max(north, y);
  }
  if (ranges.length === 0) return [];
  const { west, east } = smallestCover(ranges);
  if (northPole || southPole || east - west >= 360)
    return [{ west: -180, south, east: 180, north }];
  if (east < 180) return [{ west, south, east, north }];
  return [
    { west, south, east: 180, north },
    { west: -180, south, east: east - 360, north },
  ];
}

/** A range of longitudes, with `west` from -180 up to, not including, 180. */
type Range = Readonly<Pick<Box, 'west' | 'east'>>;

/** Returns the smallest range that contains all others: everything except the largest gap. */
function smallestCover(ranges: readonly Range[]): Range {
  const sorted = ranges.toSorted((a, b) => a.west - b.west);
  // The easternmost range may continue round the globe, past the first one.
  let covered = sorted.reduce((reach, { east }) => Math.max(reach, east), -Infinity) - 360;
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

/** Returns the centre of the bounding box of a geometry; null for none, or an empty one. */
export function centreOf(geometry: AnyGeometry | null | undefined): Position | null {
  const [first, second] = geometry ? boxesOf(toShape(geometry)) : [];
  if (first === undefined) return null;
  // The second box is the part beyond the antimeridian.
  const east = second === undefined ? first.east : second.east + 360;
  const middle = (first.west + east) / 2;
  return [middle > 180 ? middle - 360 : middle, (first.south + first.north) / 2];
}
