/**
 * Outlines of countries and seas. Countries are from Natural Earth at 1:50 million (https://www.naturalearthdata.com,
 * public domain), from the package `world-atlas`. Seas are earshot's own, after the usual geographic limits, and rough:
 * they cross land, because the countries decide what is land. If several seas contain a point, the smallest one counts.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import Flatbush from 'flatbush';
import type { GeometryCollection, Topology } from 'topojson-specification';
import type { Box, Position, Ring, Rings } from '../domain/filter-tree.ts';
import { extentOf, toGeoJson } from '../filter/geometry/geojson.ts';
import { polygonsOf, snappedLongitude } from '../filter/geometry/ring.ts';
import names from './names.json' with { type: 'json' };
import seas from './seas.json' with { type: 'json' };

/** A polygon with its holes, within 180 and 90 degrees. */
export interface Outline extends Readonly<Box> {
  readonly name: string;
  /** x1, y1, x2, y2 of the edges of all rings. */
  readonly edges: Float64Array;
  /** In square degrees. */
  readonly area: number;
}

/** Maximum distance of the nearest country. */
const nearKm = 250;
const degreeKm = 111.2;

export function cosine(degrees: number): number {
  return Math.cos((degrees * Math.PI) / 180);
}

export type Outlines = ReturnType<typeof openOutlines>;

/** Reads the data. */
export function openOutlines() {
  const countries = layerOf(readCountries());
  const oceans = layerOf(seas.outlines.flatMap(parseSea));
  const oceanNames = ['South Pacific Ocean', 'North Pacific Ocean'] as const;
  const smallestAt = (at: Position) => oceans.nameAt(at) ?? oceanNames[at[1] < 0 ? 0 : 1];
  const found = [...countries.outlines, ...oceans.outlines].map(({ name }) => name);
  return {
    /** Returns the English name; null at sea. */
    countryAt: countries.nameAt,
    /** Returns the English name; meaningless on land. */
    seaAt: (position: Position) => withoutGap(position, smallestAt),
    /** Returns the nearest country of a position at sea; null without one. */
    nearestCountry: (position: Position) => nearestOutline(countries, position),
    /** Returns the largest part of a country. */
    mainPart: (name: string) => countries.outlines.findLast((one) => one.name === name),
    names: [...new Set([...found, ...oceanNames, ...names.otherNames])],
  };
}

export function outlineOf(name: string, rings: Rings): Outline {
  const edges = new Float64Array(4 * rings.reduce((sum, ring) => sum + ring.length, 0));
  let [at, doubledArea] = [0, 0];
  for (const ring of rings) {
    let from = ring.at(-1) ?? [0, 0];
    for (const to of ring) {
      edges[at] = from[0];
      edges[at + 1] = from[1];
      edges[at + 2] = to[0];
      edges[at + 3] = to[1];
      at += 4;
      doubledArea += from[0] * to[1] - to[0] * from[1];
      from = to;
    }
  }
  return { name, edges, area: Math.abs(doubledArea / 2), ...extentOf(rings[0] ?? []) };
}

/** Returns the longitudes at which the edges cross a parallel. Each edge includes its southern end. */
export function crossingsAt({ edges }: Outline, latitude: number): number[] {
  const crossings: number[] = [];
  for (let i = 0; i < edges.length; i += 4) {
    const y1 = edges[i + 1] ?? 0;
    const y2 = edges[i + 3] ?? 0;
    if (y1 <= latitude === y2 <= latitude) continue;
    const x1 = edges[i] ?? 0;
    crossings.push(x1 + ((latitude - y1) / (y2 - y1)) * ((edges[i + 2] ?? 0) - x1));
  }
  return crossings;
}

type Layer = ReturnType<typeof layerOf>;

function layerOf(unordered: readonly Outline[]) {
  const outlines = unordered.toSorted((a, b) => a.area - b.area);
  const index = new Flatbush(outlines.length);
  for (const { west, south, east, north } of outlines) index.add(west, south, east, north);
  index.finish();
  // Samples of a footprint are on few parallels.
  let row = { y: Number.NaN, crossings: new Map<Outline, number[]>() };
  /** Returns the name of the smallest outline that contains a position. */
  const nameAt = ([longitude, latitude]: Position): string | null => {
    // The outlines exclude their eastern and northern edges.
    const x = Math.min(snappedLongitude(longitude), 179.9999);
    const y = Math.min(Math.max(latitude, -89.99), 89.99);
    if (row.y !== y) row = { y, crossings: new Map() };
    const { crossings } = row;
    const isInside = (outline: Outline) => {
      const all = crossings.get(outline) ?? crossingsAt(outline, y);
      crossings.set(outline, all);
      return all.filter((crossing) => crossing > x).length % 2 === 1;
    };
    const found = index.search(x, y, x, y).sort((a, b) => a - b);
    return found.map((i) => outlines[i]).find((one) => one && isInside(one))?.name ?? null;
  };
  return { outlines, index, nameAt };
}

