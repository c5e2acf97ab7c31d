/** Geometries as GeoJSON (RFC 7946), as maps can show them. */

import { z } from 'zod';
import { AppError } from '../../domain/app-error.ts';
import type { Geometry, Position, Ring, Rings } from '../../domain/geometry.ts';
import { shapesIntersect } from './intersects.ts';
import {
  clampedLatitude,
  enclosedPole,
  isClosed,
  snappedLongitude,
  type UnwrappedRing,
  unwrapRing,
} from './ring.ts';
import { type Shape, toShape } from './shape.ts';

/**
 * The geometry as valid GeoJSON: rings closed, outlines counter-clockwise and holes clockwise, cut
 * along the antimeridian (then a MultiPolygon), nothing beyond 180 and 90 degrees.
 */
export function toGeoJson(geometry: Geometry): Geometry {
  switch (geometry.type) {
    case 'Point':
      return { type: 'Point', coordinates: pointWithin(geometry.coordinates) };
    case 'MultiPoint':
      return { type: 'MultiPoint', coordinates: geometry.coordinates.map(pointWithin) };
    case 'Polygon': {
      const parts = partsOf(geometry.coordinates);
      const [only = []] = parts;
      if (parts.length < 2) return { type: 'Polygon', coordinates: only };
      return { type: 'MultiPolygon', coordinates: parts };
    }
    case 'MultiPolygon':
      return { type: 'MultiPolygon', coordinates: geometry.coordinates.flatMap(partsOf) };
  }
}

function pointWithin([longitude, latitude]: Position): Position {
  const isWithin = Math.abs(longitude) <= 180;
  return [isWithin ? longitude : snappedLongitude(longitude), clampedLatitude(latitude)];
}

function partsOf(rings: Rings): Rings[] {
  const filled = rings.filter((ring) => ring.length > 0);
  const { whole, pieces } = cutRings(filled);
  const isOutlineCut = pieces.length > 0;
  const outlines = isOutlineCut ? [...pieces] : whole.slice(0, 1);
  const inner = isOutlineCut ? whole : whole.slice(1);
  const holes: Ring[][] = outlines.map(() => []);
  const isChoice = outlines.length > 1 && inner.length > 0;
  const areas = (isChoice ? outlines : []).map(areaOf);
  for (const ring of inner) {
    const place = isChoice ? placeOf(ring, areas) : 0;
    holes[place]?.push(ring);
  }
  return outlines.map((outline, i) => [
    turned(outline, 'counter-clockwise'),
    ...(holes[i] ?? []).map((hole) => turned(hole, 'clockwise')),
  ]);
}

function areaOf(outline: Ring): Shape {
  return toShape({ type: 'Polygon', coordinates: [outline] });
}

/**
 * Which part a hole lies in: that which has most of its corners and middles of edges. Not all: a corner may touch the
 * outline, which a cut between whole numbers has moved by a hair.
 */
function placeOf(hole: Ring, areas: readonly Shape[]): number {
  const points = hole.flatMap(([x, y], i): Position[] => {
    const [nextX, nextY] = hole[i + 1] ?? [x, y];
    return [
      [x, y],
      [(x + nextX) / 2, (y + nextY) / 2],
    ];
  });
  const counts = areas.map(
    (area) =>
      points.filter((coordinates) => shapesIntersect(area, toShape({ type: 'Point', coordinates })))
        .length,
  );
  return counts.indexOf(Math.max(...counts));
}

function turned(ring: Ring, direction: 'clockwise' | 'counter-clockwise'): Ring {
  let doubledArea = 0;
  for (const [i, [x, y]] of ring.entries()) {
    const [nextX, nextY] = ring[i + 1] ?? [x, y];
    doubledArea += (x - (ring[0]?.[0] ?? 0)) * nextY - (nextX - (ring[0]?.[0] ?? 0)) * y;
  }
  const isTurned = direction === 'clockwise' ? doubledArea > 0 : doubledArea < 0;
  return isTurned ? ring.toReversed() : ring;
}

/** Heights and measures after the first two numbers are left out. */
const position = z
  .array(z.number())
  .min(2)
  .transform(([longitude = 0, latitude = 0]): Position => [longitude, latitude]);

const rings = z.array(z.array(position));

const schemas = {
  Point: z.object({ type: z.literal('Point'), coordinates: position }),
  MultiPoint: z.object({ type: z.literal('MultiPoint'), coordinates: z.array(position) }),
  Polygon: z.object({ type: z.literal('Polygon'), coordinates: rings }),
  MultiPolygon: z.object({ type: z.literal('MultiPolygon'), coordinates: z.array(rings) }),
} as const;

const known = z.discriminatedUnion('type', [
  schemas.Point,
  schemas.MultiPoint,
  schemas.Polygon,
  schemas.MultiPolygon,
]);

const feature = z.object({ type: z.literal('Feature'), geometry: z.unknown() });

const collection = z.object({
  type: z.literal('FeatureCollection'),
  features: z.array(z.unknown()),
});

const geometries = z.object({
  type: z.literal('GeometryCollection'),
  geometries: z.array(z.unknown()),
});

