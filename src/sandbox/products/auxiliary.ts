/** Makes Sentinel-1's auxiliary files: orbits of the satellite, which have no place on the ground. */
import { pickWeighted, type Table } from './choice.ts';
import { periodMs } from './orbit.ts';
import type { ProductSource } from './record.ts';
import { drawSatellite, sentinel1 } from './satellites.ts';
import { toNameTime } from './timestamp.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

interface OrbitFile {
  readonly weight: number;
  readonly productType: string;
  readonly bytes: readonly [min: number, max: number];
  /** First and last time that a file made at a given time describes; all in ms since 1970. */
  validity(createdMs: number, orbitMs: number): readonly [startMs: number, endMs: number];
}

const orbitFiles: Table<OrbitFile> = [
  {
    weight: 2,
    productType: 'AUX_RESORB',
    bytes: [5.8e5, 6e5],
    // Two orbits, half an hour after the second has ended.
    validity: (createdMs, orbitMs) => {
      const endMs = createdMs - 0.6 * hourMs;
      return [endMs - 2 * orbitMs, endMs];
    },
  },
  {
    weight: 1,
    productType: 'AUX_POEORB',
    bytes: [4.4e6, 4.5e6],
    // One day with an hour to either side, three weeks later; less the 18 leap seconds of GPS time.
    validity: (createdMs) => {
      const dayStartMs = (Math.floor(createdMs / dayMs) - 20) * dayMs;
      return [dayStartMs - hourMs - 18_000, dayStartMs + 25 * hourMs - 18_000];
    },
  },
];

/** Makes an orbit file of Sentinel-1. */
export const auxiliarySource: ProductSource = (random, { processedMs }) => {
  const file = pickWeighted(random, orbitFiles);
  const satellite = drawSatellite(random, sentinel1, processedMs);
  const [firstMs, lastMs] = file.validity(processedMs, periodMs(satellite));
  const [startMs, endMs] = [toWholeSecondMs(firstMs), toWholeSecondMs(lastMs)];
  const created = toNameTime(processedMs);
  const validity = `V${toNameTime(startMs)}_${toNameTime(endMs)}`;
  return {
    name: `S1${satellite.serial}_OPER_${file.productType}_OPOD_${created}_${validity}.EOF`,
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
    quicklook: false,
    compressed: false,
  };
};

function toWholeSecondMs(atMs: number): number {
  return Math.floor(atMs / 1000) * 1000;
}
