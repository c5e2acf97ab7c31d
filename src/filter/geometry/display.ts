/** Geometries for maps: bounded in size, whatever a record contains. */
import type { AnyGeometry, Ring, Rings } from '../filter-tree.ts';
import { toGeoJson } from './geojson.ts';
import { joinParts, partsOf } from './ring.ts';

export const displayLimits = {
  points: 100,
  /** Outlines and holes; outlines come first. Also the number of lines. */
  rings: 64,
  /** Positions of all rings and lines. Real footprints have up to some hundreds. */
  positions: 2_000,
};

/** Shortest length of a simplified ring or line, in positions. */
const ringPositionsMin = 16;

/**
 * Returns a geometry as GeoJSON, cut at the antimeridian, rounded to 11 m, and simplified beyond `displayLimits`: long
 * rings and lines lose positions in equal steps, further parts are left out.
 */
export function toDisplayGeometry(geometry: AnyGeometry): AnyGeometry {
  const parts = partsOf(geometry);
  const polygons = withFewRings(parts.polygons);
  const lines = parts.lines.slice(0, displayLimits.rings);
  const paths = polygons.flat().length + lines.length;
  const most = Math.max(ringPositionsMin, Math.floor(displayLimits.positions / paths));
  const simplified = joinParts({
    points: parts.points.slice(0, displayLimits.points),
    lines: lines.map((line) => thinned(line, most)),
    polygons: polygons.map((polygon) => polygon.map((ring) => thinned(ring, most))),
  });
  return rounded(joinParts(partsOf(toGeoJson(simplified))));
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

function rounded(geometry: AnyGeometry): AnyGeometry {
  if (geometry.type === 'GeometryCollection') {
    return { ...geometry, geometries: geometry.geometries.map(rounded) };
  }
  // The nesting stays.
  return { ...geometry, coordinates: roundedNumbers(geometry.coordinates) } as AnyGeometry;
}

type Numbers = number | readonly Numbers[];

function roundedNumbers(value: Numbers): Numbers {
  return typeof value === 'number'
    ? Math.round(value * 10_000) / 10_000
    : value.map(roundedNumbers);
}
