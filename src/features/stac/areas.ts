/** Areas of searches as conditions on the footprint: GeoJSON of any type, and boxes. */
import { AppError } from '../../core/terms/app-error.ts';
import { parseBoundingBox, readBox, withShortEdges } from '../../filter/bounding-box.ts';
import { type Expression, expression, intersects, or } from '../../filter/builder.ts';
import type { Box, Geometry, Position } from '../../filter/filter-tree.ts';
import { readGeometries } from '../../filter/geometry/read-geometry.ts';
import { lineRing, linesOf } from '../../filter/geometry/ring.ts';
import { partOf } from '../../filter/product-record.ts';

/**
 * Comparisons to check an area: some 10 ms, as the main thread does it. A rough outline of 3,500 positions, the most that
 * a body can have, takes less than a third.
 */
const effortMax = 50_000;

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

/** Matches products whose footprint intersects GeoJSON, or an object with a `bbox`. Throws `invalid`. */
export function intersecting(value: unknown): Expression {
  const bbox = partOf(value, 'bbox');
  if (partOf(value, 'type') === undefined && Array.isArray(bbox)) return inBox(bbox.map(Number));
  const all = readGeometries(value);
  const lines = all.flatMap(linesOf);
  if (!lines.flat().every(([x, y]) => Math.abs(x) <= 180 && Math.abs(y) <= 90)) {
    const message =
      'Longitudes are from -180 to 180, latitudes from -90 to 90. Longitude is first.';
    throw new AppError('invalid', message);
  }
  const geometries = all.filter((one) => linesOf(one).length === 0);
  if (geometries.length === 0) return alongLines(lines);
  const areas = intersects({ type: 'GeometryCollection', geometries }, { left: effortMax });
  return lines.length === 0 ? areas : or(alongLines(lines), areas);
}

function alongLines(lines: readonly (readonly Position[])[]): Expression {
  const rings = lines.map((line) => lineRing(withShortEdges(line)));
  const [only] = rings;
  if (rings.length === 1 && only !== undefined) {
    return withGeometry({ type: 'Polygon', coordinates: [only] });
  }
  return withGeometry({ type: 'MultiPolygon', coordinates: rings.map((ring) => [ring]) });
}

function withGeometry(geometry: Geometry): Expression {
  return expression({ node: 'intersects', argument: 'area', srid: 4326, geometry });
}
