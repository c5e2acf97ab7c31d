/** What is known of a product and may be said: typed values, each of a narrow, known form. */

import { modePhrase, parseProductName } from '../../domain/naming/conventions.ts';
import {
  type Instrument,
  instrumentOf,
  type NamedProduct,
  namedProduct,
} from '../../domain/naming/product-name.ts';
import type { FoundProduct, ProductRow } from '../../domain/products.ts';
import { type ProductRecord, partOf } from '../../filter/product-record.ts';
import type { Place } from '../places/globe.ts';
import {
  contentOfType,
  levelOf,
  polarisationOf,
  satelliteOf,
  timelinessOf,
} from './attribute-codes.ts';
import { datePhrase, delayPhrase } from './phrases.ts';
import { type OtherVersion, type Version, versionsOf } from './versions.ts';

/** Null where it is not known, or what the record says is of no known form, or absurd. Times in µs. */
export interface ProductFacts {
  /** In the naming convention of its mission. */
  name: string | null;
  /** A name in no known form, cut and cleaned: for people, never for a model. */
  foreignName: string | null;
  /** A GUID. */
  id: string | null;
  /** Whether more is known than an id and a name: a notification may come without its record. */
  hasRecord: boolean;
  deleted: boolean;
  deletionUs: number | null;
  /** `because it was a duplicate`. */
  deletionCause: string | null;
  auxiliary: boolean;
  /** `Sentinel-2A`. */
  satellite: string | null;
  instrument: Instrument | null;
  /** `Level-2A`. */
  level: string | null;
  /** What it holds: `surface reflectance`. */
  content: string | null;
  mode: string | null;
  polarisation: string | null;
  timeliness: string | null;
  /** Of the sensing; for an auxiliary file of its validity. */
  startUs: number | null;
  endUs: number | null;
  /** Of the earlier scene, where the product compares two; those above are of the later one. */
  earlierUs: number | null;
  place: Place | null;
  /** Whether the record has one that could be read or not. */
  footprint: boolean;
  cloudCoverPercent: number | null;
  tile: string | null;
  orbitNumber: number | null;
  relativeOrbitNumber: number | null;
  orbitDirection: 'ascending' | 'descending' | null;
  processingBaseline: string | null;
  processorVersion: string | null;
  publicationUs: number | null;
  /** When the first notification about it came. */
  receivedUs: number | null;
  sizeBytes: number | null;
  online: boolean | null;
  replacedBy: Version | null;
  replaces: Version | null;
}

const dayUs = 86_400_000_000;

/** A square of 100 km: zone, band, column, row (Military Grid Reference System). */
const tileForm = /^(?:0[1-9]|[1-5]\d|60)[C-HJ-NP-X][A-HJ-NP-Z][A-HJ-NP-V]$/;

const guid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * The facts of a product in the state of the catalogue that its row and record show. What the name says
 * in a known form has precedence over the attributes. `others` are products of the same scene (`sceneOf`); those
 * that are not are left out. Never throws, whatever the record holds.
 */
export function productFacts(
  found: FoundProduct,
  context: { place: Place | null; others: readonly OtherVersion[] },
): ProductFacts {
  const { row, record } = found;
  const fullName = row.productName ?? '';
  const known = parseProductName(fullName);
  const named = known ?? namedProduct({ satellite: '' });
  const attributes = attributeReader(record);
  const deleted = row.deletionUs !== null;
  return {
    name: known === null ? null : fullName,
    foreignName: known === null ? foreignName(fullName) : null,
    id: guid.test(row.productId) ? row.productId.toLowerCase() : null,
    hasRecord: Object.keys(record).some((key) => key !== 'Id' && key !== 'Name'),
    deleted,
    deletionUs: plausibleDate(row.deletionUs),
    deletionCause: (deleted && causeText(row.deletionCause)?.[0]) || null,
    ...identityOf(named, attributes),
    ...acquisitionOf(named, attributes, found),
    place: context.place,
    footprint: isGiven(record.Footprint) || isGiven(record.GeoFootprint),
    processorVersion: attributes.code('processorVersion', /^\d{1,3}(?:\.\d{1,3}){0,3}$/),
    publicationUs: plausibleDate(row.publicationUs),
    receivedUs: plausibleDate(row.receivedAtUs),
    sizeBytes: row.sizeBytes !== null && row.sizeBytes > 0 ? row.sizeBytes : null,
    online: row.online,
    ...versionsOf(fullName, baselineOf(named, found), row.publicationUs, context.others),
  };
}

