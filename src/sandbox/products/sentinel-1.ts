/** Creates Sentinel-1 products: slices of IW data takes (SLC, GRD, cloud-optimised GRD, raw, ocean) and orbit files. */
import type { Random } from '../clock.ts';
import {
  type Acquisition,
  type Arc,
  drawArgumentDegrees,
  drawSatellite,
  latestAcquisition,
  periodMs,
  pickWeighted,
  type Satellite,
  swathRing,
  type Table,
  toFootprint,
} from './orbit.ts';
import {
  type AttributeValues,
  type ProductSource,
  type Timeline,
  toNameTime,
  toTimestamp,
} from './record.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

// Mission figures published by ESA; reference orbits from real products. 693 km; dawn-dusk orbit.
const orbit = {
  inclinationDegrees: 98.18,
  cycleDays: 12,
  cycleOrbits: 175,
  ascendingNodeHours: 18,
  orbitStartDegrees: 0,
} as const;
export const sentinel1: Table<Satellite> = [
  {
    ...orbit,
    serial: 'A',
    reference: { orbitNumber: 62567, startMs: Date.UTC(2026, 0, 1, 1, 16, 42, 736) },
    relativeOrbitOffset: -73,
    firstCycle: 15,
  },
  {
    ...orbit,
    serial: 'C',
    reference: { orbitNumber: 5702, startMs: Date.UTC(2025, 11, 31, 22, 47, 35, 110) },
    relativeOrbitOffset: -172,
    firstCycle: 5,
  },
];

// Per satellite: processing centre, instrument configuration, data take of the reference orbit, and
// average number of data takes per orbit; from real products.
const facts: Readonly<Record<string, readonly [string, number, id: number, perOrbit: number]>> = {
  A: ['SERCO', 7, 0x7d772, 9.79],
  C: ['WERUM', 5, 0xb654, 8.74],
};

interface SliceType {
  /** Relative frequency of publication. */
  readonly weight: number;
  /** TTTR_LF of the name: type, resolution, level and class. */
  readonly code: string;
  /** Attribute productType, and folder. */
  readonly productType: string;
  readonly level: 'LEVEL0' | 'LEVEL1' | 'LEVEL2';
  readonly swaths: string;
  readonly durationMs: number;
  readonly bytes: readonly [min: number, max: number];
  readonly quicklook: boolean;
  /** Set if the slice is published twice: plain first, then cloud-optimised. */
  readonly twin?: 'first' | 'second';
}

const level1 = { level: 'LEVEL1', quicklook: true } as const;
const grd = { ...level1, code: 'GRDH_1S', swaths: 'IW', durationMs: 24_998 } as const;
const sliceTypes: Table<SliceType> = [
  { ...grd, weight: 32, productType: 'IW_GRDH_1S', bytes: [1.6e9, 2.1e9], twin: 'first' },
  { ...grd, weight: 24, productType: 'IW_GRDH_1S-COG', bytes: [0.6e9, 1.2e9], twin: 'second' },
  {
    ...level1,
    weight: 24,
    code: 'SLC__1S',
    productType: 'IW_SLC__1S',
    swaths: 'IW1 IW2 IW3',
    durationMs: 27_014,
    bytes: [6.9e9, 8.4e9],
  },
  {
    weight: 10,
    code: 'RAW__0S',
    productType: 'IW_RAW__0S',
    level: 'LEVEL0',
    swaths: '',
    durationMs: 32_400,
    bytes: [1.4e9, 1.9e9],
    quicklook: false,
  },
  {
    weight: 10,
    code: 'OCN__2S',
    productType: 'IW_OCN__2S',
    level: 'LEVEL2',
    swaths: 'IW',
    durationMs: 24_998,
    bytes: [6e6, 9e6],
    quicklook: false,
  },
];

/** A slice of a data take, the source of products of several types. */
interface Slice {
  readonly acquisition: Acquisition;
  readonly datatakeId: number;
  readonly sliceNumber: number;
  readonly totalSlices: number;
  readonly channels: string;
  /** Name without `_COG` and `.SAFE`. */
  readonly stem: string;
}

