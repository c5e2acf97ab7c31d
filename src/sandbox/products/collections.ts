/**
 * The products of the sandbox: a table of collections (`collections.json`), with names and attributes as templates.
 * Figures of orbits and instruments are those published by ESA; reference orbits and forms are of real products.
 */
import { z } from 'zod';
import data from './collections.json' with { type: 'json' };

const range = z.tuple([z.number(), z.number()]);
const templates = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));
/** Parts of names and attributes with a meaning for one collection. */
const notes = z.record(z.string(), z.union([z.string(), z.number()])).default({});

/** A satellite on a circular orbit that keeps its local solar time and repeats its ground track. */
const satelliteSchema = z.strictObject({
  /** Letter in the product names. */
  serial: z.string(),
  inclinationDegrees: z.number(),
  /** Length of the repeat cycle in days, and its number of orbits; together they give the period. */
  cycleDays: z.number(),
  cycleOrbits: z.number(),
  /** Mean local solar time at the ascending node, hours. */
  nodeHours: z.number(),
  /** A known orbit, which determines all others: its number, and its start at the ascending node. */
  referenceOrbit: z.number(),
  referenceTime: z.iso.datetime(),
  /** Relative orbit = (orbit number + offset) mod cycleOrbits + 1. */
  relativeOffset: z.number(),
  /** Number of the cycle where orbit number + relativeOffset is 0. */
  firstCycle: z.number(),
  notes,
});

const typeSchema = z.strictObject({
  productType: z.string(),
  /** Relative frequency of publication, among all collections. */
  weight: z.number(),
  /** Parts of the orbit where sensing starts, degrees from the ascending node. */
  arcsDegrees: z.tuple([range], range),
  /** Sensing starts at multiples of this after the ascending node (default: any time). */
  frameSeconds: z.number().optional(),
  durationSeconds: z.number(),
  /** From the start of sensing to publication; up to two orbits are added. */
  delayMinutes: range,
  /** Area seen: km from the ground track, positive to the right of flight; outline segments along and across. */
  swath: z.strictObject({ km: range, steps: range }).nullable(),
  /** True if the footprint is a square of the MGRS grid over land in the swath. */
  tile: z.boolean().default(false),
  /** Share of the duration in the footprint. */
  seen: range.default([0, 1]),
  bytes: range,
  quicklook: z.boolean().default(false),
  /** True if the product is also offered as an archive. */
  archive: z.boolean().default(false),
  /** Time from publication to eviction (default: unlimited). */
  keptDays: z.number().optional(),
  attributes: templates.default({}),
  notes,
});

const collectionSchema = z
  .strictObject({
    /** Begin of the path below `/eodata/`. */
    folder: z.string(),
    decimals: z.number(),
    /** Values that all satellites, and most types, have in common. */
    orbit: z.looseObject({}),
    common: z.looseObject({}).default({}),
    satellites: z.array(z.looseObject({})),
    types: z.array(z.looseObject({})),
    name: z.string(),
    /** Without beginningDateTime and endingDateTime, which all products have. */
    attributes: templates,
  })
  .transform(({ orbit, common, satellites, types, ...collection }) => ({
    ...collection,
    satellites: satellites.map((one) => {
      const satellite = satelliteSchema.parse({ ...orbit, ...one });
      return { ...satellite, referenceMs: Date.parse(satellite.referenceTime) };
    }),
    types: types.map((one) => typeSchema.parse({ ...common, ...one })),
  }));

export type Collection = z.output<typeof collectionSchema>;
export type Satellite = Collection['satellites'][number];
export type ProductType = Collection['types'][number];
export const collections = z.array(collectionSchema).parse(data);
