/** Geometries for maps: bounded in size, whatever a record contains. */
import type { Geometry, Position, Ring, Rings } from '../../domain/filter-tree.ts';
import { toGeoJson } from './geojson.ts';
import { pointsOf, polygonsOf } from './ring.ts';

export const displayLimits = {
  points: 100,
  /** Outlines and holes; outlines come first. */
  rings: 64,
  /** Positions of all rings. Real footprints have up to some hundreds. */
  positions: 2_000,
};

/** Shortest length of a simplified ring, in positions. */
const ringPositionsMin = 16;

/**
 * Returns a geometry as GeoJSON, cut at the antimeridian, rounded to 11 m, and simplified beyond `displayLimits`: long
 * rings lose positions in equal steps, further parts are left out.
 */
export function toDisplayGeometry(geometry: Geometry): Geometry {
  const points = pointsOf(geometry);
  if (points.length > 0) {
    const coordinates = points.slice(0, displayLimits.points);
    return rounded(toGeoJson(points.length === 1 ? geometry : { type: 'MultiPoint', coordinates }));
  }
  const polygons = withFewRings(polygonsOf(geometry));
  const rings = polygons.flat().length;
  const most = Math.max(ringPositionsMin, Math.floor(displayLimits.positions / rings));
  const coordinates = polygons.map((polygon) => polygon.map((ring) => thinned(ring, most)));
  return rounded(toGeoJson({ type: 'MultiPolygon', coordinates }));
}

function withFewRings(polygons: readonly Rings[]): Rings[] {
  const kept = polygons.slice(0, displayLimits.rings);
  let holes = displayLimits.rings - kept.length;
  return kept.map((polygon) => {
    const own = polygon.slice(0, 1 + holes);
    holes -= Math.max(0, own.length - 1);
    return own;
  });
}

function thinned(ring: Ring, most: number): Ring {
  if (ring.length <= most) return ring;
  const step = Math.ceil(ring.length / most);
  return ring.filter((_, i) => i % step === 0 || i === ring.length - 1);
}

function rounded(geometry: Geometry): Geometry {
  const near = ([x, y]: Position): Position => [digits(x), digits(y)];
  const ring = (positions: Ring) => positions.map(near);
  switch (geometry.type) {
    case 'Point':
      return { type: 'Point', coordinates: near(geometry.coordinates) };
    case 'MultiPoint':
      return { type: 'MultiPoint', coordinates: ring(geometry.coordinates) };
    case 'Polygon':
      return { type: 'Polygon', coordinates: geometry.coordinates.map(ring) };
    case 'MultiPolygon': {
      const [only, ...others] = geometry.coordinates;
      if (only !== undefined && others.length === 0) {
        return { type: 'Polygon', coordinates: only.map(ring) };
      }
      return {
        type: 'MultiPolygon',
        coordinates: geometry.coordinates.map((one) => one.map(ring)),
      };
    }
  }
}

const digits = (degrees: number) => Math.round(degrees * 10_000) / 10_000;
