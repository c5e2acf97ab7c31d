/** The products of the sandbox: a table of collections, with names and attributes in the real form. */
import type { Random } from '../clock.ts';
import { toNameTime, toTimestamp } from './record.ts';
import {
  type Pass,
  periodMs,
  type Satellite,
  type Swath,
  sentinel1,
  sentinel2,
  sentinel3,
  sentinel5p,
  type Table,
} from './track.ts';

/** Values by attribute name, in output order. */
type AttributeValues = Readonly<Record<string, string | number | boolean>>;

/** A product type of a collection. */
export interface ProductType {
  /** Relative frequency of publication, among all collections. */
  readonly weight: number;
  readonly productType: string;
  /** Parts of the orbit where sensing starts, degrees from the ascending node. */
  readonly arcs: Table<readonly [fromDegrees: number, toDegrees: number]>;
  /** Sensing starts at multiples of this after the ascending node (default: any time). */
  readonly frameSeconds?: number;
  readonly durationMs: number;
  /** From the start of sensing to publication; up to two orbits are added. */
  readonly delayMs: readonly [min: number, max: number];
  /** A swath, a square of the MGRS grid within it, or none. */
  readonly footprint: 'swath' | 'tile' | null;
  readonly swath: Swath;
  /** Share of the duration in the footprint (default: all). */
  readonly seen?: readonly [from: number, to: number];
  readonly bytes: readonly [min: number, max: number];
  readonly quicklook: boolean;
  /** True if the product is also offered as an archive. */
  readonly archive?: boolean;
  /** Time from publication to eviction (default: unlimited). */
  readonly keptDays?: number;
  /** Parts of names and attributes with a meaning for one collection. */
  readonly notes: Readonly<Record<string, string>>;
}

/** A product while it is generated. Times are whole ms since 1970. */
export interface Scene extends Pass {
  readonly type: ProductType;
  readonly endMs: number;
  readonly processedMs: number;
  readonly originMs: number;
  readonly publicationMs: number;
  readonly tile: string;
  readonly random: Random;
}

