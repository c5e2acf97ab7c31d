/** Reads product records with missing or malformed parts. */
import { recordedCollections } from './fields.ts';

/** JSON of the catalogue; any part may be missing. */
export type ProductRecord = Readonly<Record<string, unknown>>;

/** Returns a member of an object; undefined if it has none, or is not an object. */
export function partOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return (value as ProductRecord)[name];
}

/** Returns the record in a body (`value`, or `Value` in old ones); null if there is none. */
export function recordIn(document: unknown, index: number): ProductRecord | null {
  const item: unknown = Array.isArray(document) ? document[index] : document;
  if (!isRecord(item)) return null;
  const { value, Value } = item;
  if (isRecord(value)) return value;
  return isRecord(Value) ? Value : null;
}

function isRecord(value: unknown): value is ProductRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Collections derived from another one: their products have its platform, so the folder decides. */
const derived: ReadonlySet<string> = new Set(['SENTINEL-1-RTC', 'GLOBAL-MOSAICS']);

/** Prefixes of product names (documentation of each mission's file names). */
const prefixes: readonly (readonly [RegExp, string])[] = [
  [/^S1[A-D_]_/, 'SENTINEL-1'],
  [/^S2[A-D_]_/, 'SENTINEL-2'],
  [/^S3[A-D_]_/, 'SENTINEL-3'],
  [/^S5P_/, 'SENTINEL-5P'],
  [/^S6[A-B_]_/, 'SENTINEL-6'],
  [/^LT05_/, 'LANDSAT-5'],
  [/^LE07_/, 'LANDSAT-7'],
  [/^L[COT]08_/, 'LANDSAT-8'],
  [/^L[COT]09_/, 'LANDSAT-9'],
  [/^(?:ENV_|(?:ASA|MER|ATS|SCI|GOM|MIP|RA2|MWR|DOR)_[A-Z0-9_]{6}_?[A-Z0-9]{4})/, 'ENVISAT'],
  [/^SM_[A-Z]{4}_/, 'SMOS'],
];

/**
 * Returns the published name of the collection, from the platform, else the folder in `S3Path`
 * (`/eodata/Sentinel-2/…`), else the prefix of the product name. Null if none is known.
 */
export function collectionOf(record: ProductRecord): string | null {
  const path = textOrNull(record.S3Path) ?? '';
  const folder = published(path.split('/').find((part) => part !== '' && part !== 'eodata'));
  if (folder !== null && derived.has(folder)) return folder;
  const name = textOrNull(record.Name) ?? '';
  const byName = prefixes.find(([prefix]) => prefix.test(name))?.[1] ?? null;
  return published(platformOf(record)) ?? folder ?? byName;
}

/** Value of platformShortName; old records have attribute names in lower case. */
function platformOf({ Attributes: attributes }: ProductRecord): string | null {
  if (!Array.isArray(attributes)) return null;
  const found = attributes.find(
    (item) => textOrNull(partOf(item, 'Name'))?.toLowerCase() === 'platformshortname',
  );
  return textOrNull(partOf(found, 'Value'));
}

function published(word: string | null | undefined): string | null {
  const upper = word?.trim().toUpperCase() ?? '';
  return recordedCollections.has(upper) ? upper : null;
}
