/**
 * The collections of the sandbox, their ground tracks on sun-synchronous orbits, footprints of acquisitions, and the map
 * of land. The table (`collections.json`) has names and attributes as templates. Figures of orbits and instruments are
 * those published by ESA; reference orbits and forms are of real products.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import mgrs from 'mgrs';
import { feature } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import whichPolygon from 'which-polygon';
import { z } from 'zod';
import { toGeoJson } from '../../filter/geometry/geojson.ts';
import { polygonsOf } from '../../filter/geometry/ring.ts';
import data from './collections.json' with { type: 'json' };

const range = z.tuple([z.number(), z.number()]);
const templates = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));
/** Parts of names and attributes with a meaning for one collection. */
const notes = z.record(z.string(), z.union([z.string(), z.number()])).default({});

/** A satellite on a circular orbit that keeps its local solar time and repeats its ground track. */
const satelliteSchema = z.strictObject({
  /** Letter in the product names. */
  serial: z.string(),
  inclinationDegrees: z.number(),
  /** Length of the repeat cycle in days, and its number of orbits; together they give the period. */
  cycleDays: z.number(),
  cycleOrbits: z.number(),
  /** Mean local solar time at the ascending node, hours. */
  nodeHours: z.number(),
  /** A known orbit, which determines all others: its number, and its start at the ascending node. */
  referenceOrbit: z.number(),
  referenceTime: z.iso.datetime(),
  /** Relative orbit = (orbit number + offset) mod cycleOrbits + 1. */
  relativeOffset: z.number(),
  /** Number of the cycle where orbit number + relativeOffset is 0. */
  firstCycle: z.number(),
  notes,
});

const typeSchema = z.strictObject({
  productType: z.string(),
  /** Relative frequency of publication, among all collections. */
  weight: z.number(),
  /** Parts of the orbit where sensing starts, degrees from the ascending node. */
  arcsDegrees: z.tuple([range], range),
  /** Sensing starts at multiples of this after the ascending node (default: any time). */
  frameSeconds: z.number().optional(),
  durationSeconds: z.number(),
  /** From the start of sensing to publication; up to two orbits are added. */
  delayMinutes: range,
  /** Area seen: km from the ground track, positive to the right of flight; outline segments along and across. */
  swath: z.strictObject({ km: range, steps: range }).nullable(),
  /** True if the footprint is a square of the MGRS grid over land in the swath. */
  tile: z.boolean().default(false),
  /** Share of the duration in the footprint. */
  seen: range.default([0, 1]),
  bytes: range,
  quicklook: z.boolean().default(false),
  /** True if the product is also offered as an archive. */
  archive: z.boolean().default(false),
  /** Time from publication to eviction (default: unlimited). */
  keptDays: z.number().optional(),
  attributes: templates.default({}),
  notes,
});

const collectionSchema = z
  .strictObject({
    /** Begin of the path below `/eodata/`. */
    folder: z.string(),
    decimals: z.number(),
    /** Values that all satellites, and most types, have in common. */
    orbit: z.looseObject({}),
    common: z.looseObject({}).default({}),
    satellites: z.array(z.looseObject({})),
    types: z.array(z.looseObject({})),
    name: z.string(),
    /** Without beginningDateTime and endingDateTime, which all products have. */
    attributes: templates,
  })
  .transform(({ orbit, common, satellites, types, ...collection }) => ({
    ...collection,
    satellites: satellites.map((one) => {
      const satellite = satelliteSchema.parse({ ...orbit, ...one });
      return { ...satellite, referenceMs: Date.parse(satellite.referenceTime) };
    }),
    types: types.map((one) => typeSchema.parse({ ...common, ...one })),
  }));

export type Collection = z.output<typeof collectionSchema>;
export type Satellite = Collection['satellites'][number];
export type ProductType = Collection['types'][number];
export const collections = z.array(collectionSchema).parse(data);

/** Longitude and latitude, degrees. */
export type Position = readonly [longitudeDegrees: number, latitudeDegrees: number];

/** A pass of a satellite over one point of its orbit. Times are whole ms since 1970. */
export interface Pass {
  readonly satellite: Satellite;
  readonly orbit: number;
  readonly relativeOrbit: number;
  readonly cycle: number;
  /** Time at the ascending node. */
  readonly nodeMs: number;
  readonly startMs: number;
  readonly ascending: boolean;
}

const dayMs = 86_400_000;
const earthRadiusKm = 6371;
const radiansPerDegree = Math.PI / 180;

export function periodMs({ cycleDays, cycleOrbits }: Satellite): number {
  return (cycleDays * dayMs) / cycleOrbits;
}

/** Returns the last pass before a time. `argumentDegrees` is counted from the ascending node along the orbit. */
export function passBefore(satellite: Satellite, argumentDegrees: number, beforeMs: number): Pass {
  const { referenceOrbit, referenceMs, cycleOrbits, relativeOffset, firstCycle } = satellite;
  const period = periodMs(satellite);
  const sinceNodeMs = (argumentDegrees / 360) * period;
  const orbits = Math.floor((beforeMs - sinceNodeMs - referenceMs) / period);
  const nodeMs = referenceMs + orbits * period;
  const counted = referenceOrbit + orbits + relativeOffset;
  return {
    satellite,
    orbit: referenceOrbit + orbits,
    relativeOrbit: positiveModulo(counted, cycleOrbits) + 1,
    cycle: firstCycle + Math.floor(counted / cycleOrbits),
    nodeMs: Math.floor(nodeMs),
    startMs: Math.floor(nodeMs + sinceNodeMs),
    ascending: Math.cos(argumentDegrees * radiansPerDegree) > 0,
  };
}