/** In a gap between the rough outlines of seas, most surrounding points are in a sea: it counts. */
function withoutGap([x, y]: Position, nameAt: (position: Position) => string): string {
  const name = nameAt([x, y]);
  if (!name.endsWith(' Ocean')) return name;
  const around: Position[] = [-0.5, 0.5].flatMap((step) => [
    [x + step, y],
    [x, y + step],
  ]);
  const seaNames = around.map(nameAt).filter((one) => !one.endsWith(' Ocean'));
  return (seaNames.length > 2 ? seaNames[0] : undefined) ?? name;
}

function nearestOutline({ outlines, index }: Layer, [x, y]: Position): string | null {
  const [up, stretch] = [nearKm / degreeKm, Math.max(0.05, cosine(y))];
  const side = up / stretch;
  const near = [-360, 0, 360].flatMap((turn) =>
    index.search(x + turn - side, y - up, x + turn + side, y + up),
  );
  let nearest: string | null = null;
  let least = up ** 2;
  for (const { name, edges } of near.flatMap((i) => outlines[i] ?? [])) {
    for (let i = 0; i < edges.length; i += 4) {
      const right = snappedLongitude((edges[i] ?? 0) - x) * stretch;
      const squared = right ** 2 + ((edges[i + 1] ?? 0) - y) ** 2;
      if (squared >= least) continue;
      least = squared;
      nearest = name;
    }
  }
  return nearest;
}

type CountryMap = Topology<{ countries: GeometryCollection<{ name: string }> }>;

/** Lakes belong to their countries, except the Caspian Sea. */
function readCountries(): Outline[] {
  const require = createRequire(import.meta.url);
  // Loaded here, because most commands and requests need no map.
  const { feature }: typeof import('topojson-client') = require('topojson-client');
  const file = require.resolve('world-atlas/countries-50m.json');
  const map: CountryMap = JSON.parse(readFileSync(file, 'utf8'));
  const fullNames = new Map(Object.entries(names.fullNames));
  return feature(map, map.objects.countries).features.flatMap(({ properties, geometry }) => {
    const name = fullNames.get(properties.name) ?? properties.name;
    const polygons = polygonsOf(geometry as Parameters<typeof polygonsOf>[0]);
    const parts = polygons.flatMap((rings) => cutOutlines(name, rings, continuous));
    return parts.map((part) => ({ ...part, name: regionOf(part) ?? name }));
  });
}

/** Returns an open ring without jumps from one end of the map to the other, where the package has joined parts. */
function continuous(ring: Ring): Ring {
  let [[x] = [0]] = ring;
  return ring.slice(0, -1).map(([longitude, latitude]): Position => {
    x = longitude - 360 * Math.round((longitude - x) / 360);
    return [x, latitude];
  });
}

/** Cuts a polygon at the antimeridian. */
function cutOutlines(name: string, rings: Rings, prepare = (ring: Ring) => ring): Outline[] {
  const { west, east } = extentOf(rings[0] ?? []);
  if (east <= 180 && east - west < 350) return [outlineOf(name, rings)];
  const parts = polygonsOf(toGeoJson({ type: 'Polygon', coordinates: rings.map(prepare) }));
  return parts.map((part) => outlineOf(name, part));
}

/** Parses `Name: x y, x y, …`, an open outline. */
function parseSea(text: string): Outline[] {
  const [name = '', corners = ''] = text.split(': ');
  const ring = corners.split(', ').map((corner): Position => {
    const [x = 0, y = 0] = corner.split(' ').map(Number);
    return [x, y];
  });
  return cutOutlines(name, [ring]);
}

/** Returns the name of a region far from its country, by the centre of a part of the country. */
function regionOf({ name: country, west, south, east, north }: Outline): string | undefined {
  const [x, y] = [(west + east) / 2, (south + north) / 2];
  return names.regions.find(({ of, box: [west = 0, south = 0, east = 0, north = 0] }) => {
    return of === country && x > west && x < east && y > south && y < north;
  })?.name;
}
