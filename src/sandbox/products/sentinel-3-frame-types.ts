/** The types of Sentinel-3 product that are published: where on the orbit they are made and what they see. */
import type { AttributeValues } from './attributes.ts';
import type { Table } from './choice.ts';
import type { Swath } from './footprint.ts';

export interface FrameType {
  /** How often it is published, in relation to the others. */
  readonly weight: number;
  readonly productType: string;
  readonly instrument: 'OLCI' | 'SLSTR' | 'SRAL';
  readonly level: '1' | '2';
  readonly durationMs: number;
  /** Frames begin at multiples of this after the ascending node. */
  readonly frameSpacingSeconds: number;
  /**
   * First and last frame of each stretch of the orbit. Nearer to the poles than 76 degrees an outline
   * would span most of the longitudes or enclose the pole, so no frames are made there.
   */
  readonly frames: Table<readonly [first: number, last: number]>;
  /** Whether the name tells the frame. */
  readonly framed: boolean;
  readonly swath: Swath;
  readonly bytes: readonly [min: number, max: number];
  readonly quicklook: boolean;
  readonly baselineCollection: string;
  readonly processorName: string;
  readonly processorVersion: string;
  /** Attributes with a percentage of the surface, in order. */
  readonly covers: readonly (keyof AttributeValues)[];
  readonly cloudy: boolean;
}

// 3-minute frames of the colour imager in daylight; tilted west, away from the sun's glint, 1270 km wide.
const olci = {
  instrument: 'OLCI',
  durationMs: 180_000,
  frameSpacingSeconds: 180,
  frames: [[10, 22]],
  framed: true,
  swath: { leftKm: -335, rightKm: 935, alongSteps: 5, acrossSteps: 10 },
  quicklook: true,
  processorName: 'PUG',
  processorVersion: '03.52',
} as const;

export const frameTypes: Table<FrameType> = [
  {
    ...olci,
    weight: 30,
    productType: 'OL_1_EFR___',
    level: '1',
    bytes: [5.2e8, 8.5e8],
    baselineCollection: '004',
    covers: [
      'brightCover',
      'coastalCover',
      'salineWaterCover',
      'tidalRegionCover',
      'freshInlandWaterCover',
    ],
    cloudy: false,
  },
  {
    ...olci,
    weight: 25,
    productType: 'OL_2_LFR___',
    level: '2',
    bytes: [0.6e8, 2.4e8],
    baselineCollection: '003',
    covers: ['coastalCover', 'salineWaterCover', 'tidalRegionCover', 'freshInlandWaterCover'],
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
    // The altimeter looks straight down on a few kilometres.
    swath: { leftKm: -2, rightKm: 2, alongSteps: 15, acrossSteps: 1 },
    bytes: [1.5e7, 6e7],
    quicklook: false,
    baselineCollection: '005',
    processorName: 'PUG',
    processorVersion: '03.52',
    covers: ['landCover', 'closedSeaCover', 'openOceanCover', 'continentalIceCover'],
    cloudy: false,
  },
];
