/** Creates Sentinel-2 products: MGRS tiles with top-of-atmosphere (L1C) or surface (L2A) reflectance. */
import mgrs from 'mgrs';
import type { Random } from '../clock.ts';
import {
  type Acquisition,
  type Arc,
  clipRing,
  continuousRing,
  drawArgumentDegrees,
  drawSatellite,
  groundPoint,
  latestAcquisition,
  periodMs,
  type Ring,
  type Satellite,
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

// Mission figures published by ESA; reference orbits from real products. 786 km; 10:30 at the descending
// node. The records have no cycle number.
const orbit = {
  inclinationDegrees: 98.62,
  cycleDays: 10,
  cycleOrbits: 143,
  ascendingNodeHours: 22.5,
  orbitStartDegrees: 0,
  firstCycle: 0,
} as const;
export const sentinel2: Table<Satellite> = [
  {
    ...orbit,
    serial: 'B',
    reference: { orbitNumber: 39345, startMs: Date.UTC(2024, 8, 17, 10, 40, 51) },
    relativeOrbitOffset: -27,
  },
  {
    ...orbit,
    serial: 'C',
    reference: { orbitNumber: 2538, startMs: Date.UTC(2025, 2, 1, 10, 40, 51) },
    relativeOrbitOffset: 29,
  },
];

/** A tile of one data take. */
interface Tile {
  readonly acquisition: Acquisition;
  /** Start of the data take, part of the names of all its tiles. */
  readonly datatakeMs: number;
  /** Zone (two digits), band and 100 km square, e.g. `28PHQ`. */
  readonly tileId: string;
}

// Daylight half of the orbit (descending), from 79 degrees north to 55 south.
const arcs: Table<Arc> = [[97.5, 236]];
const halfSwathKm = 145;
const datatakesPerOrbit = 12;
const baseline = '05.11';
const minuteMs = 60_000;

// South-west, south-east, north-east and north-west corner of a square: easting and northing in metres.
const corners = ['0000000000', '9999900000', '9999999999', '0000099999'];

/** Creates a tile of Sentinel-2. */
export const sentinel2Source: ProductSource = (random, timeline) => {
  const level = random.chance(0.5) ? 'L1C' : 'L2A';
  const argumentDegrees = drawArgumentDegrees(random, arcs);
  const satellite = drawSatellite(random, sentinel2, timeline.publicationMs);
  const acquisition = latestAcquisition(satellite, {
    argumentDegrees,
    durationMs: 0,
    startsBeforeMs: timeline.publicationMs - random.integer(125 * minuteMs, 230 * minuteMs),
  });
  // 5 km inside the swath edges, so that the visible part of the tile is not too narrow.
  const acrossKm = random.between(5 - halfSwathKm, halfSwathKm - 5);
  const seen = groundPoint(satellite, acquisition.startMs, acrossKm);
  const tile = {
    acquisition,
    datatakeMs: datatakeStartMs(acquisition),
    tileId: mgrs.forward([...seen], 0).padStart(5, '0'),
  };
  return {
    name: `${productName(tile, level, timeline)}.SAFE`,
    folder: `Sentinel-2/MSI/${level}`,
    contentLengthBytes: random.integer(40e6, 1.1e9),
    // In the real catalogue, start and end of a tile are both the start of the data take.
    startMs: tile.datatakeMs,
    endMs: tile.datatakeMs,
    attributes: toAttributeValues(random, tile, level, timeline),
    footprint: toFootprint(visiblePart(tile), 12),
    quicklook: true,
  };
};

/** Data takes start at fixed positions of the orbit, at a whole second plus 24 ms. */
function datatakeStartMs({ satellite, orbitStartMs, startMs }: Acquisition): number {
  const spacingMs = periodMs(satellite) / datatakesPerOrbit;
  const number = Math.floor((startMs - orbitStartMs) / spacingMs);
  return Math.floor((orbitStartMs + number * spacingMs) / 1000) * 1000 + 24;
}

function productName(
  { acquisition, datatakeMs, tileId }: Tile,
  level: string,
  { processedMs }: Timeline,
): string {
  return [
    `S2${acquisition.satellite.serial}_MSI${level}`,
    toNameTime(datatakeMs),
    `N${baseline.replace('.', '')}`,
    `R${String(acquisition.relativeOrbitNumber).padStart(3, '0')}`,
    `T${tileId}`,
    toNameTime(processedMs),
  ].join('_');
}

/** Returns the tile's square clipped to the swath. */
function visiblePart({ acquisition: { satellite, startMs }, tileId }: Tile): Ring {
  const center = groundPoint(satellite, startMs, 0);
  const [, ...square] = continuousRing([
    center,
    ...corners.map((corner) => mgrs.toPoint(tileId + corner)),
  ]);
  const insideOf = (edgeKm: number, ring: Ring) => {
    const behind = groundPoint(satellite, startMs - 15_000, edgeKm);
    const ahead = groundPoint(satellite, startMs + 15_000, edgeKm);
    const [, [fromX, fromY] = center, [toX, toY] = center] = continuousRing([
      center,
      behind,
      ahead,
    ]);
    const handed = Math.sign(edgeKm);
    return clipRing(
      ring,
      ([x, y]) => handed * ((toX - fromX) * (y - fromY) - (toY - fromY) * (x - fromX)),
    );
  };
  return insideOf(halfSwathKm, insideOf(-halfSwathKm, square));
}

function toAttributeValues(
  random: Random,
  { acquisition, datatakeMs, tileId }: Tile,
  level: 'L1C' | 'L2A',
  { processedMs, originMs }: Timeline,
): AttributeValues {
  const { satellite, orbitNumber, relativeOrbitNumber, startMs } = acquisition;
  const orbitDigits = String(orbitNumber).padStart(6, '0');
  const processed = toNameTime(processedMs);
  const file = (kind: string, rest: string) =>
    `S2${satellite.serial}_OPER_MSI_${level}_${kind}_2${satellite.serial}PS_${processed}_${rest}_N${baseline}`;
  const datastripId = file('DS', `S${toNameTime(startMs)}`);
  const granuleIdentifier = file('TL', `A${orbitDigits}_T${tileId}`);
  const trueColour = file('TC', `A${orbitDigits}_T${tileId}`);
  const originSecond = `${new Date(originMs).toISOString().slice(0, 19)}Z`;
  const isL1C = level === 'L1C';
  return {
    origin: 'ESA',
    tileId,
    cloudCover: random.between(0, 100),
    datastripId,
    orbitNumber,
    ...(isL1C && { sourceProduct: `${granuleIdentifier},${datastripId},${trueColour}.jp2` }),
    processingDate: toTimestamp(Math.floor(processedMs / 1000) * 1000),
    productGroupId: `GS2${satellite.serial}_${toNameTime(datatakeMs)}_${orbitDigits}_N${baseline}`,
    operationalMode: 'INS-NOBS',
    processingLevel: `S2MSI${level.slice(1)}`,
    processorVersion: baseline,
    granuleIdentifier,
    platformShortName: 'SENTINEL-2',
    instrumentShortName: 'MSI',
    relativeOrbitNumber,
    ...(isL1C && { sourceProductOriginDate: Array(3).fill(originSecond).join(',') }),
    platformSerialIdentifier: satellite.serial,
    productType: `S2MSI${level.slice(1)}`,
  };
}