// Land and coasts between the polar caps, by day and by night.
const arcs: Table<Arc> = [
  [0, 68],
  [112, 248],
  [292, 356],
];
// The antenna looks to the right: incidence of 29 to 46 degrees is 340 to 590 km from the track.
const swath = { leftKm: 340, rightKm: 590, alongSteps: 1, acrossSteps: 1 };
const sliceSpacingMs = 25_000;

/** Creates the source of Sentinel-1 products. A cloud-optimised GRD has the slice of the last plain GRD. */
export function createSentinel1Source(): ProductSource {
  let untwinned: Slice | undefined;
  return (random, timeline) => {
    const type = pickWeighted(random, sliceTypes);
    const twinned = type.twin === 'second' && isRecent(untwinned, timeline) ? untwinned : undefined;
    const slice = twinned ?? drawSlice(random, type, timeline);
    if (type.twin !== undefined) untwinned = type.twin === 'first' ? slice : undefined;
    const { startMs, endMs } = slice.acquisition;
    return {
      name: `${slice.stem}${type.twin === 'second' ? '_COG' : ''}.SAFE`,
      folder: `Sentinel-1/SAR/${type.productType}`,
      contentLengthBytes: random.integer(...type.bytes),
      startMs,
      endMs,
      attributes: toAttributeValues(type, slice, timeline),
      footprint: toFootprint(swathRing(slice.acquisition, swath), 6),
      quicklook: type.quicklook,
      compressed: true,
    };
  };
}

function isRecent(slice: Slice | undefined, { processedMs }: Timeline): boolean {
  const ageMs = processedMs - (slice?.acquisition.endMs ?? 0);
  return ageMs > 20 * minuteMs && ageMs < dayMs;
}

function drawSlice(random: Random, type: SliceType, { publicationMs }: Timeline): Slice {
  const satellite = drawSatellite(random, sentinel1, publicationMs);
  const argumentDegrees = drawArgumentDegrees(random, arcs);
  const acquisition = latestAcquisition(satellite, {
    argumentDegrees,
    durationMs: type.durationMs,
    startsBeforeMs: publicationMs - random.integer(50 * minuteMs, 120 * minuteMs),
  });
  const { startMs, endMs, orbitNumber } = acquisition;
  const [, , firstId = 0, perOrbit = 9] = facts[satellite.serial] ?? [];
  const orbits = orbitNumber - satellite.reference.orbitNumber + argumentDegrees / 360;
  const datatakeId = firstId + Math.floor(orbits * perOrbit);
  const totalSlices = random.integer(2, 12);
  const [letters, channels] = drawPolarisation(random);
  const stem = [
    `S1${satellite.serial}_IW_${type.code}${letters}`,
    toNameTime(startMs),
    toNameTime(endMs),
    String(orbitNumber).padStart(6, '0'),
    upperHex(datatakeId, 6),
    upperHex(random.integer(0, 0xffff), 4),
  ].join('_');
  const sliceNumber = random.integer(1, totalSlices);
  return { acquisition, datatakeId, sliceNumber, totalSlices, channels, stem };
}

/** Most of the land is acquired in dual vertical polarisation. */
function drawPolarisation(random: Random): readonly [letters: string, channels: string] {
  if (random.chance(0.85)) return ['DV', 'VV&VH'];
  return random.chance(0.5) ? ['SV', 'VV'] : ['DH', 'HH&HV'];
}

function upperHex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}

