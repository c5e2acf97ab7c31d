/** Converts rows of the table `product p` to domain rows. */

import { formatDateUs, readDateUs } from '../../../core/terms/dates.ts';
import { jsonOf } from '../../../core/terms/text.ts';
import type { AnyGeometry } from '../../../filter/filter-tree.ts';
import { satelliteOf } from '../../../filter/missions.ts';
import { withNamedFacts } from '../../../filter/product-facts.ts';
import { recordIn } from '../../../filter/product-view.ts';
import type { ProductRow } from '../../../filter/products.ts';
import type { ProductRecord } from '../../../filter/values.ts';
import { bodyDocument } from '../../../store/bodies/body-document.ts';
import { fullPath } from './product-schema.ts';

/** Columns selected by a search. */
export const rowColumns = `p.id AS position, p.product_id AS productId, p.name AS productName,
  p.collection, p.platform_name AS platformName, p.platform_serial AS platformSerial,
  p.product_type AS productType, p.processing_level AS processingLevel,
  p.sensing_start_us AS sensingStartUs, p.sensing_end_us AS sensingEndUs,
  p.publication_us AS publicationDateUs, p.modification_us AS modificationDateUs,
  p.size_bytes AS sizeBytes, p.online, p.cloud_cover AS cloudCoverPercent,
  p.orbit_number AS orbitNumber, p.relative_orbit_number AS relativeOrbitNumber,
  p.orbit_direction AS orbitDirection, p.tile, p.processing_baseline AS processingBaseline,
  p.received_at_us AS receivedAtUs, p.deletion_us AS deletionDateUs,
  p.deletion_cause AS deletionCause, p.s3_path AS s3Path, p.record_position AS recordPosition`;

/** A row as returned by SQLite. */
export type SelectedRow = Omit<ProductRow, 'platform' | 'online'> & {
  platformName: string | null;
  platformSerial: string | null;
  online: number | null;
  recordPosition: number | null;
};

export function toProductRow(selected: SelectedRow): ProductRow {
  const { platformName, platformSerial, online, recordPosition: _, collection, ...rest } = selected;
  const { position, productId, productName, s3Path, ...others } = rest;
  const platform = satelliteOf({ platformName, platformSerial, productName, collection });
  return withNamedFacts({
    ...{ position, productId, productName, collection, platform, ...others },
    online: online === null ? null : online === 1,
    s3Path: s3Path === null ? null : fullPath(s3Path, productName),
  });
}

const lenientUtf8 = new TextDecoder('utf-8');

/**
 * A record on its way between threads, as JSON: the body of its notification, or the record alone if the body has
 * others; null without one. To parse it takes less time than to copy a parsed record.
 */
export type SentRecord = { body: string } | { record: string } | null;

/** Maximum size of a body that is sent whole. */
const sentBodyBytesMax = 65_536;

const openingBrace = 0x7b;

/** Returns the record at an index of a body, to be sent; null for a body that is not JSON. */
export function sentRecord(body: Uint8Array, index: number): SentRecord {
  if (body[0] === openingBrace && body.length <= sentBodyBytesMax) {
    return { body: lenientUtf8.decode(body) };
  }
  const record = recordIn(bodyDocument(body), index);
  return record === null ? null : { record: JSON.stringify(record) };
}

/** Returns the record that was sent; null for a body that is not JSON. */
export function receivedRecord(sent: SentRecord): ProductRecord | null {
  if (sent === null) return null;
  // Written by `sentRecord`.
  if ('record' in sent) return JSON.parse(sent.record) as ProductRecord;
  return recordIn(jsonOf(sent.body), 0);
}

interface Identity {
  productId: string;
  name: string | null;
  /** Null if it is not deleted. */
  deletionDateUs: number | null;
  deletionCause: string | null;
}

/**
 * Returns the record as filters and outputs use it: as received, with Id and Name added if missing, and with
 * the date of deletion for a tombstone.
 */
