/** Generates products from the table of collections, and their later changes; reads a file of records. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { attributeKindOf } from '../../filter/fields.ts';
import { createRandom, type Random } from '../clock.ts';
import { SandboxConfigurationError } from '../settings.ts';
import {
  type Collection,
  collections,
  groundPoint,
  isLand,
  type Pass,
  type ProductType,
  passBefore,
  periodMs,
  type Satellite,
  swathRing,
  tileAt,
  tileRing,
  toFootprint,
} from './track.ts';

/** A newly published product, with every field. */
export type PublishedProduct = ReturnType<typeof assembleRecord>;

export type ProductGenerator = ReturnType<typeof createProductGenerator>;

/** Documented causes of deletion, and one that only real answers contain. */
const deletionCauses = [
  'Duplicated product',
  ...['Missing checksum', 'Corrupted product', 'Obsolete product', 'Other', 'Reprocessed product'],
];

/** Fields that a deleted product keeps, in the order of the documented bodies. */
const keptFields = [
  ...['@odata.mediaContentType', 'Id', 'Name', 'ContentType', 'ContentLength', 'OriginDate'],
  ...['Checksum', 'Footprint', 'GeoFootprint', 'ContentDate', 'Attributes'],
];

/** A product while it is generated. Times are whole ms since 1970. */
interface Scene extends Pass {
  readonly type: ProductType;
  readonly endMs: number;
  readonly processedMs: number;
  readonly originMs: number;
  readonly publicationMs: number;
  readonly tile: string;
  readonly random: Random;
}

/** Creates a generator. `seed` is a 32-bit integer. All times are ms since 1970, truncated. */
export function createProductGenerator({ seed }: { seed: number }) {
  const random = createRandom(seed);
  const changes = createRandom(~seed);
  return {
    /**
     * Generates a product published at a time, from 2018 on. Equal seeds and sequences of times give equal
     * records, regardless of modifications and deletions in between.
     */
    next: (publicationMs: number): PublishedProduct => {
      const { collection, type } = random.pick(types);
      const scene = drawScene(random, collection, type, Math.floor(publicationMs));
      return assembleRecord(collection, scene);
    },
    /** Returns the product with a new ModificationDate. */
    modified: <Product extends CatalogueProduct>(product: Product, atMs: number): Product => ({
      ...product,
      ModificationDate: drawTimestamp(changes, Math.floor(atMs)),
    }),
    /** Returns the record of the deleted product. */
    deleted: (product: CatalogueProduct, atMs: number) => ({
      '@odata.context': '$metadata#DeletedProducts(Attributes())/$entity',
      ...Object.fromEntries(
        keptFields.filter((field) => field in product).map((field) => [field, product[field]]),
      ),
      // Repeated for the type check.
      ...{ Id: product.Id, Name: product.Name },
      DeletionDate: drawTimestamp(changes, Math.floor(atMs)),
      DeletionCause: changes.pick(deletionCauses),
    }),
  };
}

const dayMs = 86_400_000;
const mediaType = 'application/octet-stream';
const serviceUrl = 'https://catalogue.dataspace.copernicus.eu/odata/v1';

/** Each product type as often as its weight. */
const types = collections.flatMap((collection) =>
  collection.types.flatMap((type) =>
    Array.from({ length: type.weight }, () => ({ collection, type })),
  ),
);

/** Number of attempts to find land on one orbit, and on all. */
const orbitTries = 12;
const triesMax = 60;

