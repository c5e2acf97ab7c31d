/**
 * Which country or territory, or which sea or ocean, a place lies in. The map of countries is Natural Earth at
 * 1:50 million (https://www.naturalearthdata.com, public domain), by the package `world-atlas`. The outlines of
 * seas, seas.json, are this program's own, after the usual geographic limits, and rough: they run over land, as
 * the countries decide what is land. Of several seas, the smallest one holds a place.
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
import { ringAreaKm2, wrapped } from './globe.ts';
import data from './seas.json' with { type: 'json' };

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

interface Sea {
  name: string;
  /** Longitudes may run on beyond 180 degrees. */
  outline: Position[];
}

/** The rest of the globe. */
const pacific = { north: 'North Pacific Ocean', south: 'South Pacific Ocean' };

/** Half the width of the gaps that the rough outlines leave, and a little more. */
const gapDegrees = 0.5;

/** Reads the outlines. */
export function openSeas() {
  const seas = data.outlines.map(parseSea);
  const query = whichPolygon<{ name: string; size: number }>({
    type: 'FeatureCollection',
    features: seas.flatMap(({ name, outline }) => {
      const size = ringAreaKm2(outline);
      return turnsOf(outline).map((ring) => ({
        type: 'Feature' as const,
        properties: { name, size },
        geometry: { type: 'Polygon' as const, coordinates: [ring] },
      }));
    }),
  });
  const smallestAt = ([longitude, latitude]: Position) => {
    const found = query([wrapped(longitude), latitude], true) ?? [];
    const [smallest] = found.sort((a, b) => a.size - b.size);
    return smallest?.name ?? (latitude < 0 ? pacific.south : pacific.north);
  };
  return {
    /** The English name. On land too, where it means nothing. The place lies within 180 degrees. */
    seaAt: (place: Position): string => {
      const name = smallestAt(place);
      return name.endsWith(' Ocean') ? withoutGap(name, place, smallestAt) : name;
    },
    names: [...new Set([...seas.map(({ name }) => name), pacific.north, pacific.south])],
  };
}

/** The ocean, but where it shows between the outlines of seas: what most places round about are. */
function withoutGap(
  ocean: string,
  [longitude, latitude]: Position,
  nameAt: (place: Position) => string,
): string {
  const counts = new Map<string, number>();
  for (let eighth = 0; eighth < 8; eighth += 1) {
    const [x, y] = [Math.cos((eighth * Math.PI) / 4), Math.sin((eighth * Math.PI) / 4)];
    const name = nameAt([longitude + gapDegrees * x, latitude + gapDegrees * y]);
    if (!name.endsWith(' Ocean')) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const named = [...counts].sort(([, a], [, b]) => b - a);
  const sum = named.reduce((total, [, count]) => total + count, 0);
  // At the straight edge of a sea it is four at most.
  return sum > 4 ? (named[0]?.[0] ?? ocean) : ocean;
}

/** Reads `Name: x y, x y, …`, without the corner that closes the outline. */
function parseSea(text: string): Sea {
  const [name = '', corners = ''] = text.split(':');
  const outline = corners.split(',').map((corner): Position => {
    const [x = Number.NaN, y = Number.NaN] = corner.trim().split(' ').map(Number);
    return [x, y];
  });
  return { name, outline };
}

/** The closed ring, and the same on the other side where it reaches beyond the antimeridian. */
function turnsOf(outline: readonly Position[]): [number, number][][] {
  const closed = [...outline, ...outline.slice(0, 1)];
  const moved = (turn: number) => closed.map(([x, y]): [number, number] => [x + turn, y]);
  return outline.some(([x]) => x > 180) ? [moved(0), moved(-360)] : [moved(0)];
}
