/** Reads product records with missing or malformed parts. */
import { findMission, missionOfName } from './missions.ts';

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

/**
 * Returns the published name of the collection, from the platform, else the folder in `S3Path`
 * (`/eodata/Sentinel-2/…`), else the prefix of the product name. Null if none is known.
 */
export function collectionOf(record: ProductRecord): string | null {
  const path = textOrNull(record.S3Path) ?? '';
  const folder = findMission(path.split('/').find((part) => part !== '' && part !== 'eodata'));
  if (folder?.isDerived) return folder.collection;
  const byName = missionOfName(textOrNull(record.Name) ?? '');
  return (findMission(platformOf(record)) ?? folder ?? byName)?.collection ?? null;
}

/** Value of platformShortName; old records have attribute names in lower case. */
function platformOf({ Attributes: attributes }: ProductRecord): string | null {
  if (!Array.isArray(attributes)) return null;
  const found = attributes.find(
    (item) => textOrNull(partOf(item, 'Name'))?.toLowerCase() === 'platformshortname',
  );
  return textOrNull(partOf(found, 'Value'));
}