const withType = z.object({ type: z.string() });

/** GeoJSON has no other reference system since 2016; older files name theirs (GeoJSON 2008, 3). */
const withSystem = z.object({
  crs: z.object({ properties: z.object({ name: z.string() }) }),
});

const longitudeFirst = /(?:CRS:?84|EPSG:{1,2}4326|WGS ?84)$/i;

/** Collections within collections are followed this far. */
const depthMax = 4;

/**
 * The geometries of a GeoJSON value, at least one, each by itself: Point, MultiPoint, Polygon or
 * MultiPolygon, of a feature, or of a collection. Whether rings are in order is for `geometryFaults` to
 * say. Throws AppError `invalid`.
 */
export function readAreas(value: unknown): Geometry[] {
  const found = geometriesOf(value, 0);
  if (found.length > 0) return found;
  return refuse('The GeoJSON holds no geometry. Give it one with a place, such as a Polygon.');
}

/** Geometries of one kind as one; null for points and polygons together. */
export function joinAreas(areas: readonly Geometry[]): Geometry | null {
  const polygons = areas.flatMap(polygonsOf);
  const points = areas.flatMap(pointsOf);
  if (polygons.length > 0 && points.length > 0) return null;
  if (areas.length === 1 && areas[0] !== undefined) return areas[0];
  if (polygons.length > 0) return { type: 'MultiPolygon', coordinates: polygons };
  return { type: 'MultiPoint', coordinates: points };
}

function geometriesOf(value: unknown, depth: number): Geometry[] {
  const { data: typed } = withType.safeParse(value);
  if (typed === undefined) {
    refuse('This is no GeoJSON: it must be an object with a "type", such as {"type":"Polygon",…}.');
  }
  requireDegrees(value);
  if (depth > depthMax) refuse('The GeoJSON nests collections too deeply. Flatten it.');
  const inner = feature.safeParse(value).data;
  // A feature may be without a place (RFC 7946, 3.2).
  if (inner !== undefined)
    return inner.geometry === null ? [] : geometriesOf(inner.geometry, depth + 1);
  const many =
    collection.safeParse(value).data?.features ?? geometries.safeParse(value).data?.geometries;
  if (many !== undefined) return many.flatMap((item) => geometriesOf(item, depth + 1));
  return [geometryOf(value, typed.type)];
}

function geometryOf(value: unknown, type: string): Geometry {
  const read = known.safeParse(value);
  if (read.success) return read.data;
  if (!(type in schemas)) {
    return refuse(
      `The GeoJSON type ${JSON.stringify(type.slice(0, 40))} cannot be used in a filter. ` +
        'Use Point, MultiPoint, Polygon or MultiPolygon; give a line some width, as a Polygon.',
    );
  }
  const place = read.error.issues[0]?.path.join('.') ?? 'coordinates';
  return refuse(
    `The ${type} of the GeoJSON cannot be read at ${place}: ` +
      'positions are lists of numbers, longitude first, nested as RFC 7946 says for the type.',
  );
}

function requireDegrees(value: unknown): void {
  const name = withSystem.safeParse(value).data?.crs.properties.name;
  if (name === undefined || longitudeFirst.test(name)) return;
  refuse(
    `The GeoJSON names the reference system ${JSON.stringify(name.slice(0, 60))}. ` +
      'Convert it to longitudes and latitudes of WGS 84 (EPSG:4326).',
  );
}

function polygonsOf(geometry: Geometry): readonly Rings[] {
  if (geometry.type === 'Polygon') return [geometry.coordinates];
  return geometry.type === 'MultiPolygon' ? geometry.coordinates : [];
}

function pointsOf(geometry: Geometry): readonly Position[] {
  if (geometry.type === 'Point') return [geometry.coordinates];
  return geometry.type === 'MultiPoint' ? geometry.coordinates : [];
}

function refuse(message: string): never {
  throw new AppError('invalid', message);
}

/** What a cut leaves: rings that were not cut, in their order, and rings made of what was. */
interface CutRings {
  readonly whole: readonly Ring[];
  readonly pieces: readonly Ring[];
}

/**
 * The rings of a polygon within -180 to 180 degrees, all closed. Pieces have sides along the
 * antimeridian where the cut was, and along a pole that the polygon goes round. Degrees stay as
 * written wherever they can.
 */
function cutRings(rings: Rings): CutRings {
  const whole: Ring[] = [];
  const chains: Position[][] = [];
  const poles = { north: false, south: false };
  for (const ring of rings) {
    const unwrapped = unwrapRing(ring);
    const pole = enclosedPole(unwrapped);
    if (pole !== null) poles[pole] = !poles[pole];
    const parts = partsOfOfAntimeridianCut(ring, unwrapped);
    const [first, last] = [parts[0], parts.at(-1)];
    if (first === undefined || last === undefined) continue;
    if (first === last) whole.push(first);
    // The ring began in the middle of a chain.
    else
      for (const part of [[...last, ...first.slice(1)], ...parts.slice(1, -1)]) chains.push(part);
  }
  if (poles.north) chains.push(poleSide(90));
  if (poles.south) chains.push(poleSide(-90));
  return { whole, pieces: joinChains(chains) };
}

