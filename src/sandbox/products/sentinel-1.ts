/** Makes Sentinel-1 products: slices of IW data takes as SLC, GRD, cloud-optimised GRD, raw and ocean. */
import type { Random } from '../random.ts';
import type { AttributeValues } from './attributes.ts';
import { type Arc, drawArgumentDegrees, pickWeighted, type Table } from './choice.ts';
import { swathRing, toFootprint } from './footprint.ts';
import { type Acquisition, latestAcquisition } from './orbit.ts';
import type { ProductSource, Timeline } from './record.ts';
import { drawSatellite, sentinel1 } from './satellites.ts';
import { type SliceType, sliceTypes } from './sentinel-1-slice-types.ts';
import { toNameTime, toTimestamp } from './timestamp.ts';

/** One slice of a data take, from which products of several types can be made. */
interface Slice {
  readonly acquisition: Acquisition;
  readonly datatakeId: number;
  readonly sliceNumber: number;
  readonly totalSlices: number;
  /** Letters of the name, and the channels they stand for. */
  readonly polarisation: readonly [letters: string, channels: string];
  /** The name without `_COG` and `.SAFE`. */
  readonly stem: string;
}

// The data take of the reference orbit and how many an orbit has on average, read off real products.
const datatakes: Readonly<Record<string, { id: number; orbitNumber: number; perOrbit: number }>> = {
  A: { id: 0x7d772, orbitNumber: 62567, perOrbit: 9.79 },
  C: { id: 0xb654, orbitNumber: 5702, perOrbit: 8.74 },
};
const centers: Readonly<Record<string, string>> = { A: 'SERCO', C: 'WERUM' };
const configurations: Readonly<Record<string, number>> = { A: 7, C: 5 };

// Land and coasts between the polar caps, by day and by night.
const arcs: Table<Arc> = [
  [0, 68],
  [112, 248],
  [292, 356],
];

// The antenna looks to the right: incidence of 29 to 46 degrees is 340 to 590 km beside the track.
const swath = { leftKm: 340, rightKm: 590, alongSteps: 1, acrossSteps: 1 };

const minuteMs = 60_000;
const sliceSpacingMs = 25_000;
const oldestTwinMs = 24 * 60 * minuteMs;

/** Creates the source of Sentinel-1 products; a cloud-optimised GRD is the twin of the last plain one. */
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
  return ageMs > 20 * minuteMs && ageMs < oldestTwinMs;
}

function drawSlice(random: Random, type: SliceType, { publicationMs }: Timeline): Slice {
  const satellite = drawSatellite(random, sentinel1, publicationMs);
  const argumentDegrees = drawArgumentDegrees(random, arcs);
  const acquisition = latestAcquisition(satellite, {
    argumentDegrees,
    durationMs: type.durationMs,
    startsBeforeMs: publicationMs - random.integer(50 * minuteMs, 120 * minuteMs),
  });
  const known = datatakes[satellite.serial] ?? { id: 0, orbitNumber: 0, perOrbit: 9 };
  const orbits = acquisition.orbitNumber - known.orbitNumber + argumentDegrees / 360;
  const datatakeId = known.id + Math.floor(orbits * known.perOrbit);
  const totalSlices = random.integer(2, 12);
  const polarisation = drawPolarisation(random);
  const { startMs, endMs, orbitNumber } = acquisition;
  const stem = [
    `S1${satellite.serial}_IW_${type.code}${polarisation[0]}`,
    toNameTime(startMs),
    toNameTime(endMs),
    String(orbitNumber).padStart(6, '0'),
    upperHex(datatakeId, 6),
    upperHex(random.integer(0, 0xffff), 4),
  ].join('_');
  const sliceNumber = random.integer(1, totalSlices);
  return { acquisition, datatakeId, sliceNumber, totalSlices, polarisation, stem };
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
  { acquisition, datatakeId, sliceNumber, totalSlices, polarisation }: Slice,
  { processedMs }: Timeline,
): AttributeValues {
  const { satellite, orbitStartMs, startMs, endMs } = acquisition;
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
    processingCenter: `S1 Production Service-${centers[satellite.serial]}`,
    ...(processed ? { processorVersion: '004.02' } : {}),
    ...(plain
      ? { segmentStartTime: toTimestamp(startMs - (sliceNumber - 1) * sliceSpacingMs) }
      : {}),
    ...(plain && processed ? { sliceProductFlag: false } : {}),
    platformShortName: 'SENTINEL-1',
    ...(plain && processed ? { productComposition: 'Slice' } : {}),
    instrumentShortName: 'SAR',
    relativeOrbitNumber: acquisition.relativeOrbitNumber,
    polarisationChannels: polarisation[1],
    ...(processed ? {} : { productConsolidation: 'SLICE' }),
    platformSerialIdentifier: satellite.serial,
    ...(plain ? { instrumentConfigurationID: configurations[satellite.serial] ?? 7 } : {}),
    startTimeFromAscendingNode: startMs - orbitStartMs,
    completionTimeFromAscendingNode: endMs - orbitStartMs,
    productType: type.productType,
  };
}