function toAttributeValues(
  type: SliceType,
  { acquisition, datatakeId, sliceNumber, totalSlices, channels }: Slice,
  { processedMs }: Timeline,
): AttributeValues {
  const { satellite, orbitStartMs, startMs, endMs } = acquisition;
  const [center, configuration = 7] = facts[satellite.serial] ?? [];
  const plain = type.twin !== 'second';
  const processed = type.level !== 'LEVEL0';
  return {
    origin: plain ? 'ESA' : 'CLOUDFERRO',
    datatakeID: datatakeId,
    timeliness: 'Fast-24h',
    cycleNumber: acquisition.cycleNumber,
    orbitNumber: acquisition.orbitNumber,
    sliceNumber,
    ...(plain && processed ? { totalSlices } : {}),
    productClass: 'S',
    ...(processed ? { processorName: 'Sentinel-1 IPF' } : {}),
    orbitDirection: acquisition.ascending ? 'ASCENDING' : 'DESCENDING',
    processingDate: toTimestamp(processedMs),
    operationalMode: 'IW',
    processingLevel: type.level,
    swathIdentifier: type.swaths,
    processingCenter: `S1 Production Service-${center}`,
    ...(processed ? { processorVersion: '004.02' } : {}),
    ...(plain
      ? { segmentStartTime: toTimestamp(startMs - (sliceNumber - 1) * sliceSpacingMs) }
      : {}),
    ...(plain && processed ? { sliceProductFlag: false } : {}),
    platformShortName: 'SENTINEL-1',
    ...(plain && processed ? { productComposition: 'Slice' } : {}),
    instrumentShortName: 'SAR',
    relativeOrbitNumber: acquisition.relativeOrbitNumber,
    polarisationChannels: channels,
    ...(processed ? {} : { productConsolidation: 'SLICE' }),
    platformSerialIdentifier: satellite.serial,
    ...(plain ? { instrumentConfigurationID: configuration } : {}),
    startTimeFromAscendingNode: startMs - orbitStartMs,
    completionTimeFromAscendingNode: endMs - orbitStartMs,
    productType: type.productType,
  };
}

interface OrbitFile {
  readonly weight: number;
  readonly productType: string;
  readonly bytes: readonly [min: number, max: number];
  /** Returns the validity of a file created at a time; all times in ms since 1970. */
  validity(createdMs: number, orbitMs: number): readonly [startMs: number, endMs: number];
}

const orbitFiles: Table<OrbitFile> = [
  {
    weight: 2,
    productType: 'AUX_RESORB',
    bytes: [5.8e5, 6e5],
    // Two orbits; published half an hour after the end of the second.
    validity: (createdMs, orbitMs) => {
      const endMs = createdMs - 0.6 * hourMs;
      return [endMs - 2 * orbitMs, endMs];
    },
  },
  {
    weight: 1,
    productType: 'AUX_POEORB',
    bytes: [4.4e6, 4.5e6],
    // One day plus an hour on either side; published three weeks later. Minus the 18 leap seconds of GPS time.
    validity: (createdMs) => {
      const dayStartMs = (Math.floor(createdMs / dayMs) - 20) * dayMs;
      return [dayStartMs - hourMs - 18_000, dayStartMs + 25 * hourMs - 18_000];
    },
  },
];

/** Creates an orbit file of Sentinel-1, which has no footprint. */
export const auxiliarySource: ProductSource = (random, { processedMs }) => {
  const file = pickWeighted(random, orbitFiles);
  const satellite = drawSatellite(random, sentinel1, processedMs);
  const validity = file.validity(processedMs, periodMs(satellite));
  const [startMs = 0, endMs = 0] = validity.map((atMs) => Math.floor(atMs / 1000) * 1000);
  const times = `${toNameTime(processedMs)}_V${toNameTime(startMs)}_${toNameTime(endMs)}`;
  return {
    name: `S1${satellite.serial}_OPER_${file.productType}_OPOD_${times}.EOF`,
    folder: `Sentinel-1/AUX/${file.productType}`,
    contentLengthBytes: random.integer(...file.bytes),
    startMs,
    endMs,
    attributes: {
      origin: 'ESA',
      platformShortName: 'SENTINEL-1',
      instrumentShortName: 'SAR',
      platformSerialIdentifier: satellite.serial,
      productType: file.productType,
    },
    footprint: null,
  };
};