function identityOf(named: NamedProduct, attributes: AttributeReader) {
  const type = attributes.code('productType', /^[A-Z0-9_-]+$/);
  const platform = satelliteOf(
    attributes.code('platformShortName', /^[A-Za-z0-9-]+$/),
    attributes.code('platformSerialIdentifier', /^[A-D]$/),
  );
  const instrument = attributes.code('instrumentShortName', /^[A-Z0-9_/ +-]+$/);
  const auxiliary = named.auxiliary || (type?.startsWith('AUX_') ?? false);
  return {
    auxiliary,
    satellite: named.satellite === '' ? platform : named.satellite,
    // The instrument that an auxiliary file helps has not made it.
    instrument: auxiliary ? null : (named.instrument ?? instrumentOf(instrument ?? '')),
    level: named.level ?? levelOf(attributes.code('processingLevel', /^[A-Za-z0-9-]+$/)),
    content: named.content ?? contentOfType(type),
    mode: named.mode ?? modePhrase(attributes.code('operationalMode', /^[A-Z0-9]{2}$/) ?? ''),
    polarisation:
      polarisationOf(attributes.code('polarisationChannels', /^[HV&,/ ]+$/)) ?? named.polarisation,
    timeliness: named.timeliness ?? timelinessOf(attributes.code('timeliness', /^[A-Za-z0-9-]+$/)),
  };
}

function acquisitionOf(named: NamedProduct, attributes: AttributeReader, found: FoundProduct) {
  const direction = attributes.code('orbitDirection', /^(?:ascending|descending)$/i);
  return {
    ...timesOf(named, found.row),
    earlierUs: named.earlierUs,
    cloudCoverPercent: attributes.number('cloudCover', 0, 100),
    tile: named.tile ?? attributes.code('tileId', tileForm),
    orbitNumber: attributes.integer('orbitNumber', 1, 999_999) ?? named.orbitNumber,
    relativeOrbitNumber:
      named.relativeOrbitNumber ?? attributes.integer('relativeOrbitNumber', 1, 999),
    orbitDirection:
      direction === null ? null : (direction.toLowerCase() as 'ascending' | 'descending'),
    processingBaseline: baselineOf(named, found),
  };
}

/** The record's times are exact; where they are not those of the name, but days away, the name is right. */
function timesOf(named: NamedProduct, row: ProductRow): Pick<ProductFacts, 'startUs' | 'endUs'> {
  const [start, end] = [plausibleDate(row.sensingStartUs), plausibleDate(row.sensingEndUs)];
  const astray =
    start !== null && named.startUs !== null && Math.abs(start - named.startUs) > dayUs;
  const startUs = astray ? named.startUs : (start ?? named.startUs);
  const endUs = astray ? named.endUs : (end ?? named.endUs);
  return { startUs, endUs: startUs !== null && endUs !== null && endUs >= startUs ? endUs : null };
}

function baselineOf(named: NamedProduct, { row }: FoundProduct): string | null {
  if (named.baseline !== null) return named.baseline;
  return /^\d\d\.\d\d$/.test(row.processingBaseline ?? '') ? row.processingBaseline : null;
}

/** A moment that has words; the others are no facts. */
function plausibleDate(us: number | null): number | null {
  return datePhrase(us) === null ? null : us;
}

function isGiven(value: unknown): boolean {
  return value !== null && value !== undefined && value !== '';
}

type AttributeReader = ReturnType<typeof attributeReader>;

/** More than any record has; what comes after is not read. */
const attributesMax = 500;

const textMax = 24;

// No two parts share a digit.
const numeral = /^[+-]?\d{1,12}(?:\.\d{1,20})?$/;

