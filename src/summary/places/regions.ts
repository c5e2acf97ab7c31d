/**
 * Finds the country or territory, or the sea or ocean, of a point. The map of countries is Natural Earth at 1:50
 * million (https://www.naturalearthdata.com, public domain), from the package `world-atlas`. The outlines of seas,
 * seas.json, are earshot's own, after the usual geographic limits, and rough: they cross land, because the
 * countries decide what is land. If several seas contain a point, the smallest one counts.
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

/** Reads the map. Lakes belong to their countries, except the Caspian Sea. */
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
    /** Returns the English name; null at sea. Longitudes must be within 180 degrees. */
    countryAt: ([longitude, latitude]: Position): string | null => {
      // The map excludes its edges and the last kilometre to the South Pole.
      const found = query([Math.min(longitude, 179.9999), Math.max(latitude, -89.99)]);
      return found === null ? null : nameOf(found);
    },
    names: features.map(({ properties }) => nameOf(properties)),
  };
}

/** Cuts polygons along the antimeridian again, which the package has joined. */
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

/** Returns an open ring with continuous longitudes: no edge jumps from one end of the map to the other. */
function withoutJumps(ring: number[][]): Ring {
  let x = ring[0]?.[0] ?? 0;
  return ring.slice(0, -1).map(([longitude = 0, latitude = 0]): Position => {
    x += wrapped(longitude - x);
    return [x, latitude];
  });
}

/** Splits a text at semicolons. */
function listOf(text: string): string[] {
  return text.split(';').map((item) => item.trim());
}

/** Full names by their name in Natural Earth, as in `world-atlas` 2.0.2. */
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

/** Other common names of countries; they count as place names in a text. */
export const otherCountryNames: readonly string[] = listOf(`
  America; Bosnia; Britain; Burma; Cape Verde; Congo; Czech Republic; DR Congo; East Timor; England;
  Great Britain; Holland; Ivory Coast; Macedonia; Northern Ireland; Republic of Ireland; Russian Federation;
  Scotland; Swaziland; The Gambia; The Netherlands; Türkiye; United States of America; USA; Wales
`);

interface Sea {
  name: string;
  /** Longitudes may exceed 180 degrees. */
  outline: Position[];
}

/** Seas outside all outlines. */
const pacific = { north: 'North Pacific Ocean', south: 'South Pacific Ocean' };

/** A little more than half the width of the gaps between the rough outlines. */
const gapDegrees = 0.5;

/** Reads the outlines of seas. */
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
    /** Returns the English name, meaningless on land. Longitudes must be within 180 degrees. */
    seaAt: (place: Position): string => {
      const name = smallestAt(place);
      return name.endsWith(' Ocean') ? withoutGap(name, place, smallestAt) : name;
    },
    names: [...new Set([...seas.map(({ name }) => name), pacific.north, pacific.south])],
  };
}

/** Returns the ocean, or, in a gap between outlines of seas, the sea at most of the surrounding points. */
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
  // At the straight edge of a sea, at most four points are in it.
  return sum > 4 ? (named[0]?.[0] ?? ocean) : ocean;
}

/** Parses `Name: x y, x y, …`, an open outline. */
function parseSea(text: string): Sea {
  const [name = '', corners = ''] = text.split(':');
  const outline = corners.split(',').map((corner): Position => {
    const [x = Number.NaN, y = Number.NaN] = corner.trim().split(' ').map(Number);
    return [x, y];
  });
  return { name, outline };
}

/** Returns the closed ring, and a copy moved by 360 degrees if it crosses the antimeridian. */
function turnsOf(outline: readonly Position[]): [number, number][][] {
  const closed = [...outline, ...outline.slice(0, 1)];
  const moved = (turn: number) => closed.map(([x, y]): [number, number] => [x + turn, y]);
  return outline.some(([x]) => x > 180) ? [moved(0), moved(-360)] : [moved(0)];
}
