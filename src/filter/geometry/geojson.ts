/** Writes geometries as GeoJSON for maps (RFC 7946). */
import type { AnyGeometry, Box, Geometry, Position, Ring, Rings } from '../filter-tree.ts';
import { shapesIntersect } from './intersects.ts';
import {
  clampedLatitude,
  closedRing,
  enclosedPole,
  extentOf,
  isSamePosition,
  snappedLongitude,
  turnsOf,
  type UnwrappedRing,
  unwrapPath,
  unwrapRing,
} from './ring.ts';
import { type Shape, toShape } from './shape.ts';

/**
 * Converts to valid GeoJSON: rings closed, outlines counter-clockwise and holes clockwise, cut at the antimeridian
 * (then with several parts), with coordinates within 180 and 90 degrees.
 */
export function toGeoJson(geometry: Geometry): Geometry;
export function toGeoJson(geometry: AnyGeometry): AnyGeometry;
export function toGeoJson(geometry: AnyGeometry): AnyGeometry {
  switch (geometry.type) {
    case 'Point':
      return { type: 'Point', coordinates: pointWithin(geometry.coordinates) };
    case 'MultiPoint':
      return { type: 'MultiPoint', coordinates: geometry.coordinates.map(pointWithin) };
    case 'LineString': {
      const parts = lineParts(geometry.coordinates);
      if (parts.length === 1) return { type: 'LineString', coordinates: parts[0] ?? [] };
      return { type: 'MultiLineString', coordinates: parts };
    }
    case 'MultiLineString':
      return { type: 'MultiLineString', coordinates: geometry.coordinates.flatMap(lineParts) };
    case 'Polygon': {
      const parts = polygonParts(geometry.coordinates);
      if (parts.length < 2) return { type: 'Polygon', coordinates: parts[0] ?? [] };
      return { type: 'MultiPolygon', coordinates: parts };
    }
    case 'MultiPolygon':
      return { type: 'MultiPolygon', coordinates: geometry.coordinates.flatMap(polygonParts) };
    case 'GeometryCollection':
      return { type: 'GeometryCollection', geometries: geometry.geometries.map(toGeoJson) };
  }
}

function pointWithin([longitude, latitude]: Position): Position {
  const isWithin = Math.abs(longitude) <= 180;
  return [isWithin ? longitude : snappedLongitude(longitude), clampedLatitude(latitude)];
}

/** Cuts a line at the antimeridian; a part that only touches it is left out. */
function lineParts(line: readonly Position[]): (readonly Position[])[] {
  const parts = splitPath(line, unwrapPath(line));
  const long = parts.filter((part) => part.length > 1);
  // A line without length.
  return long.length > 0 ? long : [[...(parts[0] ?? []), ...(parts[0] ?? [])]];
}

function polygonParts(polygon: Rings): Rings[] {
  const { whole, pieces } = cutRings(polygon.filter((ring) => ring.length > 0));
  const outlines = pieces.length > 0 ? pieces : whole.slice(0, 1);
  const inner = pieces.length > 0 ? whole : whole.slice(1);
  const parts = outlines.map((outline) => [turned(outline, 'counter-clockwise')]);
  const hasChoice = outlines.length > 1 && inner.length > 0;
  const candidates = hasChoice ? outlines.map(toPart) : [];
  for (const hole of inner) parts[partOf(hole, candidates)]?.push(turned(hole, 'clockwise'));
  return parts;
}

interface Part extends Box {
  shape: Shape;
}

function toPart(outline: Ring): Part {
  const shape = toShape({ type: 'Polygon', coordinates: [outline] });
  return { ...extentOf(outline), shape };
}

/** Parts compared with a hole: without a limit, a record made to stall would cost seconds for each answer. */
const partsComparedMax = 16;

/**
 * Returns the index of the part that contains a hole: the one with most middles of its edges, because a corner may
 * touch the outline.
 */
function partOf(hole: Ring, parts: readonly Part[]): number {
  const { west, south, east, north } = extentOf(hole);
  const [x, y] = [(west + east) / 2, (south + north) / 2];
  const near = parts.flatMap((part, i) => {
    const isNear = part.west <= x && part.east >= x && part.south <= y && part.north >= y;
    return isNear ? [{ i, part }] : [];
  });
  if (near.length < 2) return near[0]?.i ?? 0;
  const middles = hole.slice(1).map(([toX, toY], i) => {
    const [fromX, fromY] = hole[i] ?? [toX, toY];
    return toShape({ type: 'Point', coordinates: [(fromX + toX) / 2, (fromY + toY) / 2] });
  });
  const counts = near.slice(0, partsComparedMax).map(({ i, part }) => {
    const count = middles.filter((middle) => shapesIntersect(part.shape, middle)).length;
    return { i, count };
  });
  return counts.reduce((best, one) => (one.count > best.count ? one : best)).i;
}

