/** Makes Sentinel-3 products: frames of the colour and temperature imagers, stretches of the altimeter. */
import type { Random } from '../random.ts';
import type { AttributeValues } from './attributes.ts';
import { pickWeighted } from './choice.ts';
import { swathRing, toFootprint } from './footprint.ts';
import { type Acquisition, latestAcquisition, periodMs } from './orbit.ts';
import type { ProductSource, Timeline } from './record.ts';
import { drawSatellite, sentinel3 } from './satellites.ts';
import { type FrameType, frameTypes } from './sentinel-3-frame-types.ts';
import { toNameTime, toTimestamp } from './timestamp.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const nearRealTimeKeptDays = 15;

// Near real time within three hours of sensing, otherwise a day or two later with better inputs.
const timelinesses = {
  NR: { minDelayMs: 65 * minuteMs, maxDelayMs: 75 * minuteMs },
  NT: { minDelayMs: 22 * hourMs, maxDelayMs: 40 * hourMs },
};

/** Makes a product of Sentinel-3. */
export const sentinel3Source: ProductSource = (random, timeline) => {
  const type = pickWeighted(random, frameTypes);
  const satellite = drawSatellite(random, sentinel3, timeline.publicationMs);
  const timeliness = random.chance(0.75) ? 'NR' : 'NT';
  const { minDelayMs, maxDelayMs } = timelinesses[timeliness];
  const frameSeconds = random.integer(...random.pick(type.frames)) * type.frameSpacingSeconds;
  const acquisition = latestAcquisition(satellite, {
    argumentDegrees: (360_000 * frameSeconds) / periodMs(satellite),
    durationMs: type.durationMs,
    startsBeforeMs: timeline.publicationMs - random.integer(minDelayMs, maxDelayMs),
  });
  const frame = type.framed ? String(frameSeconds).padStart(4, '0') : '____';
  const center = satellite.serial === 'A' ? 'PS1' : 'ESA';
  const name = [
    `S3${satellite.serial}_${type.productType}`,
    toNameTime(acquisition.startMs),
    toNameTime(acquisition.endMs),
    toNameTime(timeline.processedMs),
    // The last line is sensed just short of the end, so that 180 s are written as 0179.
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
    compressed: false,
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
  const last = {
    lastOrbitNumber: orbitNumber,
    lastOrbitDirection: orbitDirection,
    lastRelativeOrbitNumber: relativeOrbitNumber,
  };
  const covers = type.covers.map((name) => [name, random.integer(0, 60)]);
  return {
    timeliness,
    ...Object.fromEntries(covers),
    ...(type.cloudy ? { cloudCover: random.between(0, 100) } : {}),
    cycleNumber: acquisition.cycleNumber,
    orbitNumber,
    processorName: type.processorName,
    orbitDirection,
    processingDate: toTimestamp(processedMs),
    operationalMode: 'Earth Observation',
    processingLevel: type.level,
    processorVersion: type.processorVersion,
    ...(type.framed ? {} : last),
    platformShortName: 'SENTINEL-3',
    baselineCollection: type.baselineCollection,
    instrumentShortName: type.instrument,
    relativeOrbitNumber,
    platformSerialIdentifier: satellite.serial,
    productType: type.productType,
  };
}
