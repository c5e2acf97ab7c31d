/** Circular sun-synchronous orbits: position, orbit number and footprint of a satellite. */
import type { Random } from '../clock.ts';

/** Longitude and latitude, degrees. */
export type Position = readonly [longitudeDegrees: number, latitudeDegrees: number];

/** A satellite on a circular orbit that keeps its local solar time and repeats its ground track. */
export interface Satellite {
  /** Letter in the product names. */
  readonly serial: string;
  readonly inclinationDegrees: number;
  /** Length of the repeat cycle in days, and its number of orbits; together they give the period. */
  readonly cycleDays: number;
  readonly cycleOrbits: number;
  /** Mean local solar time at the ascending node, hours. */
  readonly ascendingNodeHours: number;
  /** Argument of latitude at which the orbit number increases: 0 at the ascending node, 180 opposite. */
  readonly orbitStartDegrees: 0 | 180;
  /** A known orbit, which determines all others. */
  readonly reference: { readonly orbitNumber: number; readonly startMs: number };
  /** Relative orbit = (orbit number + offset) mod cycleOrbits + 1. */
  readonly relativeOrbitOffset: number;
  /** Number of the cycle where orbit number + relativeOrbitOffset is 0. */
  readonly firstCycle: number;
}

/** A table with at least one entry. */
export type Table<Entry> = readonly [Entry, ...Entry[]];

/** A part of the orbit, degrees from the ascending node. */
export type Arc = readonly [fromDegrees: number, toDegrees: number];

/** Sensing within one orbit. Times are whole ms since 1970. */
export interface Acquisition {
  readonly satellite: Satellite;
  readonly orbitNumber: number;
  readonly relativeOrbitNumber: number;
  readonly cycleNumber: number;
  readonly orbitStartMs: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly ascending: boolean;
}

const dayMs = 86_400_000;

const earthRadiusKm = 6371;

const radiansPerDegree = Math.PI / 180;

export function periodMs(satellite: Satellite): number {
  return (satellite.cycleDays * dayMs) / satellite.cycleOrbits;
}

/** Picks a satellite that was in orbit at a time (ms since 1970), or the first one if there was none. */
export function drawSatellite(random: Random, all: Table<Satellite>, atMs: number): Satellite {
  const [first, ...others] = all;
  const isLaunched = (satellite: Satellite) => {
    const { orbitNumber, startMs } = satellite.reference;
    return startMs - orbitNumber * periodMs(satellite) <= atMs;
  };
  return random.pick([first, ...others.filter(isLaunched)]);
}

/** Picks an entry with a probability proportional to its weight. */
export function pickWeighted<Entry extends { readonly weight: number }>(
  random: Random,
  table: Table<Entry>,
): Entry {
  let left = random.next() * table.reduce((sum, { weight }) => sum + weight, 0);
  for (const entry of table) {
    left -= entry.weight;
    if (left < 0) return entry;
  }
  return table[0];
}

/** Draws an argument of latitude within one of the arcs, degrees from the ascending node. */
export function drawArgumentDegrees(random: Random, arcs: Table<Arc>): number {
  return random.between(...random.pick(arcs));
}

/**
 * Returns the acquisition that starts when the satellite last passed an argument of latitude (degrees from
 * the ascending node along the orbit) before `startsBeforeMs`.
 */
export function latestAcquisition(
  satellite: Satellite,
  target: { argumentDegrees: number; durationMs: number; startsBeforeMs: number },
): Acquisition {
  const { reference, cycleOrbits } = satellite;
  const period = periodMs(satellite);
  const angleDegrees = positiveModulo(target.argumentDegrees - satellite.orbitStartDegrees, 360);
  const sinceOrbitStartMs = (angleDegrees / 360) * period;
  const orbits = Math.floor(
    (target.startsBeforeMs - sinceOrbitStartMs - reference.startMs) / period,
  );
  const orbitNumber = reference.orbitNumber + orbits;
  const orbitStartMs = reference.startMs + orbits * period;
  const startMs = Math.floor(orbitStartMs + sinceOrbitStartMs);
  const counted = orbitNumber + satellite.relativeOrbitOffset;
  return {
    satellite,
    orbitNumber,
    relativeOrbitNumber: positiveModulo(counted, cycleOrbits) + 1,
    cycleNumber: satellite.firstCycle + Math.floor(counted / cycleOrbits),
    orbitStartMs: Math.floor(orbitStartMs),
    startMs,
    endMs: startMs + target.durationMs,
    ascending: Math.cos(target.argumentDegrees * radiansPerDegree) > 0,
  };
}

/**
 * Returns the point on the ground `acrossKm` to the right of the ground track (to the left when
 * negative) at a time; longitude from -180 up to 180 degrees.
 */
export function groundPoint(satellite: Satellite, atMs: number, acrossKm: number): Position {
  const inclination = satellite.inclinationDegrees * radiansPerDegree;
  const argument =
    satellite.orbitStartDegrees * radiansPerDegree +
    (2 * Math.PI * (atMs - satellite.reference.startMs)) / periodMs(satellite);
  const across = acrossKm / earthRadiusKm;
  // Axes: x to the ascending node, z to the north pole. Right of flight is against the orbit's normal.
  const x = Math.cos(across) * Math.cos(argument);
  const y =
    Math.cos(across) * Math.sin(argument) * Math.cos(inclination) +
    Math.sin(across) * Math.sin(inclination);
  const z =
    Math.cos(across) * Math.sin(argument) * Math.sin(inclination) -
    Math.sin(across) * Math.cos(inclination);
  // The orbit plane follows the mean sun, so the node has a constant local time: UTC gives the meridian.
  const utcHours = positiveModulo(atMs, dayMs) / 3_600_000;
  const nodeDegrees = (satellite.ascendingNodeHours - utcHours) * 15;
  const longitudeDegrees = nodeDegrees + Math.atan2(y, x) / radiansPerDegree;
  return [positiveModulo(longitudeDegrees + 180, 360) - 180, Math.asin(z) / radiansPerDegree];
}

function positiveModulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}

/**
 * An outline without its closing point. Longitudes continue across the antimeridian (181, not -179),
 * so that neighbouring points are never more than 180 degrees apart.
 */
export type Ring = readonly Position[];

/** Area seen by an instrument. Distances are km from the ground track, positive to the right of flight. */
export interface Swath {
  readonly leftKm: number;
  readonly rightKm: number;
  /** Number of outline segments along and across the track. */
  readonly alongSteps: number;
  readonly acrossSteps: number;
}

/** GeoJSON of a footprint; each ring is closed. */
export type FootprintGeometry =
  | { readonly type: 'Polygon'; readonly coordinates: readonly Ring[] }
  | { readonly type: 'MultiPolygon'; readonly coordinates: readonly (readonly Ring[])[] };

export interface Footprint {
  /** `geography'SRID=4326;POLYGON ((<longitude> <latitude>, …))'`, or MULTIPOLYGON. */
  readonly text: string;
  readonly geometry: FootprintGeometry;
}

/** Returns the outline of a swath, counter-clockwise from the left corner at the end of the acquisition. */
export function swathRing(
  { satellite, startMs, endMs }: Pick<Acquisition, 'satellite' | 'startMs' | 'endMs'>,
  { leftKm, rightKm, alongSteps, acrossSteps }: Swath,
): Ring {
  const at = (along: number, across: number) =>
    groundPoint(
      satellite,
      startMs + ((endMs - startMs) * along) / alongSteps,
      leftKm + ((rightKm - leftKm) * across) / acrossSteps,
    );
  const points: Position[] = [];
  for (let along = alongSteps; along > 0; along--) points.push(at(along, 0));
  for (let across = 0; across < acrossSteps; across++) points.push(at(0, across));
  for (let along = 0; along < alongSteps; along++) points.push(at(along, acrossSteps));
  for (let across = acrossSteps; across > 0; across--) points.push(at(alongSteps, across));
  return continuousRing(points);
}

/** Converts points to a ring, shifting each longitude by multiples of 360 to within 180 degrees of the previous. */
export function continuousRing(points: readonly Position[]): Ring {
  let previous = points[0]?.[0] ?? 0;
  return points.map(([longitude, latitude]) => {
    previous = longitude + 360 * Math.round((previous - longitude) / 360);
    return [previous, latitude];
  });
}

/** Clips a ring to the side of a line where `side` is positive (Sutherland and Hodgman). */
export function clipRing(ring: Ring, side: (point: Position) => number): Ring {
  const kept: Position[] = [];
  let from = ring.at(-1);
  for (const to of ring) {
    if (from === undefined) break;
    const [fromSide, toSide] = [side(from), side(to)];
    if (fromSide * toSide < 0) {
      const share = fromSide / (fromSide - toSide);
      kept.push([from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share]);
    }
    if (toSide >= 0) kept.push(to);
    from = to;
  }
  return kept;
}

/** Converts a ring to a polygon, split at the antimeridian, rounded to `decimals` digits. */
export function toFootprint(ring: Ring, decimals: number): Footprint {
  const westmost = Math.min(...ring.map(([longitude]) => longitude));
  const home = shiftedRing(ring, -360 * Math.floor((westmost + 180) / 360));
  const east = clipRing(home, ([longitude]) => 180 - longitude);
  const west = clipRing(home, ([longitude]) => longitude - 180);
  const parts = [east, shiftedRing(west, -360)]
    .map((part) => closedRing(part, decimals))
    // A ring that only touches the antimeridian has no area beyond it.
    .filter((part) => new Set(part.map(([longitude]) => longitude)).size > 1 && part.length > 3);
  const [first = [], ...others] = parts;
  return others.length === 0
    ? { text: toText('POLYGON', toWkt(first)), geometry: { type: 'Polygon', coordinates: [first] } }
    : {
        text: toText('MULTIPOLYGON', `(${parts.map(toWkt).join(', ')})`),
        geometry: { type: 'MultiPolygon', coordinates: parts.map((part) => [part]) },
      };
}

function shiftedRing(ring: Ring, degrees: number): Ring {
  if (degrees === 0) return ring;
  return ring.map(([longitude, latitude]) => [longitude + degrees, latitude]);
}

function closedRing(ring: Ring, decimals: number): Ring {
  const rounded = ring.map(
    ([longitude, latitude]): Position => [round(longitude, decimals), round(latitude, decimals)],
  );
  const distinct = rounded.filter((point, index) => {
    const before = rounded.at(index - 1);
    return before === undefined || point[0] !== before[0] || point[1] !== before[1];
  });
  return [...distinct, ...distinct.slice(0, 1)];
}

function round(degrees: number, decimals: number): number {
  const scale = 10 ** decimals;
  const rounded = Math.round(degrees * scale) / scale;
  // Avoids exponents (below 1e-6), which WKT parsers may refuse.
  return Math.abs(rounded) < 1e-6 ? 0 : rounded;
}

function toWkt(ring: Ring): string {
  return `((${ring.map(([longitude, latitude]) => `${longitude} ${latitude}`).join(', ')}))`;
}

function toText(type: string, wkt: string): string {
  return `geography'SRID=4326;${type} ${wkt}'`;
}