function turned(ring: Ring, direction: 'clockwise' | 'counter-clockwise'): Ring {
  const [[x0] = [0]] = ring;
  let doubledArea = 0;
  for (const [i, [x, y]] of ring.entries()) {
    const [nextX, nextY] = ring[i + 1] ?? [x, y];
    doubledArea += (x - x0) * nextY - (nextX - x0) * y;
  }
  const isTurned = direction === 'clockwise' ? doubledArea > 0 : doubledArea < 0;
  return isTurned ? ring.toReversed() : ring;
}

/** Result of a cut: the rings that were not cut, in their order, and the new rings. */
interface CutRings {
  readonly whole: readonly Ring[];
  readonly pieces: readonly Ring[];
}

/**
 * Cuts the rings of a polygon to -180 to 180 degrees, all closed (RFC 7946, 3.1.9). Pieces have sides along the
 * antimeridian at the cut, and along an enclosed pole. Degrees stay as written where possible.
 */
function cutRings(polygon: Rings): CutRings {
  const whole: Ring[] = [];
  const chains: Position[][] = [];
  const latitudes = { north: 90, south: -90 };
  const poles = new Set<'north' | 'south'>();
  for (const ring of polygon) {
    const unwrapped = unwrapRing(ring);
    const pole = enclosedPole(unwrapped);
    // A pole inside two rings is outside of the polygon.
    if (pole !== null && !poles.delete(pole)) poles.add(pole);
    const [first, ...others] = splitPath(closedRing(ring), unwrapped);
    const last = others.pop();
    if (first === undefined) continue;
    if (last === undefined) whole.push(first);
    // The ring started in the middle of a chain.
    else for (const part of [[...last, ...first.slice(1)], ...others]) chains.push(part);
  }
  for (const pole of ['north', 'south'] as const) {
    const y = latitudes[pole];
    if (poles.has(pole)) chains.push([180, -180].map((x): Position => [x, y]));
  }
  return { whole, pieces: joinChains(chains) };
}

/** Splits positions at each crossing of the antimeridian. */
function splitPath(path: readonly Position[], { xs, ys }: UnwrappedRing): Position[][] {
  let part: Position[] = [];
  const parts = [part];
  for (const [i, [longitude]] of path.entries()) {
    const [x = 0, y = 0] = [xs[i], ys[i]];
    const strip = turnsOf(x);
    const [fromX = x, fromY = y] = [xs[i - 1], ys[i - 1]];
    for (const line of linesBetween(turnsOf(fromX), strip)) {
      const cutY = x === line ? y : fromY + ((y - fromY) * (line - fromX)) / (x - fromX);
      const leaving = fromX < x ? 180 : -180;
      add(part, [leaving, cutY]);
      part = [[-leaving, cutY]];
      parts.push(part);
    }
    const within = x - 360 * strip;
    // The written longitude, which may differ by turns, is better than the rounded one.
    add(part, [Math.abs(longitude - within) < 1 ? longitude : within, y]);
  }
  return parts;
}

/** Antimeridians between two strips of 360 degrees; each strip includes only its western end. */
function linesBetween(from: number, to: number): number[] {
  const lines: number[] = [];
  for (let strip = from; strip < to; strip += 1) lines.push(360 * strip + 180);
  for (let strip = from; strip > to; strip -= 1) lines.push(360 * strip - 180);
  return lines;
}

function add(part: Position[], position: Position): void {
  if (!isSamePosition(part.at(-1), position)) part.push(position);
}

/**
 * Joins chains, whose ends all have a longitude of -180 or 180, to rings along these lines. From south to north, the
 * inside begins at every other end, so ends are joined in pairs. Rings without width are dropped.
 */
function joinChains(chains: readonly (readonly Position[])[]): Ring[] {
  const partners = partnersOf(chains);
  const used = new Set<number>();
  const joined: Ring[] = [];
  for (const start of chains.keys()) {
    const ring: Position[] = [];
    // A chain is entered at one end and left at the other.
    let entered: number | undefined = 2 * start;
    while (entered !== undefined) {
      const chain = Math.floor(entered / 2);
      if (used.has(chain)) break;
      used.add(chain);
      const [positions, isReversed] = [chains[chain] ?? [], entered % 2 === 1];
      for (const one of isReversed ? positions.toReversed() : positions) add(ring, one);
      entered = partners.get(isReversed ? entered - 1 : entered + 1);
    }
    if (ring.some(([longitude]) => longitude !== ring[0]?.[0])) joined.push(closedRing(ring));
  }
  return joined;
}

/** Maps each end to the end that it is joined with: chain `i` has the ends `2 i` and `2 i + 1`. */
function partnersOf(chains: readonly (readonly Position[])[]): Map<number, number> {
  const places = chains.flatMap((positions) => [positions[0], positions.at(-1)]);
  const latitudeOf = (end: number) => places[end]?.[1] ?? 0;
  const partners = new Map<number, number>();
  for (const longitude of [-180, 180]) {
    const ends = [...places.keys()].filter((end) => places[end]?.[0] === longitude);
    ends.sort((a, b) => latitudeOf(a) - latitudeOf(b));
    for (let i = 0; i + 1 < ends.length; i += 2) {
      const [lower = 0, upper = 0] = [ends[i], ends[i + 1]];
      partners.set(lower, upper).set(upper, lower);
    }
  }
  return partners;
}