export interface Collection {
  /** Begin of the path below `/eodata/`. */
  readonly folder: string;
  readonly decimals: number;
  readonly satellites: Table<Satellite>;
  readonly types: Table<ProductType>;
  readonly name: (scene: Scene) => string;
  /** Without beginningDateTime and endingDateTime, which all products have. */
  readonly attributes: (scene: Scene) => AttributeValues;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

const digits = (value: number, count: number) => String(value).padStart(count, '0');
const upperHex = (value: number, count: number) =>
  value.toString(16).toUpperCase().padStart(count, '0');
const direction = ({ ascending }: Scene) => (ascending ? 'ASCENDING' : 'DESCENDING');

/** Processing centre, instrument configuration, and data takes: that of the reference orbit, and number per orbit. */
const radarFacts: Readonly<Record<string, readonly [string, number, number, number]>> = {
  A: ['SERCO', 7, 0x7d772, 9.79],
  C: ['WERUM', 5, 0xb654, 8.74],
};

const slice = {
  // Land and coasts between the polar caps, by day and by night.
  arcs: [
    [0, 68],
    [112, 248],
    [292, 356],
  ] as Table<[number, number]>,
  durationMs: 24_998,
  delayMs: [50 * minuteMs, 120 * minuteMs],
  footprint: 'swath',
  // The antenna looks to the right: incidence of 29 to 46 degrees.
  swath: { leftKm: 340, rightKm: 590, steps: [1, 1] },
  quicklook: true,
  archive: true,
} as const;

function datatakeOf({ satellite, orbit, startMs, nodeMs }: Scene): number {
  const [, , first = 0, perOrbit = 0] = radarFacts[satellite.serial] ?? [];
  const orbits = orbit - satellite.reference.orbit + (startMs - nodeMs) / periodMs(satellite);
  return first + Math.floor(orbits * perOrbit);
}

const sentinel1Slices: Collection = {
  ...{ folder: 'Sentinel-1/SAR', decimals: 6, satellites: sentinel1 },
  types: [
    {
      ...{ ...slice, weight: 8, productType: 'IW_GRDH_1S', bytes: [1.6e9, 2.1e9] },
      notes: { code: 'GRDH', swaths: 'IW', origin: 'ESA', form: '' },
    },
    {
      ...{ ...slice, weight: 5, productType: 'IW_GRDH_1S-COG', bytes: [0.6e9, 1.2e9] },
      notes: { code: 'GRDH', swaths: 'IW', origin: 'CLOUDFERRO', form: '_COG' },
    },
    {
      ...{ ...slice, weight: 5, productType: 'IW_SLC__1S', bytes: [6.9e9, 8.4e9] },
      notes: { code: 'SLC_', swaths: 'IW1 IW2 IW3', origin: 'ESA', form: '' },
    },
  ],
  name: (scene) => {
    const { satellite, type, startMs, endMs, orbit, random } = scene;
    const times = `${toNameTime(startMs)}_${toNameTime(endMs)}_${digits(orbit, 6)}`;
    const ids = `${upperHex(datatakeOf(scene), 6)}_${upperHex(random.integer(0, 0xffff), 4)}`;
    const { code, form } = type.notes;
    return `S1${satellite.serial}_IW_${code}_1SDV_${times}_${ids}${form}.SAFE`;
  },
  attributes: (scene) => {
    const { satellite, type, startMs, endMs, nodeMs, random } = scene;
    const [center, configuration = 0] = radarFacts[satellite.serial] ?? [];
    const sliceNumber = random.integer(1, 9);
    return {
      origin: type.notes.origin ?? '',
      datatakeID: datatakeOf(scene),
      timeliness: 'Fast-24h',
      cycleNumber: scene.cycle,
      orbitNumber: scene.orbit,
      sliceNumber,
      totalSlices: sliceNumber + random.integer(0, 5),
      productClass: 'S',
      processorName: 'Sentinel-1 IPF',
      orbitDirection: direction(scene),
      processingDate: toTimestamp(scene.processedMs),
      operationalMode: 'IW',
      processingLevel: 'LEVEL1',
      swathIdentifier: type.notes.swaths ?? '',
      processingCenter: `S1 Production Service-${center}`,
      processorVersion: '004.02',
      segmentStartTime: toTimestamp(startMs - (sliceNumber - 1) * 25_000),
      sliceProductFlag: false,
      platformShortName: 'SENTINEL-1',
      productComposition: 'Slice',
      instrumentShortName: 'SAR',
      relativeOrbitNumber: scene.relativeOrbit,
      polarisationChannels: 'VV&VH',
      platformSerialIdentifier: satellite.serial,
      instrumentConfigurationID: configuration,
      startTimeFromAscendingNode: startMs - nodeMs,
      completionTimeFromAscendingNode: endMs - nodeMs,
      productType: type.productType,
    };
  },
};

const baseline = '05.11';
const tile = {
  // The daylight half, from 79 degrees north to 55 south.
  arcs: [[97.5, 236]] as Table<[number, number]>,
  durationMs: 0,
  delayMs: [125 * minuteMs, 230 * minuteMs],
  footprint: 'tile',
  // 5 km inside the edges, so that a good part of the tile is visible.
  swath: { leftKm: -140, rightKm: 140, steps: [1, 1] },
  bytes: [40e6, 1.1e9],
  quicklook: true,
} as const;

const sentinel2Tiles: Collection = {
  ...{ folder: 'Sentinel-2/MSI', decimals: 9, satellites: sentinel2 },
  types: [
    { ...tile, weight: 28, productType: 'S2MSI1C', notes: { level: 'L1C' } },
    { ...tile, weight: 28, productType: 'S2MSI2A', notes: { level: 'L2A' } },
  ],
  name: ({ satellite, type, startMs, relativeOrbit, tile: square, processedMs }) => {
    const orbit = `N${baseline.replace('.', '')}_R${digits(relativeOrbit, 3)}`;
    const sensed = `S2${satellite.serial}_MSI${type.notes.level}_${toNameTime(startMs)}`;
    return `${sensed}_${orbit}_T${square}_${toNameTime(processedMs)}.SAFE`;
  },
  attributes: (scene) => {
    const { type, startMs, tile: square, processedMs, originMs } = scene;
    const { serial } = scene.satellite;
    const [level, orbit] = [type.notes.level, digits(scene.orbit, 6)];
    const file = (kind: string, rest: string) =>
      `S2${serial}_OPER_MSI_${level}_${kind}_2${serial}PS_${toNameTime(processedMs)}_${rest}_N${baseline}`;
    const datastripId = file('DS', `S${toNameTime(startMs)}`);
    // The swath is 2600 km wide, so outlines end at 60 degrees from the node.
    const granuleIdentifier = file('TL', `A${orbit}_T${square}`);
    const origin = `${new Date(originMs).toISOString().slice(0, 19)}Z`;
    return {
      origin: 'ESA',
      tileId: square,
      cloudCover: scene.random.between(0, 100),
      datastripId,
      orbitNumber: scene.orbit,
      sourceProduct: `${granuleIdentifier},${datastripId}`,
      processingDate: toTimestamp(Math.floor(processedMs / 1000) * 1000),
      productGroupId: `GS2${serial}_${toNameTime(startMs)}_${orbit}_N${baseline}`,
      operationalMode: 'INS-NOBS',
      processingLevel: type.productType,
      processorVersion: baseline,
      granuleIdentifier,
      platformShortName: 'SENTINEL-2',
      instrumentShortName: 'MSI',
      relativeOrbitNumber: scene.relativeOrbit,
      sourceProductOriginDate: `${origin},${origin}`,
      platformSerialIdentifier: serial,
      productType: type.productType,
    };
  },
};

const frame = {
  durationMs: 180_000,
  frameSeconds: 180,
  // Near real time: within three hours of sensing.
  delayMs: [65 * minuteMs, 75 * minuteMs],
  footprint: 'swath',
  keptDays: 15,
} as const;

// No footprints beyond 76 degrees of latitude, where an outline would span most longitudes or enclose the pole.
const sentinel3Frames: Collection = {
  ...{ folder: 'Sentinel-3', decimals: 4, satellites: sentinel3 },
  types: [
    {
      ...{ ...frame, weight: 5, productType: 'OL_1_EFR___', bytes: [5.2e8, 8.5e8] },
      // Tilted west to avoid sun glint.
      ...{ arcs: [[107, 235]], swath: { leftKm: -335, rightKm: 935, steps: [5, 10] } },
      quicklook: true,
      notes: {
        ...{ instrument: 'OLCI', level: '1', collection: '004' },
        covers: 'brightCover coastalCover salineWaterCover tidalRegionCover freshInlandWaterCover',
      },
    },
    {
      ...{ ...frame, weight: 3, productType: 'SR_2_LAN___', bytes: [1.5e7, 6e7] },
      ...{ durationMs: 600_000, frameSeconds: 1, delayMs: [22 * hourMs, 40 * hourMs] },
      // The altimeter observes a few kilometres at nadir.
      ...{
        arcs: [
          [0, 34],
          [110, 214],
          [290, 323],
        ],
      },
      ...{ swath: { leftKm: -2, rightKm: 2, steps: [15, 1] }, quicklook: false },
      notes: {
        ...{ instrument: 'SRAL', level: '2', collection: '005' },
        covers: 'landCover closedSeaCover openOceanCover continentalIceCover',
      },
    },
  ],
  name: (scene) => {
    const { satellite, type, startMs, nodeMs } = scene;
    const isTrack = type.notes.instrument === 'SRAL';
    return `${[
      `S3${satellite.serial}_${type.productType}`,
      ...[startMs, scene.endMs, scene.processedMs].map(toNameTime),
      // The last line is sensed just before the end, so 180 s are written as 0179.
      digits(type.durationMs / 1000 - 1, 4),
      digits(scene.cycle, 3),
      digits(scene.relativeOrbit, 3),
      isTrack ? '____' : digits(Math.round((startMs - nodeMs) / 1000), 4),
      `ESA_O_${timelinessOf(scene)}_${type.notes.collection}`,
    ].join('_')}.SEN3`;
  },
  attributes: (scene) => {
    const { satellite, type, random } = scene;
    const { instrument = '', level = '', collection = '', covers = '' } = type.notes;
    const cover = (name: string) => [name, random.integer(0, 60)];
    return {
      timeliness: timelinessOf(scene),
      ...Object.fromEntries(covers.split(' ').map(cover)),
      cycleNumber: scene.cycle,
      orbitNumber: scene.orbit,
      processorName: 'PUG',
      orbitDirection: direction(scene),
      processingDate: toTimestamp(scene.processedMs),
      operationalMode: 'Earth Observation',
      processingLevel: level,
      processorVersion: '03.52',
      platformShortName: 'SENTINEL-3',
      baselineCollection: collection,
      instrumentShortName: instrument,
      relativeOrbitNumber: scene.relativeOrbit,
      platformSerialIdentifier: satellite.serial,
      productType: type.productType,
    };
  },
};

function timelinessOf({ type }: Scene): string {
  return type.delayMs[1] < dayMs ? 'NR' : 'NT';
}

// The swath is 2600 km wide, so outlines end at 60 degrees from the node.
const granule = {
  arcs: [[-60, 42]] as Table<[number, number]>,
  durationMs: 5 * minuteMs,
  delayMs: [65 * minuteMs, 75 * minuteMs],
  footprint: 'swath',
  swath: { leftKm: -1300, rightKm: 1300, steps: [4, 12] },
  bytes: [1e7, 5e7],
  quicklook: false,
} as const;
const dutch = { stream: 'NRTI', mode: 'Near real-time', version: '020800' };

const sentinel5pGases: Collection = {
  ...{ folder: 'Sentinel-5P/TROPOMI', decimals: 4, satellites: sentinel5p },
  types: [
    { ...granule, weight: 4, productType: 'L2__NO2___', notes: { ...dutch, doi: '9bnp8q8' } },
    { ...granule, weight: 3, productType: 'L2__AER_AI', notes: { ...dutch, doi: '3dgz66p' } },
    {
      // A whole orbit, of which the sunlit part is in the outline. Its retrieval is too slow for near real time.
      ...{ ...granule, weight: 1, productType: 'L2__CH4___', bytes: [3e8, 6e8] },
      ...{ arcs: [[180, 180]], durationMs: 6_089_000, seen: [1 / 3, 2 / 3] },
      ...{ swath: { ...granule.swath, steps: [14, 4] }, delayMs: [2 * dayMs, 6 * dayMs] },
      notes: { ...dutch, stream: 'OFFL', mode: 'Offline', doi: '3lcdqiv' },
    },
  ],
  name: (scene) => `${gasIdentifier(scene)}.nc`,
  attributes: (scene) => {
    const { productType, notes } = scene.type;
    return {
      doi: `10.5270/S5P-${notes.doi}`,
      productClass: notes.stream ?? '',
      processorName: 'TROPNLL2DP',
      qualityStatus: 'NOMINAL',
      acquisitionType: 'NOMINAL',
      processingLevel: 'L2',
      parentIdentifier: `urn:ogc:def:EOP:ESA:SENTINEL.S5P_TROP_${productType}`,
      processingCenter: 'PDGS-OP',
      processorVersion: '02.08.00',
      platformShortName: 'SENTINEL-5P',
      baselineCollection: '03',
      instrumentShortName: 'TROPOMI',
      identifier: gasIdentifier(scene),
      orbitNumber: scene.orbit,
      processingDate: toTimestamp(scene.processedMs),
      processingMode: notes.mode ?? '',
      productType,
    };
  },
};

function gasIdentifier({ type, startMs, endMs, orbit, processedMs }: Scene): string {
  const times = `${toNameTime(startMs)}_${toNameTime(endMs)}_${digits(orbit, 5)}`;
  const made = `03_${type.notes.version}_${toNameTime(processedMs)}`;
  return `S5P_${type.notes.stream}_${type.productType}_${times}_${made}`;
}

/** Files without a place: orbits of Sentinel-1, for one day and an hour on either side, after three weeks. */
const auxiliary: Collection = {
  ...{ folder: 'Sentinel-1/AUX', decimals: 0, satellites: sentinel1 },
  types: [
    {
      ...{ ...slice, weight: 3, productType: 'AUX_POEORB', footprint: null, archive: false },
      ...{ durationMs: 26 * hourMs, delayMs: [20 * dayMs, 21 * dayMs], quicklook: false },
      ...{ bytes: [4.4e6, 4.5e6], notes: {} },
    },
  ],
  name: ({ satellite, type, startMs, endMs, processedMs }) => {
    const times = `${toNameTime(processedMs)}_V${toNameTime(startMs)}_${toNameTime(endMs)}`;
    return `S1${satellite.serial}_OPER_${type.productType}_OPOD_${times}.EOF`;
  },
  attributes: ({ satellite, type }) => ({
    origin: 'ESA',
    platformShortName: 'SENTINEL-1',
    instrumentShortName: 'SAR',
    platformSerialIdentifier: satellite.serial,
    productType: type.productType,
  }),
};

export const collections: Table<Collection> = [
  sentinel1Slices,
  sentinel2Tiles,
  sentinel3Frames,
  sentinel5pGases,
  auxiliary,
];