/** Names are compared without regard to case: old records write them in small letters. */
function attributeReader({ Attributes: attributes }: ProductRecord) {
  const values = new Map<string, unknown>();
  for (const item of Array.isArray(attributes) ? attributes.slice(0, attributesMax) : []) {
    const name = partOf(item, 'Name');
    if (typeof name !== 'string') continue;
    const key = name.toLowerCase();
    if (!values.has(key)) values.set(key, partOf(item, 'Value'));
  }
  const numberOf = (name: string, least: number, most: number): number | null => {
    const value = values.get(name.toLowerCase());
    const isNumeral = typeof value === 'string' && value.length <= 40 && numeral.test(value);
    if (!isNumeral && typeof value !== 'number') return null;
    const read = Number(value);
    return read >= least && read <= most ? read : null;
  };
  return {
    /** A text that matches the whole pattern; anything else is null. Numbers are read as texts. */
    code: (name: string, pattern: RegExp): string | null => {
      const value = values.get(name.toLowerCase());
      const text = typeof value === 'number' ? String(value) : value;
      return typeof text === 'string' && text.length <= textMax && pattern.test(text) ? text : null;
    },
    /** A finite number from `least` to `most`, or its text; anything else is null. */
    number: numberOf,
    /** As `number`, but whole. */
    integer: (name: string, least: number, most: number): number | null => {
      const read = numberOf(name, least, most);
      return read !== null && Number.isInteger(read) ? read : null;
    },
  };
}

/**
 * Whether a name follows the naming convention of its mission as a whole: every part has its place, its
 * length and its signs, codes are known ones, and dates exist. Linear in the length.
 */
export function isKnownName(name: string): boolean {
  return parseProductName(name) !== null;
}

const lengthMax = 60;

/**
 * At most 60 signs of the name, all printable ASCII; others become `\ufffd`, and white space is folded. Null
 * when nothing is left. It may still say anything: it is for people, in quotation marks, never for a model.
 */
export function foreignName(name: string): string | null {
  // Cut first, so that a very long text costs nothing.
  const [start, cut] = [[...name.slice(0, 2 * lengthMax)], name.length > 2 * lengthMax];
  const clean = start
    .join('')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[^\x20-\x7e]/gu, '\ufffd')
    .replaceAll('"', "'")
    .trim();
  if (clean === '') return null;
  return clean.length > lengthMax || cut ? `${clean.slice(0, lengthMax - 1)}…` : clean;
}

/** Measurements are of their time; orbits, parameters and forecasts are valid for theirs. */
export function coversPeriod({ content }: Pick<ProductFacts, 'content'>): boolean {
  return content?.startsWith('raw data') ?? false;
}

/**
 * The causes of the specification (Subscriptions), and one seen in live answers (facts, filters): what follows
 * `deleted`, and what such products were; null where that says no more than an unknown cause.
 */
const causes: Readonly<Record<string, readonly [why: string, state: string | null]>> = {
  'duplicated product': ['because it was a duplicate', 'duplicated'],
  'missing checksum': ['because its checksum was missing', 'without a checksum'],
  'corrupted product': ['because it was corrupted', 'corrupted'],
  'obsolete product': ['because it was obsolete', 'obsolete'],
  'obsolete product or other': ['because it was obsolete or for another reason', null],
  'reprocessed product': ['because it was reprocessed', 'reprocessed'],
  other: ['for a reason that the catalogue does not name', null],
};

function causeText(cause: string | null) {
  const key = cause?.trim().toLowerCase() ?? '';
  return Object.hasOwn(causes, key) ? causes[key] : undefined;
}

/** Of many products: `duplicated`; null for a text that is no known cause, and for one that says no more. */
export function deletedStatePhrase(cause: string | null): string | null {
  return causeText(cause)?.[1] ?? null;
}

/** What comes later than this was not notified when it was published, but when something else happened to it. */
const newsUs = 30 * 86_400 * 1_000_000;

/** From publication to receipt, in words; null where the receipt does not follow from the publication. */
export function receiptDelay({ publicationUs, receivedUs }: ProductFacts): string | null {
  if (publicationUs === null || receivedUs === null || receivedUs - publicationUs > newsUs) {
    return null;
  }
  return delayPhrase(publicationUs, receivedUs);
}
