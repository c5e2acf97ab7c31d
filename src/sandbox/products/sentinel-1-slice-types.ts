/** The types of product that are made from a slice of a Sentinel-1 data take. */
import type { Table } from './choice.ts';

export interface SliceType {
  /** How often it is published, in relation to the others. */
  readonly weight: number;
  /** The TTTR_LF of the name: type, resolution, level and class. */
  readonly code: string;
  /** Attribute productType, and the folder. */
  readonly productType: string;
  readonly level: 'LEVEL0' | 'LEVEL1' | 'LEVEL2';
  readonly swaths: string;
  readonly durationMs: number;
  readonly bytes: readonly [min: number, max: number];
  readonly quicklook: boolean;
  /** Set when the slice is published in two forms: the plain one first, then the cloud-optimised. */
  readonly twin?: 'first' | 'second';
}

const grd = {
  code: 'GRDH_1S',
  level: 'LEVEL1',
  swaths: 'IW',
  durationMs: 24_998,
  quicklook: true,
} as const;

export const sliceTypes: Table<SliceType> = [
  { ...grd, weight: 32, productType: 'IW_GRDH_1S', bytes: [1.6e9, 2.1e9], twin: 'first' },
  { ...grd, weight: 24, productType: 'IW_GRDH_1S-COG', bytes: [0.6e9, 1.2e9], twin: 'second' },
  {
    weight: 24,
    code: 'SLC__1S',
    productType: 'IW_SLC__1S',
    level: 'LEVEL1',
    swaths: 'IW1 IW2 IW3',
    durationMs: 27_014,
    bytes: [6.9e9, 8.4e9],
    quicklook: true,
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
