/**
 * Outlines of countries and seas. Countries are from Natural Earth at 1:50 million (https://www.naturalearthdata.com,
 * public domain), from the package `world-atlas`. Seas are earshot's own, after the usual geographic limits, and rough:
 * they cross land, because the countries decide what is land. If several seas contain a point, the smallest one counts.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import Flatbush from 'flatbush';
import type { GeometryCollection, Point, Topology } from 'topojson-specification';
import type { Box, Position, Ring, Rings } from '../../../filter/filter-tree.ts';
import { polygonsOf, snappedLongitude } from '../../../filter/geometry/ring.ts';
import names from './names.json' with { type: 'json' };
import seas from './seas.json' with { type: 'json' };

/** A polygon with its holes. Longitudes may exceed 180 degrees. */
export interface Outline extends Readonly<Box> {
  readonly name: string;
  /** x1, y1, x2, y2 of the edges of all rings. Thousands of typed arrays would leave gaps of 9 MB in the allocator. */
  readonly edges: readonly number[];
  /** In square degrees. */
  readonly area: number;
}

/** Maximum distance of the nearest country. */
const nearKm = 250;
const degreeKm = 111.2;

export function cosine(degrees: number): number {
  return Math.cos((degrees * Math.PI) / 180);
}

const turns = [-360, 0, 360] as const;

export type Outlines = ReturnType<typeof openOutlines>;

/** Reads the data. */
export function openOutlines() {
  const countries = layerOf(readCountries());
  const oceans = layerOf(seas.outlines.map(parseSea));
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

/** Creates no objects for the 100,000 corners of the map, because loading delays the main thread. */
export function outlineOf(name: string, rings: Rings): Outline {
  const edges: number[] = [];
  let doubledArea = 0;
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const ring of rings) {
    let [fromX, fromY] = ring.at(-1) ?? [0, 0];
    for (const [x, y] of ring) {
      edges.push(fromX, fromY, x, y);
      doubledArea += fromX * y - x * fromY;
      if (x < west) west = x;
      if (x > east) east = x;
      if (y < south) south = y;
      if (y > north) north = y;
      fromX = x;
      fromY = y;
    }
  }
  return { name, edges, area: Math.abs(doubledArea / 2), west, south, east, north };
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
    const isInside = (outline: Outline | undefined, at: number) => {
      if (outline === undefined) return false;
      const all = crossings.get(outline) ?? crossingsAt(outline, y);
      crossings.set(outline, all);
      return all.filter((crossing) => crossing > at).length % 2 === 1;
    };
    const found = turns.flatMap((turn) =>
      index.search(x + turn, y, x + turn, y).filter((i) => isInside(outlines[i], x + turn)),
    );
    return outlines[Math.min(...found)]?.name ?? null;
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
  const near = turns.flatMap((turn) =>
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
  // One by one, because all together need 20 MB.
  return map.objects.countries.geometries.flatMap((country) => {
    const { properties, geometry } = feature(map, country as Point<{ name: string }>);
    const name = fullNames.get(properties.name) ?? properties.name;
    const polygons = polygonsOf(geometry as never);
    return polygons.map((rings) => {
      const part = outlineOf(name, rings);
      if (part.east - part.west > 350) return outlineOf(name, rings.map(continuous));
      return { ...part, name: regionOf(part) ?? name };
    });
  });
}

/** Undoes jumps from one end of the map to the other. A ring around the pole includes the pole. */
function continuous(ring: Ring): Ring {
  const [[start] = [0]] = ring;
  let x = start;
  const path = ring.map(([longitude, latitude]): Position => {
    x = longitude - 360 * Math.round((longitude - x) / 360);
    return [x, latitude];
  });
  return Math.abs(x - start) < 180 ? path : [...path, [x, -90], [start, -90]];
}

/** Parses `Name: x y, x y, …`, an open outline. */
function parseSea(text: string): Outline {
  const [name = '', corners = ''] = text.split(': ');
  const ring = corners.split(', ').map((corner): Position => {
    const [x = 0, y = 0] = corner.split(' ').map(Number);
    return [x, y];
  });
  return outlineOf(name, [ring]);
}

/** Returns the name of a region far from its country, by the centre of a part of the country. */
function regionOf({ name, ...part }: Outline): string | undefined {
  const [x, y] = [(part.west + part.east) / 2, (part.south + part.north) / 2];
  return names.regions.find(({ of, west, south, east, north }) => {
    return of === name && x > west && x < east && y > south && y < north;
  })?.name;
}