/** Returns the point on the ground `acrossKm` to the right of the ground track (to the left if negative). */
export function groundPoint(satellite: Satellite, atMs: number, acrossKm: number): Position {
  const inclination = satellite.inclinationDegrees * radiansPerDegree;
  const argument = (2 * Math.PI * (atMs - satellite.referenceMs)) / periodMs(satellite);
  const across = acrossKm / earthRadiusKm;
  // Axes: x to the ascending node, z to the north pole. Right of flight is against the orbit's normal.
  const x = Math.cos(across) * Math.cos(argument);
  const forward = Math.cos(across) * Math.sin(argument);
  const y = forward * Math.cos(inclination) + Math.sin(across) * Math.sin(inclination);
  const z = forward * Math.sin(inclination) - Math.sin(across) * Math.cos(inclination);
  // The orbit plane follows the mean sun, so the node has a constant local time: UTC gives the meridian.
  const utcHours = positiveModulo(atMs, dayMs) / 3_600_000;
  const longitude = (satellite.nodeHours - utcHours) * 15 + Math.atan2(y, x) / radiansPerDegree;
  return [positiveModulo(longitude + 180, 360) - 180, Math.asin(z) / radiansPerDegree];
}

function positiveModulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}

/** Returns the outline of a swath, counter-clockwise from the left corner at the end. */
export function swathRing(
  satellite: Satellite,
  [fromMs, toMs]: readonly [fromMs: number, toMs: number],
  { km: [leftKm, rightKm], steps: [along, across] }: NonNullable<ProductType['swath']>,
): Position[] {
  const at = (i: number, j: number) =>
    groundPoint(
      satellite,
      fromMs + ((toMs - fromMs) * i) / along,
      leftKm + ((rightKm - leftKm) * j) / across,
    );
  const indexes = (count: number) => Array.from({ length: count }, (_, index) => index);
  return [
    ...indexes(along).map((i) => at(along - i, 0)),
    ...indexes(across).map((j) => at(0, j)),
    ...indexes(along).map((i) => at(i, across)),
    ...indexes(across).map((j) => at(along, across - j)),
  ];
}

/** Returns the square of the MGRS grid that contains a point, e.g. `28PHQ`. */
export function tileAt(point: Position): string {
  return mgrs.forward([...point], 0).padStart(5, '0');
}

// South-west, south-east, north-east and north-west: easting and northing in metres.
const corners = ['0000000000', '9999900000', '9999999999', '0000099999'];

export function tileRing(tile: string): Position[] {
  return corners.map((corner) => mgrs.toPoint(tile + corner));
}

/**
 * Converts an open ring, split at the antimeridian and rounded to `decimals` digits, to GeoJSON and to
 * `geography'SRID=4326;POLYGON ((<longitude> <latitude>, …))'`.
 */
export function toFootprint(ring: readonly Position[], decimals: number) {
  const rounded = (degrees: number) => {
    const value = Math.round(degrees * 10 ** decimals) / 10 ** decimals;
    // Avoids exponents (below 1e-6), which WKT parsers may refuse.
    return Math.abs(value) < 1e-6 ? 0 : value;
  };
  const polygons = polygonsOf(toGeoJson({ type: 'Polygon', coordinates: [ring] }))
    .map(([outline = []]) => outline.map(([x, y]): Position => [rounded(x), rounded(y)]))
    // A ring that only touches the antimeridian has no area beyond it.
    .filter((outline) => new Set(outline.map(([x]) => x)).size > 1);
  const texts = polygons.map((outline) => `((${outline.map((one) => one.join(' ')).join(', ')}))`);
  const [first = [], ...others] = polygons;
  const geometry =
    others.length === 0
      ? { type: 'Polygon' as const, coordinates: [first] }
      : { type: 'MultiPolygon' as const, coordinates: polygons.map((one) => [one]) };
  const wkt = others.length === 0 ? `POLYGON ${texts[0]}` : `MULTIPOLYGON (${texts.join(', ')})`;
  return { text: `geography'SRID=4326;${wkt}'`, geometry };
}

let land: ((point: Position) => boolean) | undefined;

/** Returns true for a point on land, except Antarctica. Reads the map of Natural Earth (1:110 million) at first use. */
export function isLand(point: Position): boolean {
  land ??= openLand();
  return land(point);
}

function openLand() {
  const file = createRequire(import.meta.url).resolve('world-atlas/land-110m.json');
  const map: Topology<{ land: GeometryCollection }> = JSON.parse(readFileSync(file, 'utf8'));
  const polygons = feature(map, map.objects.land).features.flatMap(({ geometry }) =>
    geometry.type === 'MultiPolygon' ? geometry.coordinates : [],
  );
  const features = polygons.map((rings) => ({
    type: 'Feature' as const,
    properties: {},
    geometry: { type: 'Polygon' as const, coordinates: rings.map(continuous) },
  }));
  const query = whichPolygon({ type: 'FeatureCollection', features });
  // Outlines that cross the antimeridian continue beyond 180 degrees.
  const eastmost = (x: number) => (x < -165 ? x + 360 : x);
  return ([x, y]: Position) => y > -60 && (query([x, y]) ?? query([eastmost(x), y])) !== null;
}

/** Shifts longitudes by multiples of 360 to within 180 degrees of the previous, and an outline around 180 to the east. */
function continuous(ring: readonly number[][]): number[][] {
  let previous = ring[0]?.[0] ?? 0;
  const shifted = ring.map(([x = 0, y = 0]): [number, number] => {
    previous = x + 360 * Math.round((previous - x) / 360);
    return [previous, y];
  });
  const isWest = shifted.some(([x]) => x < -180);
  return isWest ? shifted.map(([x, y]) => [x + 360, y]) : shifted;
}
