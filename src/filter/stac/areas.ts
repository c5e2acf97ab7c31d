/** Areas of searches as conditions on the footprint: GeoJSON of any type, and boxes. */
import { z } from 'zod';
import { AppError } from '../../domain/app-error.ts';
import type { Box, Geometry, Position, Ring } from '../../domain/filter-tree.ts';
import { listSchema } from '../../domain/list-schema.ts';
import { parseBoundingBox, readBox } from '../bounding-box.ts';
import { type Expression, expression, intersects, or } from '../builder.ts';
import { partOf } from '../product-record.ts';

/** Longer edges would be read as the shorter way round the globe. */
const edgeMaxDegrees = 90;

const depthMax = 8;

/**
 * Steps to check an area: some 10 ms, as the main thread does it. A rough outline of 3,500 positions, the most that a body
 * can have, takes less than a third.
 */
const effortMax = 1_500_000;

/** Matches products with a footprint. */
export const everywhere: Expression = inBox([-180, -90, 180, 90]);

/** Returns a box of `[west, south, east, north]`, or with heights, which are ignored. Throws `invalid`. */
export function boxOf(numbers: readonly number[]): Box {
  const [x1, y1, , x2, y2] = numbers;
  return readBox((numbers.length === 6 ? [x1, y1, x2, y2] : numbers).join(','));
}

/** Matches products whose footprint intersects a box; one without height or width is a line. Throws `invalid`. */
export function inBox(numbers: readonly number[]): Expression {
  const { west, south, east, north } = boxOf(numbers);
  if ((west === east) === (south === north)) {
    return withGeometry(parseBoundingBox([west, south, east, north].join(',')).geometry);
  }
  const start: Position = [west, south];
  const end: Position = [east, north];
  const isAcross = west > east;
  return alongLines(
    isAcross
      ? [
          [start, [180, south]],
          [[-180, south], end],
        ]
      : [[start, end]],
  );
}

interface GeoJson {
  type: unknown;
  coordinates: unknown;
  value: unknown;
}

/** Matches products whose footprint intersects GeoJSON, or an object with a `bbox`. Throws `invalid`. */
export function intersecting(value: unknown): Expression {
  const bbox = partOf(value, 'bbox');
  if (partOf(value, 'type') === undefined && Array.isArray(bbox)) return inBox(bbox.map(Number));
  const parts = partsOf(value, 0);
  const lines = parts.flatMap(({ type, coordinates }) => {
    if (type === 'LineString') return [positionsOf(coordinates)];
    return type === 'MultiLineString' ? listOf(coordinates).map(positionsOf) : [];
  });
  const geometries = parts.filter(({ type }) => !isLine(type)).map((one) => one.value);
  const [only] = geometries;
  // The builder joins points, and areas, to one geometry, and refuses an empty list.
  const whole = geometries.length === 1 ? only : { type: 'GeometryCollection', geometries };
  if (geometries.length === 0 && lines.length > 0) return alongLines(lines);
  const areas = intersects(whole, { left: effortMax });
  return lines.length === 0 ? areas : or(alongLines(lines), areas);
}

const isLine = (type: unknown) => type === 'LineString' || type === 'MultiLineString';

/** Returns the geometries of nested collections. */
function partsOf(value: unknown, depth: number): GeoJson[] {
  if (depth > depthMax) throw new AppError('invalid', 'The geometry is nested too deeply.');
  const [type, coordinates] = [partOf(value, 'type'), partOf(value, 'coordinates')];
  if (type !== 'GeometryCollection') return [{ type, coordinates, value }];
  return listOf(partOf(value, 'geometries')).flatMap((one) => partsOf(one, depth + 1));
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** A line is a ring that returns the same way: it has edges, but no area. */
function alongLines(lines: readonly (readonly Position[])[]): Expression {
  const rings = lines.map((line): Ring => {
    const dense = line.flatMap((position, i) => [...between(line[i - 1], position), position]);
    return [...dense, ...dense.slice(0, -1).toReversed()];
  });
  const [only] = rings;
  if (rings.length === 1 && only !== undefined) {
    return withGeometry({ type: 'Polygon', coordinates: [only] });
  }
  return withGeometry({ type: 'MultiPolygon', coordinates: rings.map((ring) => [ring]) });
}

/** Returns additional positions of a long edge. */
function between(from: Position | undefined, to: Position): Position[] {
  if (from === undefined) return [];
  const steps = Math.ceil(Math.abs(to[0] - from[0]) / edgeMaxDegrees);
  const at = (one: number, other: number, i: number) => one + ((other - one) * i) / steps;
  return Array.from({ length: Math.max(0, steps - 1) }, (_, i) => [
    at(from[0], to[0], i + 1),
    at(from[1], to[1], i + 1),
  ]);
}

const lineSchema = listSchema(
  z.tuple([z.number().min(-180).max(180), z.number().min(-90).max(90)], z.unknown()),
  { min: 2 },
);

function positionsOf(value: unknown): Position[] {
  const { data } = lineSchema.safeParse(value);
  if (data !== undefined) return data.map(([x, y]): Position => [x, y]);
  throw new AppError(
    'invalid',
    'A line needs at least two positions: longitude from -180 to 180, then latitude from -90 to 90.',
  );
}

function withGeometry(geometry: Geometry): Expression {
  return expression({ node: 'intersects', argument: 'area', srid: 4326, geometry });
}