export function completeRecord(
  record: ProductRecord | null,
  { productId, name, deletionDateUs, deletionCause }: Identity,
): ProductRecord {
  const known = record ?? {};
  const missing: Record<string, unknown> = {};
  if (known.Id !== productId) missing.Id = productId;
  if (typeof known.Name !== 'string' && name !== null) missing.Name = name;
  if (deletionDateUs !== null && readDateUs(known.DeletionDate) !== deletionDateUs) {
    missing.DeletionDate = formatDateUs(deletionDateUs);
    missing.DeletionCause = deletionCause;
  }
  return Object.keys(missing).length === 0 ? known : { ...known, ...missing };
}

/** Differences of coordinates, or JSON for coordinates with more decimals and for collections. */
export type StoredFootprint = Uint8Array | string;

/** Types with the nesting of their coordinates: 0 is one position. */
const nestings = [
  ['Point', 0],
  ['MultiPoint', 1],
  ['LineString', 1],
  ['MultiLineString', 2],
  ['Polygon', 2],
  ['MultiPolygon', 3],
] as const satisfies readonly (readonly [AnyGeometry['type'], number])[];

/** Footprints of the catalogue have six decimals, those of Sentinel-2 twelve. */
const unitsPerDegree = [1e6, 1e12] as const;

type Nested = number | readonly Nested[];

/**
 * Returns the number of type and unit, then each list with its length before it. A position is its difference from the
 * one before, three to six bytes for each axis.
 */
export function storedFootprint(geometry: AnyGeometry): StoredFootprint {
  return compact(geometry, 0) ?? compact(geometry, 1) ?? JSON.stringify(geometry);
}

/** Returns null for a collection, and if a coordinate is not a multiple of the unit, or out of range. */
function compact(geometry: AnyGeometry, unit: 0 | 1): Uint8Array | null {
  if (geometry.type === 'GeometryCollection') return null;
  const { type, coordinates } = geometry;
  const number = nestings.findIndex(([name]) => name === type);
  const scale = unitsPerDegree[unit];
  const bytes = [unit * nestings.length + number];
  const last = [0, 0];
  const add = (value: Nested, nesting: number, axis = 0): boolean => {
    if (typeof value === 'number') {
      const units = Math.round(value * scale);
      if (units / scale !== value || Math.abs(value) > 360) return false;
      addInteger(bytes, units - (last[axis] ?? 0));
      last[axis] = units;
      return true;
    }
    if (nesting > 0) addInteger(bytes, value.length);
    else if (value.length !== 2) return false;
    return value.every((one, i) => add(one, nesting - 1, i));
  };
  return add(coordinates, nestings[number]?.[1] ?? 0) ? Uint8Array.from(bytes) : null;
}

/** Returns the geometry that was stored. */
export function footprintGeometry(stored: StoredFootprint): AnyGeometry {
  // Written by `storedFootprint` from a geometry, as is the other form.
  if (typeof stored === 'string') return JSON.parse(stored) as AnyGeometry;
  const [first = 0] = stored;
  const [type, nesting] = nestings[first % nestings.length] ?? nestings[0];
  const scale = unitsPerDegree[first < nestings.length ? 0 : 1];
  const next = integersAfter(stored, 1);
  let [x, y] = [0, 0];
  const read = (depth: number): Nested => {
    if (depth > 0) return Array.from({ length: next() }, () => read(depth - 1));
    x += next();
    y += next();
    return [x / scale, y / scale];
  };
  return { type, coordinates: read(nesting) } as AnyGeometry;
}

/** Adds an integer in groups of seven bits, the lowest first; the sign is the lowest bit. */
function addInteger(bytes: number[], value: number): void {
  let left = value < 0 ? -2 * value - 1 : 2 * value;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push((left % 0x80) + 0x80);
  bytes.push(left);
}

/** Returns a function that reads the next integer. */
function integersAfter(bytes: Uint8Array, start: number): () => number {
  let at = start;
  return () => {
    let [value, scale] = [0, 1];
    for (; (bytes[at] ?? 0) >= 0x80; at += 1) {
      value += ((bytes[at] ?? 0) - 0x80) * scale;
      scale *= 0x80;
    }
    value += (bytes[at] ?? 0) * scale;
    at += 1;
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  };
}
