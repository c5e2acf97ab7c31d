/**
 * Which country or territory a place on land lies in. The map is Natural Earth at 1:50 million
 * (https://www.naturalearthdata.com, public domain), by the package `world-atlas`.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Geometry as Shape } from 'geojson';
import { feature } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import whichPolygon from 'which-polygon';
import type { Position, Ring } from '../../domain/geometry.ts';
import { toGeoJson } from '../../filter/geometry/geojson.ts';
import { countryNames } from './country-names.ts';
import { polygonsOf } from './footprint.ts';
import { wrapped } from './globe.ts';

export interface Countries {
  /** The English name; null at sea. The place lies within 180 degrees. */
  countryAt(place: Position): string | null;
  readonly names: readonly string[];
}

type Map = Topology<{ countries: GeometryCollection<{ name: string }> }>;

/** Reads the map. Lakes belong to their countries, but for the Caspian Sea. */
export function openCountries(): Countries {
  const file = createRequire(import.meta.url).resolve('world-atlas/countries-50m.json');
  const map: Map = JSON.parse(readFileSync(file, 'utf8'));
  const { features } = feature(map, map.objects.countries);
  const query = whichPolygon<{ name: string }>({
    type: 'FeatureCollection',
    features: features.map((one) => ({ ...one, geometry: withinTheMap(one.geometry) })),
  });
  const nameOf = ({ name }: { name: string }) => countryNames.get(name) ?? name;
  return {
    countryAt: ([longitude, latitude]) => {
      // The ends of the map are not on it, nor is the last kilometre to the South Pole.
      const found = query([Math.min(longitude, 179.9999), Math.max(latitude, -89.99)]);
      return found === null ? null : nameOf(found);
    },
    names: features.map(({ properties }) => nameOf(properties)),
  };
}

/** The package has joined what lies on both sides of the antimeridian: it is cut anew. */
function withinTheMap(geometry: Shape): Shape {
  if (geometry.type !== 'MultiPolygon') return geometry;
  const isJump = ([x = 0]: number[], i: number, ring: number[][]) =>
    Math.abs(x - (ring[i - 1]?.[0] ?? x)) > 180;
  const coordinates = geometry.coordinates.flatMap((rings) => {
    return rings.some((ring) => ring.some(isJump)) ? cutAnew(rings) : [rings];
  });
  return { type: 'MultiPolygon', coordinates };
}

function cutAnew(rings: number[][][]): number[][][][] {
  const cut = toGeoJson({ type: 'Polygon', coordinates: rings.map(withoutJumps) });
  return polygonsOf(cut).map((part) => part.map((ring) => ring.map(([x, y]) => [x, y])));
}

/** Open, with longitudes that run on: no edge leads from one end of the map to the other. */
function withoutJumps(ring: number[][]): Ring {
  let x = ring[0]?.[0] ?? 0;
  return ring.slice(0, -1).map(([longitude = 0, latitude = 0]): Position => {
    x += wrapped(longitude - x);
    return [x, latitude];
  });
}
