/** Areas of searches as conditions on the footprint: GeoJSON of any type, and boxes. */
import { AppError } from '../../domain/app-error.ts';
import type { Geometry, Position, Ring } from '../../domain/filter-tree.ts';
import { parseBoundingBox } from '../bounding-box.ts';
import { type Expression, expression, intersects, or } from '../builder.ts';
import { partOf } from '../product-record.ts';

/** Longer edges would be read as the shorter way round the globe. */
const edgeMaxDegrees = 90;

const depthMax = 8;

/** Matches products with a footprint. */
export const everywhere: Expression = inBox([-180, -90, 180, 90]);

/**
 * Matches products whose footprint intersects a box: `[west, south, east, north]`, or with heights, which are ignored.
 * Throws `invalid`.
 */
export function inBox(numbers: readonly number[]): Expression {
  const [west, south, third, fourth, fifth] = numbers;
  const sides = numbers.length === 6 ? [west, south, fourth, fifth] : numbers;
  const [x = 0, y = 0, east = third, north = fourth] = sides;
  const isLine = (x === east) !== (y === north);
  if (sides.length === 4 && isLine && north !== undefined && east !== undefined && y <= north) {
    return alongLine([
      [x, y],
      [east, north],
    ]);
  }
  return withGeometry(parseBoundingBox(sides.join(',')).geometry);
}

/** Matches products whose footprint intersects GeoJSON, or an object with a `bbox`. Throws `invalid`. */
export function intersecting(value: unknown, depth = 0): Expression {
  if (depth > depthMax) throw new AppError('invalid', 'The geometry is nested too deeply.');
  const [type, coordinates, bbox] = ['type', 'coordinates', 'bbox'].map((one) =>
    partOf(value, one),
  );
  if (type === undefined && Array.isArray(bbox)) return inBox(bbox.map(Number));
  if (type === 'LineString') return alongLine(positionsOf(coordinates));
  if (type === 'MultiLineString' && Array.isArray(coordinates) && coordinates.length > 0) {
    return or(...coordinates.map((line) => alongLine(positionsOf(line))));
  }
  const geometries = partOf(value, 'geometries');
  if (type === 'GeometryCollection' && Array.isArray(geometries) && geometries.length > 0) {
    return or(...geometries.map((one) => intersecting(one, depth + 1)));
  }
  return intersects(value);
}

/** A line is a ring that returns the same way: it has edges, but no area. */
function alongLine(line: readonly Position[]): Expression {
  const dense = line.flatMap((position, i) => [...between(line[i - 1], position), position]);
  const ring: Ring = [...dense, ...dense.slice(0, -1).toReversed()];
  return withGeometry({ type: 'Polygon', coordinates: [ring] });
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

function positionsOf(value: unknown): Position[] {
  const list = Array.isArray(value) ? value : [];
  const positions = list.map(
    (one): Position => [Number(partOf(one, '0')), Number(partOf(one, '1'))],
  );
  const isValid = ([x, y]: Position) => Math.abs(x) <= 180 && Math.abs(y) <= 90;
  if (positions.length >= 2 && positions.every(isValid)) return positions;
  throw new AppError(
    'invalid',
    'A line needs at least two positions: longitude from -180 to 180, then latitude from -90 to 90.',
  );
}

function withGeometry(geometry: Geometry): Expression {
  return expression({ node: 'intersects', argument: 'area', srid: 4326, geometry });
}
