/** Creates Sentinel-5P products: near-real-time trace gases in 5-minute granules, methane per orbit. */
import {
  type Arc,
  drawArgumentDegrees,
  latestAcquisition,
  periodMs,
  pickWeighted,
  type Satellite,
  type Swath,
  swathRing,
  type Table,
  toFootprint,
} from './orbit.ts';
import { type AttributeValues, type ProductSource, toNameTime, toTimestamp } from './record.ts';

/** Mission figures published by ESA: 824 km; 13:30 at the ascending node. Orbit numbers increase on the night side. */
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

interface GasType {
  readonly weight: number;
  readonly productType: string;
  readonly stream: 'NRTI' | 'OFFL';
  readonly processorVersion: string;
  readonly processorName: string;
  /** The last part of the product's DOI. */
  readonly doi: string;
  readonly bytes: readonly [min: number, max: number];
}

// Processors of two institutes. Versions as in the name, two digits per part.
const dutch = { stream: 'NRTI', processorName: 'TROPNLL2DP', processorVersion: '020800' } as const;
const german = { stream: 'NRTI', processorName: 'UPAS', processorVersion: '020701' } as const;
const methane = { ...dutch, stream: 'OFFL' } as const;

const gasTypes: Table<GasType> = [
  { ...dutch, weight: 30, productType: 'L2__NO2___', doi: '9bnp8q8', bytes: [3e7, 5e7] },
  { ...dutch, weight: 20, productType: 'L2__AER_AI', doi: '3dgz66p', bytes: [1e7, 2e7] },
  { ...dutch, weight: 15, productType: 'L2__CO____', doi: 'bj3nry0', bytes: [1e7, 3e7] },
  { ...german, weight: 15, productType: 'L2__O3____', doi: 'ft13p57', bytes: [1e7, 3e7] },
  { ...german, weight: 10, productType: 'L2__SO2___', doi: '74eidii', bytes: [3e7, 6e7] },
  // The retrieval of methane is too slow for near real time.
  { ...methane, weight: 10, productType: 'L2__CH4___', doi: '3lcdqiv', bytes: [3e8, 6e8] },
];

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const collection = '03';

interface Stream {
  readonly mode: string;
  /** Range of product starts, degrees from the ascending node. */
  readonly arc: Arc;
  readonly durationMs: number;
  /** From sensing to publication. */
  readonly delayMs: readonly [min: number, max: number];
  readonly steps: Pick<Swath, 'alongSteps' | 'acrossSteps'>;
}

// Sunlit part of the orbit where the outline of the 2600 km swath does not reach the poles.
const sunlit = { fromDegrees: -60, toDegrees: 60 };
const swath = { leftKm: -1300, rightKm: 1300 };

const streams: Readonly<Record<GasType['stream'], Stream>> = {
  NRTI: {
    mode: 'Near real-time',
    // A granule of 5 minutes is 17.7 degrees long.
    arc: [sunlit.fromDegrees, sunlit.toDegrees - 18],
    durationMs: 5 * minuteMs,
    delayMs: [65 * minuteMs, 75 * minuteMs],
    steps: { alongSteps: 4, acrossSteps: 12 },
  },
  OFFL: {
    mode: 'Offline',
    arc: [sentinel5p.orbitStartDegrees, sentinel5p.orbitStartDegrees],
    durationMs: Math.floor(periodMs(sentinel5p)),
    delayMs: [2 * dayMs, 6 * dayMs],
    steps: { alongSteps: 14, acrossSteps: 4 },
  },
};

/** Creates a product of Sentinel-5P. */
export const sentinel5pSource: ProductSource = (random, { publicationMs, processedMs }) => {
  const type = pickWeighted(random, gasTypes);
  const { mode, arc, durationMs, delayMs, steps } = streams[type.stream];
  const { orbitNumber, startMs, endMs } = latestAcquisition(sentinel5p, {
    argumentDegrees: drawArgumentDegrees(random, [arc]),
    durationMs,
    startsBeforeMs: publicationMs - random.integer(...delayMs),
  });
  const identifier = [
    `S5P_${type.stream}_${type.productType}`,
    toNameTime(startMs),
    toNameTime(endMs),
    String(orbitNumber).padStart(5, '0'),
    collection,
    type.processorVersion,
    toNameTime(processedMs),
  ].join('_');
  const seen = type.stream === 'OFFL' ? sunlitPart(startMs) : { startMs, endMs };
  const ring = swathRing({ satellite: sentinel5p, ...seen }, { ...swath, ...steps });
  return {
    name: `${identifier}.nc`,
    folder: `Sentinel-5P/TROPOMI/${type.productType}`,
    contentLengthBytes: random.integer(...type.bytes),
    startMs,
    endMs,
    attributes: {
      ...gasAttributes(type),
      identifier,
      orbitNumber,
      processingDate: toTimestamp(processedMs),
      processingMode: mode,
      productType: type.productType,
    },
    footprint: toFootprint(ring, 4),
  };
};

/** Returns the attributes that are constant for a type. */
function gasAttributes(type: GasType): AttributeValues {
  return {
    doi: `10.5270/S5P-${type.doi}`,
    productClass: type.stream,
    processorName: type.processorName,
    qualityStatus: 'NOMINAL',
    acquisitionType: 'NOMINAL',
    processingLevel: 'L2',
    parentIdentifier: `urn:ogc:def:EOP:ESA:SENTINEL.S5P_TROP_${type.productType}`,
    processingCenter: 'PDGS-OP',
    processorVersion: type.processorVersion.replaceAll(/(..)(?=.)/g, '$1.'),
    platformShortName: 'SENTINEL-5P',
    baselineCollection: collection,
    instrumentShortName: 'TROPOMI',
  };
}

/** Returns the part of an orbit whose outline is published. */
function sunlitPart(orbitStartMs: number): { startMs: number; endMs: number } {
  const atMs = (degrees: number) =>
    orbitStartMs + ((degrees + sentinel5p.orbitStartDegrees) / 360) * periodMs(sentinel5p);
  return { startMs: atMs(sunlit.fromDegrees), endMs: atMs(sunlit.toDegrees) };
}