/** Draws time and place of sensing, and the times of processing and delivery to the catalogue. */
function drawScene(
  random: Random,
  { satellites }: Collection,
  type: ProductType,
  publicationMs: number,
): Scene {
  const originMs = publicationMs - random.integer(90_000, 360_000);
  const processedMs = originMs - random.integer(240_000, 540_000);
  const isLaunched = (one: Satellite) =>
    one.referenceMs - one.referenceOrbit * periodMs(one) <= publicationMs;
  const satellite = random.pick(satellites.filter(isLaunched));
  const [minMinutes, maxMinutes] = type.delayMinutes;
  const beforeMs = publicationMs - random.integer(minMinutes * 60_000, maxMinutes * 60_000);
  for (let tries = 1; ; tries += 1) {
    // An orbit over an ocean has no tiles, so then an earlier one.
    const orbitsBack = Math.floor(tries / orbitTries);
    const argument = frameStart(
      type,
      random.between(...random.pick(type.arcsDegrees)),
      periodMs(satellite),
    );
    const pass = passBefore(satellite, argument, beforeMs - orbitsBack * periodMs(satellite));
    const endMs = pass.startMs + type.durationSeconds * 1_000;
    const times = { endMs, processedMs, originMs, publicationMs };
    const scene = { ...pass, ...times, type, random, tile: '' };
    if (type.swath === null) return { ...scene, ...wholeDay(scene) };
    if (!type.tile) return scene;
    const acrossKm = random.between(...type.swath.km);
    const point = groundPoint(satellite, pass.startMs, acrossKm);
    if (!isLand(point) && tries < triesMax) continue;
    const startMs = datatakeStart(pass);
    return { ...scene, startMs, endMs: startMs, tile: tileAt(point) };
  }
}

/** Tiles have the start of their data take, here at fixed positions of the orbit, at a whole second plus 24 ms. */
function datatakeStart({ satellite, nodeMs, startMs }: Pass): number {
  const spacingMs = periodMs(satellite) / 12;
  const number = Math.floor((startMs - nodeMs) / spacingMs);
  return Math.floor((nodeMs + number * spacingMs) / 1_000) * 1_000 + 24;
}

function frameStart({ frameSeconds }: ProductType, degrees: number, period: number): number {
  if (frameSeconds === undefined) return degrees;
  const frameDegrees = (frameSeconds * 360_000) / period;
  return Math.round(degrees / frameDegrees) * frameDegrees;
}

/** Returns the validity of a daily file: an hour before the day, minus the 18 leap seconds of GPS time. */
function wholeDay({ startMs, type }: Pick<Scene, 'startMs' | 'type'>) {
  const fromMs = Math.floor(startMs / dayMs) * dayMs - 3_618_000;
  return { startMs: fromMs, endMs: fromMs + type.durationSeconds * 1_000 };
}

/** Creates the record of a product, with keys in the catalogue's order. */
function assembleRecord(collection: Collection, scene: Scene) {
  const { startMs, endMs, originMs, publicationMs, type, random } = scene;
  const Id: string = random.uuid();
  const Name = String(fill(collection.name, scene));
  const day = new Date(startMs).toISOString().slice(0, 10).replaceAll('-', '/');
  const S3Path = `/eodata/${collection.folder}/${type.productType}/${day}/${Name}`;
  const ContentLength = random.integer(...type.bytes);
  // Computed within seconds after publication.
  const Checksum = [
    drawChecksum(random, 'MD5', 32, publicationMs + random.integer(500, 6_000)),
    drawChecksum(random, 'BLAKE3', 64, publicationMs + random.integer(6_000, 10_000)),
  ];
  const PublicationDate = drawTimestamp(random, publicationMs);
  const ContentDate = { Start: toTimestamp(startMs), End: toTimestamp(endMs) };
  const attributes = { ...collection.attributes, ...type.attributes };
  const dates = { beginningDateTime: ContentDate.Start, endingDateTime: ContentDate.End };
  const footprint = footprintOf(scene, collection.decimals);
  const product = `${serviceUrl}/Products(${Id})`;
  const extracted = { FormatType: 'Extracted', DownloadLink: `${product}/$value` };
  const never = '9999-12-31T23:59:59.999999Z';
  return {
    '@odata.mediaContentType': mediaType,
    ...{ Id, Name, ContentType: mediaType, ContentLength, OriginDate: toTimestamp(originMs) },
    ...{ PublicationDate, ModificationDate: PublicationDate, Online: true },
    EvictionDate: type.keptDays ? toTimestamp(publicationMs + type.keptDays * dayMs) : never,
    ...{ S3Path, Checksum, ContentDate },
    Footprint: footprint?.text ?? null,
    GeoFootprint: footprint?.geometry ?? null,
    Attributes: Object.entries({ ...attributes, ...dates }).map((one) => toAttribute(one, scene)),
    Assets: type.quicklook ? [quicklook(random.uuid(), S3Path)] : [],
    Locations: [
      { ...extracted, ContentLength, Checksum, S3Path },
      ...(type.archive ? [archiveOf(`${product}/$zip`, ContentLength, scene)] : []),
    ],
  };
}

