/** Geometries as GeoJSON (RFC 7946), as maps can show them. */
import type { Geometry, Position, Ring, Rings } from '../../domain/geometry.ts';
import { cutRings } from './antimeridian-cut.ts';
import { shapesIntersect } from './intersects.ts';
import { type Shape, toShape } from './shape.ts';
import { clampedLatitude, snappedLongitude } from './unwrap.ts';

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