function poleSide(latitude: number): Position[] {
  return [
    [180, latitude],
    [-180, latitude],
  ];
}

/** A ring's positions, a new part beginning wherever the antimeridian is crossed. */
function partsOfOfAntimeridianCut(ring: Ring, { xs, ys }: UnwrappedRing): Position[][] {
  const positions = isClosed(ring) ? ring : [...ring, ...ring.slice(0, 1)];
  const parts: Position[][] = [];
  let part: Position[] = [];
  for (const [i, [longitude, latitude]] of positions.entries()) {
    const x = xs[i] ?? 0;
    const y = clampedLatitude(latitude);
    const strip = stripOf(x);
    if (i > 0) {
      const [fromX, fromY] = [xs[i - 1] ?? 0, ys[i - 1] ?? 0];
      for (const line of linesBetween(stripOf(fromX), strip)) {
        const cutY = x === line ? y : fromX === line ? fromY : heightAt(line, fromX, fromY, x, y);
        const leaving = fromX < x ? 180 : -180;
        add(part, [leaving, cutY]);
        parts.push(part);
        part = [[-leaving, cutY]];
      }
    }
    const within = x - 360 * strip;
    // What is written may be off by turns, and is better than what has been rounded.
    add(part, [Math.abs(longitude - within) < 1 ? longitude : within, y]);
  }
  if (part.length > 0) parts.push(part);
  return parts;
}

/** Strips between antimeridians are counted eastwards, each with its western end only. */
function stripOf(x: number): number {
  return Math.floor((x + 180) / 360);
}

/** The antimeridians on the way from one strip to another. */
function linesBetween(from: number, to: number): number[] {
  const lines: number[] = [];
  for (let strip = from; strip < to; strip += 1) lines.push(360 * strip + 180);
  for (let strip = from; strip > to; strip -= 1) lines.push(360 * strip - 180);
  return lines;
}

function heightAt(line: number, x1: number, y1: number, x2: number, y2: number): number {
  return y1 + ((y2 - y1) * (line - x1)) / (x2 - x1);
}

function add(part: Position[], position: Position): void {
  const last = part.at(-1);
  if (last?.[0] !== position[0] || last[1] !== position[1]) part.push(position);
}

/** One end of a chain. */
interface End {
  readonly chain: number;
  readonly isLast: boolean;
  readonly position: Position;
}

/**
 * Closes chains whose ends all have a longitude of -180 or 180. Up each of these lines, inside begins
 * with every other end, so ends are joined two by two. Rings without any width are left out.
 */
function joinChains(chains: readonly (readonly Position[])[]): Ring[] {
  const partners = partnersOf(chains);
  const used = new Set<number>();
  const rings: Ring[] = [];
  for (const start of chains.keys()) {
    const ring: Position[] = [];
    let chain = start;
    let forwards = true;
    while (!used.has(chain)) {
      used.add(chain);
      const positions = chains[chain] ?? [];
      for (const position of forwards ? positions : positions.toReversed()) ring.push(position);
      const partner = partners.get(keyOf(chain, forwards));
      if (partner === undefined) break;
      chain = partner.chain;
      // Entered by its end, a chain is followed back to its beginning.
      forwards = !partner.isLast;
    }
    if (ring.some(([longitude]) => longitude !== ring[0]?.[0])) rings.push(closed(ring));
  }
  return rings;
}

function partnersOf(chains: readonly (readonly Position[])[]): Map<string, End> {
  const partners = new Map<string, End>();
  const ends = chains.flatMap((positions, chain) => endsOf(positions, chain));
  for (const longitude of [-180, 180]) {
    const onLine = ends.filter(({ position }) => position[0] === longitude);
    onLine.sort((a, b) => a.position[1] - b.position[1]);
    for (let i = 0; i + 1 < onLine.length; i += 2) {
      const [lower, upper] = [onLine[i], onLine[i + 1]];
      if (lower === undefined || upper === undefined) continue;
      partners.set(keyOf(lower.chain, lower.isLast), upper);
      partners.set(keyOf(upper.chain, upper.isLast), lower);
    }
  }
  return partners;
}

function endsOf(positions: readonly Position[], chain: number): End[] {
  const [first, last] = [positions[0], positions.at(-1)];
  if (first === undefined || last === undefined) return [];
  return [
    { chain, isLast: false, position: first },
    { chain, isLast: true, position: last },
  ];
}

function keyOf(chain: number, isLast: boolean): string {
  return `${chain} ${isLast ? 'last' : 'first'}`;
}

/** Without positions that repeat the one before, and with the first one at the end. */
function closed(positions: readonly Position[]): Ring {
  const ring = positions.filter(
    ([x, y], i) => i === 0 || x !== positions[i - 1]?.[0] || y !== positions[i - 1]?.[1],
  );
  const [first, last] = [ring[0], ring.at(-1)];
  const isClosed = first?.[0] === last?.[0] && first?.[1] === last?.[1];
  return isClosed || first === undefined ? ring : [...ring, first];
}