function footprintOf({ satellite, startMs, endMs, tile, type }: Scene, decimals: number) {
  const { swath, seen } = type;
  if (swath === null) return null;
  if (type.tile) return toFootprint(tileRing(tile), decimals);
  const at = (share: number) => startMs + share * (endMs - startMs);
  return toFootprint(swathRing(satellite, [at(seen[0]), at(seen[1])], swath), decimals);
}

/** The default type is for beginningDateTime and endingDateTime, which the published list of attributes lacks. */
function toAttribute([Name, template]: [string, string | number | boolean], scene: Scene) {
  const Value = typeof template === 'string' ? fill(template, scene) : template;
  const ValueType = attributeKindOf(Name) ?? 'DateTimeOffset';
  return { '@odata.type': `#OData.CSC.${ValueType}Attribute`, Name, Value, ValueType };
}

function quicklook(Id: string, S3Path: string) {
  const DownloadLink = `${serviceUrl}/Assets(${Id})/$value`;
  return { Type: 'QUICKLOOK', Id, DownloadLink, S3Path };
}

/** The archive is smaller, has its own checksum, and is kept for 30 days. */
function archiveOf(DownloadLink: string, bytes: number, { random, publicationMs }: Scene) {
  return {
    ...{ FormatType: 'Compressed', DownloadLink },
    ContentLength: Math.round(bytes * random.between(0.5, 0.65)),
    Checksum: [drawChecksum(random, 'MD5', 32, publicationMs - 80_000)],
    EvictionDate: drawTimestamp(random, publicationMs + 30 * dayMs),
  };
}

/** The names in templates, next to the notes of type and satellite. */
const values: Readonly<Record<string, (scene: Scene) => string | number>> = {
  serial: ({ satellite }) => satellite.serial,
  productType: ({ type }) => type.productType,
  tile: ({ tile }) => tile,
  start: ({ startMs }) => toNameTime(startMs),
  end: ({ endMs }) => toNameTime(endMs),
  processed: ({ processedMs }) => toNameTime(processedMs),
  processingDate: ({ processedMs }) => toTimestamp(processedMs),
  processingSecond: ({ processedMs }) => toTimestamp(wholeSecond(processedMs)),
  originSecond: ({ originMs }) => `${new Date(originMs).toISOString().slice(0, 19)}Z`,
  orbit: ({ orbit }) => orbit,
  relativeOrbit: ({ relativeOrbit }) => relativeOrbit,
  cycle: ({ cycle }) => cycle,
  direction: ({ ascending }) => (ascending ? 'ASCENDING' : 'DESCENDING'),
  startSinceNodeMs: ({ startMs, nodeMs }) => startMs - nodeMs,
  endSinceNodeMs: ({ endMs, nodeMs }) => endMs - nodeMs,
  frame: ({ startMs, nodeMs }) => Math.round((startMs - nodeMs) / 1_000),
  // The last line is sensed just before the end, so 180 s are written as 0179.
  lastSecond: ({ type }) => type.durationSeconds - 1,
  datatake: datatakeOf,
  datatakeHex: (scene) => datatakeOf(scene).toString(16).toUpperCase(),
  slice: sliceOf,
  segmentStart: (scene) => toTimestamp(scene.startMs - (sliceOf(scene) - 1) * 25_000),
  hex: ({ random }) => random.hex(4).toUpperCase(),
  percent: ({ random }) => random.integer(0, 60),
  cloud: ({ random }) => random.between(0, 100),
};

