/** Creates Sentinel-3 products: frames of the colour and temperature imagers, tracks of the altimeter. */
import type { Random } from '../clock.ts';
import {
  type Acquisition,
  drawSatellite,
  latestAcquisition,
  periodMs,
  pickWeighted,
  type Satellite,
  type Swath,
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

// Mission figures published by ESA; reference orbits from real products. 814.5 km; 10:00 at the descending node.
const orbit = {
  inclinationDegrees: 98.65,
  cycleDays: 27,
  cycleOrbits: 385,
  ascendingNodeHours: 22,
  orbitStartDegrees: 0,
} as const;
export const sentinel3: Table<Satellite> = [
  {
    ...orbit,
    serial: 'A',
    reference: { orbitNumber: 28541, startMs: Date.UTC(2021, 7, 10, 7, 33, 45, 279) },
    relativeOrbitOffset: 26,
    firstCycle: 1,
  },
  {
    ...orbit,
    serial: 'B',
    reference: { orbitNumber: 31107, startMs: Date.UTC(2024, 3, 15, 7, 13, 29, 480) },
    relativeOrbitOffset: 112,
    firstCycle: 11,
  },
];

interface FrameType {
  /** Relative frequency of publication. */
  readonly weight: number;
  readonly productType: string;
  readonly instrument: 'OLCI' | 'SLSTR' | 'SRAL';
  readonly level: '1' | '2';
  readonly durationMs: number;
  /** Frames start at multiples of this after the ascending node. */
  readonly frameSpacingSeconds: number;
  /**
   * First and last frame of each part of the orbit. No frames beyond 76 degrees of latitude, where an outline
   * would span most longitudes or enclose the pole.
   */
  readonly frames: Table<readonly [first: number, last: number]>;
  /** True if the name contains the frame. */
  readonly framed: boolean;
  readonly swath: Swath;
  readonly bytes: readonly [min: number, max: number];
  readonly quicklook: boolean;
  readonly baselineCollection: string;
  /** Attributes with percentages of the surface, in order. */
  readonly covers: readonly string[];
  readonly cloudy: boolean;
}

// 3-minute daylight frames of the colour imager, 1270 km wide, tilted west to avoid sun glint.
const olci = {
  instrument: 'OLCI',
  durationMs: 180_000,
  frameSpacingSeconds: 180,
  frames: [[10, 22]],
  framed: true,
  swath: { leftKm: -335, rightKm: 935, alongSteps: 5, acrossSteps: 10 },
  quicklook: true,
} as const;

const coastCovers = ['coastalCover', 'salineWaterCover', 'tidalRegionCover'];

const frameTypes: Table<FrameType> = [
  {
    ...olci,
    weight: 30,
    productType: 'OL_1_EFR___',
    level: '1',
    bytes: [5.2e8, 8.5e8],
    baselineCollection: '004',
    covers: ['brightCover', ...coastCovers, 'freshInlandWaterCover'],
    cloudy: false,
  },
  {
    ...olci,
    weight: 25,
    productType: 'OL_2_LFR___',
    level: '2',
    bytes: [0.6e8, 2.4e8],
    baselineCollection: '003',
    covers: [...coastCovers, 'freshInlandWaterCover'],
    cloudy: true,
  },
  {
    ...olci,
    weight: 25,
    productType: 'SL_1_RBT___',
    instrument: 'SLSTR',
    level: '1',
    frames: [
      [0, 5],
      [11, 22],
      [28, 32],
    ],
    swath: { leftKm: -470, rightKm: 950, alongSteps: 5, acrossSteps: 10 },
    bytes: [3.5e8, 6.5e8],
    baselineCollection: '004',
    covers: ['landCover', 'coastalCover', 'snowOrIceCover', 'salineWaterCover', 'tidalRegionCover'],
    cloudy: true,
  },
  {
    weight: 20,
    productType: 'SR_2_LAN___',
    instrument: 'SRAL',
    level: '2',
    durationMs: 600_000,
    frameSpacingSeconds: 1,
    frames: [
      [0, 570],
      [1852, 3600],
      [4881, 5440],
    ],
    framed: false,
    // The altimeter observes a few kilometres at nadir.
    swath: { leftKm: -2, rightKm: 2, alongSteps: 15, acrossSteps: 1 },
    bytes: [1.5e7, 6e7],
    quicklook: false,
    baselineCollection: '005',
    covers: ['landCover', 'closedSeaCover', 'openOceanCover', 'continentalIceCover'],
    cloudy: false,
  },
];

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const nearRealTimeKeptDays = 15;

// Near real time within three hours of sensing, otherwise one or two days later with better inputs.
const delaysMs = {
  NR: [65 * minuteMs, 75 * minuteMs],
  NT: [22 * hourMs, 40 * hourMs],
} as const;

/** Creates a product of Sentinel-3. */
export const sentinel3Source: ProductSource = (random, timeline) => {
  const type = pickWeighted(random, frameTypes);
  const satellite = drawSatellite(random, sentinel3, timeline.publicationMs);
  const timeliness = random.chance(0.75) ? 'NR' : 'NT';
  const frameSeconds = random.integer(...random.pick(type.frames)) * type.frameSpacingSeconds;
  const acquisition = latestAcquisition(satellite, {
    argumentDegrees: (360_000 * frameSeconds) / periodMs(satellite),
    durationMs: type.durationMs,
    startsBeforeMs: timeline.publicationMs - random.integer(...delaysMs[timeliness]),
  });
  const frame = type.framed ? String(frameSeconds).padStart(4, '0') : '____';
  const center = satellite.serial === 'A' ? 'PS1' : 'ESA';
  const name = [
    `S3${satellite.serial}_${type.productType}`,
    toNameTime(acquisition.startMs),
    toNameTime(acquisition.endMs),
    toNameTime(timeline.processedMs),
    // The last line is sensed just before the end, so 180 s are written as 0179.
    String(type.durationMs / 1000 - 1).padStart(4, '0'),
    String(acquisition.cycleNumber).padStart(3, '0'),
    String(acquisition.relativeOrbitNumber).padStart(3, '0'),
    frame,
    `${center}_O_${timeliness}_${type.baselineCollection}`,
  ].join('_');
  return {
    name: `${name}.SEN3`,
    folder: `Sentinel-3/${type.instrument}/${type.productType}`,
    contentLengthBytes: random.integer(...type.bytes),
    startMs: acquisition.startMs,
    endMs: acquisition.endMs,
    attributes: toAttributeValues(random, type, acquisition, timeliness, timeline),
    footprint: toFootprint(swathRing(acquisition, type.swath), 4),
    quicklook: type.quicklook,
    ...(timeliness === 'NR' ? { keptDays: nearRealTimeKeptDays } : {}),
  };
};

function toAttributeValues(
  random: Random,
  type: FrameType,
  acquisition: Acquisition,
  timeliness: string,
  { processedMs }: Timeline,
): AttributeValues {
  const { orbitNumber, relativeOrbitNumber, satellite } = acquisition;
  const orbitDirection = acquisition.ascending ? 'ASCENDING' : 'DESCENDING';
  const covers = type.covers.map((name) => [name, random.integer(0, 60)]);
  return {
    timeliness,
    ...Object.fromEntries(covers),
    ...(type.cloudy && { cloudCover: random.between(0, 100) }),
    cycleNumber: acquisition.cycleNumber,
    orbitNumber,
    processorName: 'PUG',
    orbitDirection,
    processingDate: toTimestamp(processedMs),
    operationalMode: 'Earth Observation',
    processingLevel: type.level,
    processorVersion: '03.52',
    ...(!type.framed && {
      lastOrbitNumber: orbitNumber,
      lastOrbitDirection: orbitDirection,
      lastRelativeOrbitNumber: relativeOrbitNumber,
    }),
    platformShortName: 'SENTINEL-3',
    baselineCollection: type.baselineCollection,
    instrumentShortName: type.instrument,
    relativeOrbitNumber,
    platformSerialIdentifier: satellite.serial,
    productType: type.productType,
  };
}
