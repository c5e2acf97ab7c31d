/** Geometries prepared for spatial queries, with continuous longitudes. Comparisons do not round; shapes that touch intersect. */
import Flatbush from 'flatbush';
import { orient2d } from 'robust-predicates';
import type { AnyGeometry, Box, Position, Ring } from '../filter-tree.ts';
import {
  clampedLatitude,
  enclosedPole,
  extentOf,
  joinedBox,
  lineRing,
  partsOf,
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
  /** The boxes of the edges, built at the first call. */
  readonly index: () => Flatbush;
  /** A corner of each ring: x, y, x, y, … */
  readonly corners: readonly number[];
  readonly northInside: boolean;
  readonly southInside: boolean;
}

/**
 * Points and regions, at least one. Opaque: use `shapesIntersect` and `boxesOf`.
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
  const parts = partsOf(geometry);
  const points = parts.points.flatMap(([longitude, latitude]) => {
    const x = snappedLongitude(longitude);
    return [x === 180 ? -180 : x, clampedLatitude(latitude)];
  });
  const regions = [
    ...parts.polygons.map((rings) => regionOf(rings.map(outlineOf))),
    // In both directions, so that no point is between the edges.
    ...parts.lines.map((line) => regionOf([outlineOf(lineRing(line))])),
  ];
  const hasPoint = (latitude: number) => points.some((y, i) => i % 2 === 1 && y === latitude);
  return {
    points,
    regions,
    northPole: regions.some(({ north }) => north === 90) || hasPoint(90),
    southPole: regions.some(({ south }) => south === -90) || hasPoint(-90),
  };
}

function regionOf(outlines: readonly Outline[]): Region {
  const isInside = (pole: Outline['pole']) =>
    outlines.filter((one) => one.pole === pole).length % 2 === 1;
  const [northInside, southInside] = [isInside('north'), isInside('south')];
  const edges = new Float64Array(outlines.flatMap((one) => one.edges));
  const { west, south, east, north } = extentOf(edges);
  let index: Flatbush | undefined;
  return {
    edges,
    index: () => {
      index ??= indexOf(edges);
      return index;
    },
    corners: outlines.flatMap((outline) => outline.edges.slice(0, 2)),
    northInside,
    southInside,
    west,
    south: southInside ? -90 : south,
    east,
    north: northInside ? 90 : north,
  };
}

function indexOf(edges: Float64Array): Flatbush {
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
  /** The pole on the inner side of the ring. */
  readonly pole: 'north' | 'south' | null;
}

/**
 * Returns the outline of a ring. No edge closes it along a pole or a meridian: a line north from a point ends at the
 * pole, and changes between inside and outside at every edge. A ring round a pole encloses the nearer pole, the
 * smaller area.
 */
function outlineOf(ring: Ring): Outline {
  const unwrapped = unwrapRing(ring);
  return { edges: edgesOf(unwrapped), pole: enclosedPole(unwrapped) };
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
 * reaches the antimeridian. Boxes of intersecting shapes always intersect: a shape at a pole has a box with all
 * longitudes, and one that ends at 180 degrees also has a box at -180.
 */
export function boxesOf(shape: Shape): Box[] {
  const boxes = extentsOf(shape);
  if (!shape.northPole && !shape.southPole) return boxes;
  return boxes.slice(0, 1).map((box) => ({ ...box, west: -180, east: 180 }));
}

/** Returns the boxes as people write them: an area with a corner at a pole does not have all longitudes. */
function extentsOf({ points, regions }: Shape): Box[] {
  const boxes: Box[] = regions.map(({ south, north, ...region }) => {
    if (region.northInside || region.southInside) return { west: -180, south, east: 180, north };
    const shift = 360 * turnsOf(region.west);
    return { west: region.west - shift, south, east: region.east - shift, north };
  });
  for (let i = 0; i < points.length; i += 2) {
    const [x = 0, y = 0] = [points[i], points[i + 1]];
    boxes.push({ west: x, south: y, east: x, north: y });
  }
  const { south, north } = boxes.reduce(joinedBox);
  const { west, east } = smallestCover(boxes);
  if (east - west >= 360) return [{ west: -180, south, east: 180, north }];
  if (east < 180) return [{ west, south, east, north }];
  return [
    { west, south, east: 180, north },
    { west: -180, south, east: east - 360, north },
  ];
}

/** Returns west, south, east and north; west is greater than east across the antimeridian (RFC 7946, 5.2). */
export function bboxOf(shape: Shape): [number, number, number, number] {
  const [box = { west: 0, south: 0, east: 0, north: 0 }, beyond] = extentsOf(shape);
  // If a box only touches the antimeridian, the box on the other side has no width.
  const east = beyond === undefined || beyond.east === -180 ? box.east : beyond.east;
  return [box.west, box.south, east, box.north];
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

/** Returns the centre of the bounding box of a geometry; null for none. */
export function centreOf(geometry: AnyGeometry | null | undefined): Position | null {
  const [first, second] = geometry ? boxesOf(toShape(geometry)) : [];
  if (first === undefined) return null;
  // The second box is the part beyond the antimeridian.
  const east = second === undefined ? first.east : second.east + 360;
  const middle = (first.west + east) / 2;
  return [middle > 180 ? middle - 360 : middle, (first.south + first.north) / 2];
}

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
function onOneSide(a: number, b: number): boolean {
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
  index().search(west, south, east, north, (edge) => {
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
  const placesOf = (points: readonly number[]) =>
    points.flatMap((x, i) => (i % 2 === 0 ? [`${x} ${points[i + 1]}`] : []));
  const places = new Set(placesOf(a));
  return placesOf(b).some((place) => places.has(place));
}
