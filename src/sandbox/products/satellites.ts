/**
 * The orbits of the Sentinel satellites. Altitude, inclination, repeat cycle and local time are ESA's
 * published mission figures; the reference orbits are read off real products.
 */
import type { Random } from '../random.ts';
import { periodMs, type Satellite } from './orbit.ts';

/** The satellites of a mission, the oldest first. */
export type Constellation = readonly [Satellite, ...Satellite[]];

// 693 km; dawn-dusk orbit.
const sentinel1Orbit = {
  inclinationDegrees: 98.18,
  cycleDays: 12,
  cycleOrbits: 175,
  ascendingNodeHours: 18,
  orbitStartDegrees: 0,
} as const;

export const sentinel1: Constellation = [
  {
    ...sentinel1Orbit,
    serial: 'A',
    reference: { orbitNumber: 62567, startMs: Date.UTC(2026, 0, 1, 1, 16, 42, 736) },
    relativeOrbitOffset: -73,
    firstCycle: 15,
  },
  {
    ...sentinel1Orbit,
    serial: 'C',
    reference: { orbitNumber: 5702, startMs: Date.UTC(2025, 11, 31, 22, 47, 35, 110) },
    relativeOrbitOffset: -172,
    firstCycle: 5,
  },
];

// 786 km; 10:30 at the descending node. Its records carry no cycle number.
const sentinel2Orbit = {
  inclinationDegrees: 98.62,
  cycleDays: 10,
  cycleOrbits: 143,
  ascendingNodeHours: 22.5,
  orbitStartDegrees: 0,
  firstCycle: 0,
} as const;

export const sentinel2: Constellation = [
  {
    ...sentinel2Orbit,
    serial: 'B',
    reference: { orbitNumber: 39345, startMs: Date.UTC(2024, 8, 17, 10, 40, 51) },
    relativeOrbitOffset: -27,
  },
  {
    ...sentinel2Orbit,
    serial: 'C',
    reference: { orbitNumber: 2538, startMs: Date.UTC(2025, 2, 1, 10, 40, 51) },
    relativeOrbitOffset: 29,
  },
];

// 814.5 km; 10:00 at the descending node.
const sentinel3Orbit = {
  inclinationDegrees: 98.65,
  cycleDays: 27,
  cycleOrbits: 385,
  ascendingNodeHours: 22,
  orbitStartDegrees: 0,
} as const;

export const sentinel3: Constellation = [
  {
    ...sentinel3Orbit,
    serial: 'A',
    reference: { orbitNumber: 28541, startMs: Date.UTC(2021, 7, 10, 7, 33, 45, 279) },
    relativeOrbitOffset: 26,
    firstCycle: 1,
  },
  {
    ...sentinel3Orbit,
    serial: 'B',
    reference: { orbitNumber: 31107, startMs: Date.UTC(2024, 3, 15, 7, 13, 29, 480) },
    relativeOrbitOffset: 112,
    firstCycle: 11,
  },
];

/** 824 km; 13:30 at the ascending node. Its orbits are counted from the night side. */
export const sentinel5p: Satellite = {
  serial: 'P',
  inclinationDegrees: 98.74,
  cycleDays: 16,
  cycleOrbits: 227,
  ascendingNodeHours: 13.5,
  orbitStartDegrees: 180,
  reference: { orbitNumber: 24190, startMs: Date.UTC(2022, 5, 14, 9, 52, 28) },
  relativeOrbitOffset: 0,
  firstCycle: 0,
};

/** One of the satellites that were in orbit at a time (ms since 1970); the first if none was. */
export function drawSatellite(random: Random, all: Constellation, atMs: number): Satellite {
  const [first, ...others] = all;
  const launchedLater = (satellite: Satellite) => {
    const { orbitNumber, startMs } = satellite.reference;
    return startMs - orbitNumber * periodMs(satellite) > atMs;
  };
  return random.pick([first, ...others.filter((satellite) => !launchedLater(satellite))]);
}
