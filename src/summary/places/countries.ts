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
import type { Position, Ring } from '../../domain/filter-tree.ts';
import { toGeoJson } from '../../filter/geometry/geojson.ts';
import { polygonsOf } from '../../filter/geometry/ring.ts';
import { wrapped } from './globe.ts';

type Map = Topology<{ countries: GeometryCollection<{ name: string }> }>;

/** Reads the map. Lakes belong to their countries, but for the Caspian Sea. */
export function openCountries() {
  const file = createRequire(import.meta.url).resolve('world-atlas/countries-50m.json');
  const map: Map = JSON.parse(readFileSync(file, 'utf8'));
  const { features } = feature(map, map.objects.countries);
  const query = whichPolygon<{ name: string }>({
    type: 'FeatureCollection',
    features: features.map((one) => ({ ...one, geometry: withinTheMap(one.geometry) })),
  });
  const nameOf = ({ name }: { name: string }) => countryNames.get(name) ?? name;
  return {
    /** The English name; null at sea. The place lies within 180 degrees. */
    countryAt: ([longitude, latitude]: Position): string | null => {
      // The ends of the map are not on it, nor is the last kilometre to the South Pole.
      const found = query([Math.min(longitude, 179.9999), Math.max(latitude, -89.99)]);
      return found === null ? null : nameOf(found);
    },
    names: features.map(({ properties }) => nameOf(properties)),
  };
}

/** The package has joined what lies on both sides of the antimeridian: it is cut again. */
function withinTheMap(geometry: Shape): Shape {
  if (geometry.type !== 'MultiPolygon') return geometry;
  const isJump = ([x = 0]: number[], i: number, ring: number[][]) =>
    Math.abs(x - (ring[i - 1]?.[0] ?? x)) > 180;
  const coordinates = geometry.coordinates.flatMap((rings) => {
    return rings.some((ring) => ring.some(isJump)) ? cutAgain(rings) : [rings];
  });
  return { type: 'MultiPolygon', coordinates };
}

function cutAgain(rings: number[][][]): number[][][][] {
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

/** A list in a text, parted by semicolons. */
function listOf(text: string): string[] {
  return text.split(';').map((item) => item.trim());
}

/** By their name in Natural Earth, as `world-atlas` 2.0.2 has them. */
const countryNames: ReadonlyMap<string, string> = new Map(
  listOf(`
  Antigua and Barb.: Antigua and Barbuda; Ashmore and Cartier Is.: Ashmore and Cartier Islands;
  Bosnia and Herz.: Bosnia and Herzegovina; Br. Indian Ocean Ter.: British Indian Ocean Territory;
  British Virgin Is.: British Virgin Islands; Cayman Is.: Cayman Islands;
  Central African Rep.: Central African Republic; Congo: Republic of the Congo; Cook Is.: Cook Islands;
  Dem. Rep. Congo: Democratic Republic of the Congo; Dominican Rep.: Dominican Republic;
  Eq. Guinea: Equatorial Guinea; Faeroe Is.: Faroe Islands; Falkland Is.: Falkland Islands;
  Fr. Polynesia: French Polynesia; Fr. S. Antarctic Lands: French Southern and Antarctic Lands;
  Heard I. and McDonald Is.: Heard Island and McDonald Islands;
  Indian Ocean Ter.: Australian Indian Ocean Territories; Macedonia: North Macedonia;
  Marshall Is.: Marshall Islands; N. Cyprus: Northern Cyprus; N. Mariana Is.: Northern Mariana Islands;
  Pitcairn Is.: Pitcairn Islands; S. Geo. and the Is.: South Georgia and the South Sandwich Islands;
  S. Sudan: South Sudan; Solomon Is.: Solomon Islands; St-Barthélemy: Saint Barthélemy;
  St-Martin: Saint Martin; St. Kitts and Nevis: Saint Kitts and Nevis;
  St. Pierre and Miquelon: Saint Pierre and Miquelon; St. Vin. and Gren.: Saint Vincent and the Grenadines;
  São Tomé and Principe: São Tomé and Príncipe; Turks and Caicos Is.: Turks and Caicos Islands;
  U.S. Virgin Is.: United States Virgin Islands; United States of America: United States;
  Vatican: Vatican City; W. Sahara: Western Sahara; Wallis and Futuna Is.: Wallis and Futuna;
  eSwatini: Eswatini; Åland: Åland Islands
  `).map((entry) => entry.split(': ') as [string, string]),
);

/** Other names that people use for them. A text that has one of these names a place, too. */
export const otherCountryNames: readonly string[] = listOf(`
  America; Bosnia; Britain; Burma; Cape Verde; Congo; Czech Republic; DR Congo; East Timor; England;
  Great Britain; Holland; Ivory Coast; Macedonia; Northern Ireland; Republic of Ireland; Russian Federation;
  Scotland; Swaziland; The Gambia; The Netherlands; Türkiye; United States of America; USA; Wales
`);
