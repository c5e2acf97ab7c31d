/** Circular sun-synchronous orbits: where a satellite is when, and which orbit that belongs to. */
import type { Random } from '../random.ts';

/** Longitude and latitude, degrees. */
export type Position = readonly [longitudeDegrees: number, latitudeDegrees: number];

/** A satellite on a circular orbit that keeps its local solar time and repeats its ground track. */
export interface Satellite {
  /** The letter its products carry. */
  readonly serial: string;
  readonly inclinationDegrees: number;
  /** Length of the repeat cycle in days, and the orbits flown in it; together they give the period. */
  readonly cycleDays: number;
  readonly cycleOrbits: number;
  /** Mean local solar time at the ascending node, hours. */
  readonly ascendingNodeHours: number;
  /** Argument of latitude at which the orbit number steps: 0 at the ascending node, 180 opposite. */
  readonly orbitStartDegrees: 0 | 180;
  /** One known orbit, which fixes all others. */
  readonly reference: { readonly orbitNumber: number; readonly startMs: number };
  /** Relative orbit = (orbit number + offset) mod cycleOrbits + 1. */
  readonly relativeOrbitOffset: number;
  /** Number of the cycle in which orbit number + relativeOrbitOffset is 0. */
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

/** Picks a satellite that was in orbit at a time (ms since 1970); the first one if none was. */
export function drawSatellite(random: Random, all: Table<Satellite>, atMs: number): Satellite {
  const [first, ...others] = all;
  const isLaunched = (satellite: Satellite) => {
    const { orbitNumber, startMs } = satellite.reference;
    return startMs - orbitNumber * periodMs(satellite) <= atMs;
  };
  return random.pick([first, ...others.filter(isLaunched)]);
}

/** Picks an entry; its chance is its weight in relation to all weights. */
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
 * Returns an acquisition that starts at the last time before `startsBeforeMs` at which the satellite
 * passed the argument of latitude (degrees from the ascending node along the orbit).
 */
export function latestAcquisition(
  satellite: Satellite,
  wanted: { argumentDegrees: number; durationMs: number; startsBeforeMs: number },
): Acquisition {
  const { reference, cycleOrbits } = satellite;
  const period = periodMs(satellite);
  const angleDegrees = positiveModulo(wanted.argumentDegrees - satellite.orbitStartDegrees, 360);
  const sinceOrbitStartMs = (angleDegrees / 360) * period;
  const orbits = Math.floor(
    (wanted.startsBeforeMs - sinceOrbitStartMs - reference.startMs) / period,
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
    endMs: startMs + wanted.durationMs,
    ascending: Math.cos(wanted.argumentDegrees * radiansPerDegree) > 0,
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
  // The orbit plane turns with the mean sun, so its node keeps to one local time: UTC gives the meridian.
  const utcHours = positiveModulo(atMs, dayMs) / 3_600_000;
  const nodeDegrees = (satellite.ascendingNodeHours - utcHours) * 15;
  const longitudeDegrees = nodeDegrees + Math.atan2(y, x) / radiansPerDegree;
  return [positiveModulo(longitudeDegrees + 180, 360) - 180, Math.asin(z) / radiansPerDegree];
}

function positiveModulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}
