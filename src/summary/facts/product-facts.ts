/** Facts of a product that a summary may state: typed values, each in a narrow, known form. */

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

/** Null if unknown, in no known form, or implausible. Times in µs. */
export interface ProductFacts {
  /** Name that follows the naming convention of its mission. */
  name: string | null;
  /** Any other name, truncated and sanitized: for people, never for a model. */
  foreignName: string | null;
  /** A GUID. */
  id: string | null;
  /** False if only id and name are known: a notification may come without its record. */
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
  /** `surface reflectance`. */
  content: string | null;
  mode: string | null;
  polarisation: string | null;
  timeliness: string | null;
  /** Start and end of sensing; for an auxiliary file of its validity. */
  startUs: number | null;
  endUs: number | null;
  /** Sensing start of the earlier scene if the product compares two; start and end are those of the later one. */
  earlierUs: number | null;
  place: Place | null;
  /** True if the record has a footprint, readable or not. */
  footprint: boolean;
  cloudCoverPercent: number | null;
  tile: string | null;
  orbitNumber: number | null;
  relativeOrbitNumber: number | null;
  orbitDirection: 'ascending' | 'descending' | null;
  processingBaseline: string | null;
  processorVersion: string | null;
  publicationUs: number | null;
  /** Time of the first notification about the product. */
  receivedUs: number | null;
  sizeBytes: number | null;
  online: boolean | null;
  replacedBy: Version | null;
  replaces: Version | null;
}

const dayUs = 86_400_000_000;

/** A 100 km square: zone, band, column, row (Military Grid Reference System). */
const tileForm = /^(?:0[1-9]|[1-5]\d|60)[C-HJ-NP-X][A-HJ-NP-Z][A-HJ-NP-V]$/;

const guid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * Extracts the facts of a product from its row and record. A name in a known form has precedence over the
 * attributes. `others` are possible versions; products of other scenes (`sceneOf`) are ignored. Never throws,
 * whatever the record contains.
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
    attributes.code('platformSerialIdentifier', /^[A-Z]$/),
  );
  const instrument = attributes.code('instrumentShortName', /^[A-Z0-9_/ +-]+$/);
  const auxiliary = named.auxiliary || (type?.startsWith('AUX_') ?? false);
  return {
    auxiliary,
    satellite: named.satellite === '' ? platform : named.satellite,
    // An auxiliary file is not made by the instrument that it supports.
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

/** Uses the record's exact times; if they differ from the name's by more than a day, uses the name's. */
function timesOf(named: NamedProduct, row: ProductRow): Pick<ProductFacts, 'startUs' | 'endUs'> {
  const [start, end] = [plausibleDate(row.sensingStartUs), plausibleDate(row.sensingEndUs)];
  const isWrong =
    start !== null && named.startUs !== null && Math.abs(start - named.startUs) > dayUs;
  const startUs = isWrong ? named.startUs : (start ?? named.startUs);
  const endUs = isWrong ? named.endUs : (end ?? named.endUs);
  return { startUs, endUs: startUs !== null && endUs !== null && endUs >= startUs ? endUs : null };
}

function baselineOf(named: NamedProduct, { row }: FoundProduct): string | null {
  if (named.baseline !== null) return named.baseline;
  return /^\d\d\.\d\d$/.test(row.processingBaseline ?? '') ? row.processingBaseline : null;
}

/** Returns null for a date that cannot be formatted. */
function plausibleDate(us: number | null): number | null {
  return datePhrase(us) === null ? null : us;
}

function isGiven(value: unknown): boolean {
  return value !== null && value !== undefined && value !== '';
}

type AttributeReader = ReturnType<typeof attributeReader>;

/** Maximum number of attributes read; no real record has more. */
const attributesMax = 500;

const textMax = 24;

// No backtracking: no two parts match the same digit.
const numeral = /^[+-]?\d{1,12}(?:\.\d{1,20})?$/;

/** Reads attributes by name, ignoring case: old records have names in lower case. */
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
    /** Returns a text that matches the pattern, else null. Numbers are read as texts. */
    code: (name: string, pattern: RegExp): string | null => {
      const value = values.get(name.toLowerCase());
      const text = typeof value === 'number' ? String(value) : value;
      return typeof text === 'string' && text.length <= textMax && pattern.test(text) ? text : null;
    },
    /** Returns a number from `least` to `most`, given as number or text, else null. */
    number: numberOf,
    /** Same as `number`, for integers. */
    integer: (name: string, least: number, most: number): number | null => {
      const read = numberOf(name, least, most);
      return read !== null && Number.isInteger(read) ? read : null;
    },
  };
}

/**
 * Returns true if a name fully follows the naming convention of its mission: order, length and characters of
 * all parts, known codes and valid dates. Linear in the length.
 */
export function isKnownName(name: string): boolean {
  return parseProductName(name) !== null;
}

const lengthMax = 60;

/**
 * Sanitizes a name in no known form: at most 60 characters, printable ASCII; others become `\ufffd`, and white space
 * is collapsed. Null if nothing is left. The result may contain any statement: it is shown to people, in
 * quotation marks, and never sent to a model.
 */
export function foreignName(name: string): string | null {
  // Truncates first, so that a very long text costs nothing.
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

/** Returns true for measurements, which cover a period; orbits, parameters and forecasts are valid for one. */
export function coversPeriod({ content }: Pick<ProductFacts, 'content'>): boolean {
  return content?.startsWith('raw data') ?? false;
}

/**
 * Causes of the specification (Subscriptions), and one seen in live responses (facts, filters): the text after
 * `deleted`, and the state of such products; null if it says no more than an unknown cause.
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

/** Returns the state for a digest: `duplicated`; null for an unknown cause, and for one without a state. */
export function deletedStatePhrase(cause: string | null): string | null {
  return causeText(cause)?.[1] ?? null;
}

/** Maximum delay from publication to receipt; a later notification was not caused by the publication. */
const receiptDelayUsMax = 30 * 86_400 * 1_000_000;

/** Formats the delay from publication to receipt; null if the publication did not cause the notification. */
export function receiptDelay({ publicationUs, receivedUs }: ProductFacts): string | null {
  if (publicationUs === null || receivedUs === null) return null;
  if (receivedUs - publicationUs > receiptDelayUsMax) return null;
  return delayPhrase(publicationUs, receivedUs);
}
