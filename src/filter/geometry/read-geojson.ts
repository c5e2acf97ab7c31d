/** Reads the GeoJSON that users have in files and configuration: a geometry, a feature, or several. */
import { z } from 'zod';
import { AppError } from '../../domain/app-error.ts';
import type { Geometry, Position, Rings } from '../../domain/geometry.ts';

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