function wholeSecond(atMs: number): number {
  return Math.floor(atMs / 1_000) * 1_000;
}

/** Data takes are numbered from that of the reference orbit. */
function datatakeOf({ satellite, orbit, startMs, nodeMs }: Scene): number {
  const orbits = orbit - satellite.referenceOrbit + (startMs - nodeMs) / periodMs(satellite);
  const { firstDatatake, datatakesPerOrbit } = satellite.notes;
  return Number(firstDatatake) + Math.floor(orbits * Number(datatakesPerOrbit));
}

function sliceOf({ startMs }: Scene): number {
  return (Math.floor(startMs / 25_000) % 9) + 1;
}

/**
 * Fills the names in braces of a template. `{name:6}` pads with zeros; a template of one name keeps the type of its
 * value. Throws TypeError for an unknown name.
 */
function fill(template: string, scene: Scene): string | number {
  const lookUp = (name: string) => {
    const value = scene.type.notes[name] ?? scene.satellite.notes[name] ?? values[name]?.(scene);
    if (value === undefined) throw new TypeError(`The table of collections has no ${name}.`);
    return value;
  };
  const [, only] = /^\{(\w+)\}$/.exec(template) ?? [];
  if (only !== undefined) return lookUp(only);
  return template.replaceAll(/\{(\w+)(?::(\d))?\}/g, (_, name, digits) =>
    String(lookUp(name)).padStart(Number(digits ?? 0), '0'),
  );
}

/** A product record of any origin and age: only Id and Name are guaranteed. */
export interface CatalogueProduct {
  readonly Id: string;
  readonly Name: string;
  readonly [other: string]: unknown;
}

/** Draws a checksum of a number of hexadecimal digits. */
function drawChecksum(random: Random, Algorithm: string, digits: number, atMs: number) {
  return { Value: random.hex(digits), Algorithm, ChecksumDate: drawTimestamp(random, atMs) };
}

/**
 * Formats ISO 8601 in UTC with six fractional digits, e.g. `2026-01-01T01:16:00.346278Z`.
 * `atMs` is whole ms since 1970; `microseconds` (0 to 999) are added.
 */
export function toTimestamp(atMs: number, microseconds = 0): string {
  return `${new Date(atMs).toISOString().slice(0, -1)}${String(microseconds).padStart(3, '0')}Z`;
}

/** Formats a timestamp with random microseconds. */
function drawTimestamp(random: Random, atMs: number): string {
  return toTimestamp(atMs, random.integer(0, 999));
}

/** Formats whole seconds without separators, e.g. `20260101T011600`. */
export function toNameTime(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
}

const recordSchema = z.object({ Id: z.string().min(1), Name: z.string().min(1) });

/**
 * Reads product records from a JSON Lines file; skips blank lines. Throws SandboxConfigurationError
 * for an unreadable or empty file, and for an invalid record.
 */
export function readProductRecords(file: string): CatalogueProduct[] {
  const fail = (problem: string): never => {
    throw new SandboxConfigurationError(`${file}${problem}. Put one product record on each line.`);
  };
  let text = '';
  try {
    text = readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  } catch (cause) {
    fail(` cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  const records = text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return [];
    try {
      const record: CatalogueProduct = JSON.parse(line);
      recordSchema.parse(record);
      return record;
    } catch {
      return fail(`, line ${index + 1}: not a JSON object with the texts Id and Name`);
    }
  });
  return records.length > 0 ? records : fail(' contains no product records');
}
