/** Tables of the product index, and the units of the box index. */

import { dayUs, formatDateUs, readDateUs } from '../../../core/terms/dates.ts';
import { jsonOf } from '../../../core/terms/text.ts';
import { satelliteOf } from '../../../filter/fields.ts';
import type { AnyGeometry } from '../../../filter/filter-tree.ts';
import { type Column, derivedDefinitions, withNamedFacts } from '../../../filter/product-facts.ts';
import type { ProductRow } from '../../../filter/products.ts';
import { type ProductRecord, recordIn } from '../../../filter/values.ts';
import { bodyDocument } from '../../../store/bodies/body-document.ts';

const sqlTypes = {
  text: 'TEXT',
  guid: 'TEXT',
  number: 'REAL',
  date: 'INTEGER',
  boolean: 'INTEGER',
  integer: 'INTEGER',
} as const satisfies Record<Column['type'], string>;

const columns: readonly Column[] = [
  ...derivedDefinitions,
  { name: 'product_id', type: 'guid', field: 'Id' },
  { name: 'deletion_us', type: 'date', field: 'DeletionDate' },
  { name: 'deletion_cause', type: 'text', field: 'DeletionCause' },
];

export const columnsByField = new Map(columns.map((column) => [column.field, column]));

export const columnsByAttribute = new Map(columns.map((column) => [column.attribute, column]));

/**
 * Returns a path without the product's name at its end, which leaves a third of it. The result ends with a slash in
 * this case only: other paths that end with one are stored as JSON.
 */
export function storedPath(path: string, name: string | null): string {
  if (name !== null && name !== '' && path.endsWith(`/${name}`)) return path.slice(0, -name.length);
  return path.startsWith('"') || path.endsWith('/') ? JSON.stringify(path) : path;
}

/** Returns the path that was stored. `name` is that of the row. */
function fullPath(stored: string, name: string | null): string {
  if (stored.endsWith('/')) return `${stored}${name}`;
  // Written by `storedPath`.
  return stored.startsWith('"') ? (JSON.parse(stored) as string) : stored;
}

/*
 * The box index splits its nodes along the longest side. An hour counts as 0.67 degrees: searches for a place and a
 * short time then read few nodes (measurements: docs/decisions/0053-indexing-speed.md). SQLite stores 32 bits of each
 * value and widens the box by the rounding error, a minute or a few positions; the columns decide.
 */
const unitsPerDay = 16;

const epochUs = Date.UTC(2000, 0, 1) * 1000;

/** Converts a time to units of the box index since 2000. */
export const sensingUnits = (us: number): number => ((us - epochUs) / dayUs) * unitsPerDay;

/** Converts a position of the log (a product's id): the catalogue publishes about 32,768 a day (facts, catalogue 7). */
export const receivedUnits = (position: number): number => (position / 32_768) * unitsPerDay;

/** SQL for a cloud cover as a part of a box id: 1 to 101 in percent, rounded down; NULL without one. */
export const cloudInBox = (percent: string): string =>
  `1 + CAST(max(0, min(100, ${percent})) AS INTEGER)`;

/** An index of products: its columns, and the condition of its rows. */
interface ProductIndex {
  name: string;
  columns: readonly string[];
  isUnique?: boolean;
  where?: string;
}

export const productIndexes: readonly ProductIndex[] = [
  { name: 'product_by_id', columns: ['product_id'], isUnique: true },
  { name: 'product_by_name', columns: ['name'] },
  { name: 'product_by_collection', columns: ['collection', 'sensing_start_us'] },
  { name: 'product_by_type', columns: ['product_type', 'sensing_start_us'] },
  { name: 'product_by_sensing', columns: ['sensing_start_us'] },
  { name: 'product_by_datetime', columns: ['datetime_us'] },
  { name: 'product_by_sensing_end', columns: ['sensing_end_us'] },
  { name: 'product_by_publication', columns: ['publication_us'] },
  { name: 'product_by_modification', columns: ['modification_us'] },
  { name: 'product_by_deletion', columns: ['deletion_us'], where: 'deleted = 1' },
  { name: 'product_by_orbit', columns: ['orbit_number'] },
  { name: 'product_by_tile', columns: ['tile'], where: 'tile IS NOT NULL' },
];

function creationOf({ name, columns, isUnique = false, where }: ProductIndex): string {
  const rows = where === undefined ? '' : `WHERE ${where}`;
  return `CREATE ${isUnique ? 'UNIQUE ' : ''}INDEX ${name} ON product (${columns.join(', ')}) ${rows};`;
}

/*
 * `progress` is the cursor, with a mark of its notification. The mark shows that the log was replaced by another one,
 * such as a restored backup.
 *
 * `product` has one narrow row per product, in the order of first receipt: its id is the position of the first
 * notification. Footprints and rarely filtered values are stored elsewhere. `life_*` and `gone_*` define the state
 * (product-writer.ts); the columns after them are derived from the record at `record_position`. Product ids are GUIDs,
 * which are case-insensitive. `datetime_us` is the `datetime` of STAC items; as an expression, an index of it could not
 * seek a pair of value and id.
 *
 * `product_event` has one row per notification, with the dates of its own record: a later record changes the product's
 * row, not these. The time of receipt has no index, which would slow indexing by 4% and take 19 bytes per row: the
 * index of the log gives the positions.
 *
 * `product_attribute` has the names of all attributes of all records: a condition on another one needs no record.
 *
 * `product_name` finds trigrams of names. It stores no positions (detail=none), because names are compared afterwards.
 * `product_box` finds boxes on the globe by sensing time and range of ids, in the units above. A box id has the
 * product's id, a bit, and the cloud cover in seven bits (0 without one), which a search reads with the box. A footprint
 * that crosses the antimeridian has two boxes: `box_id`, and the same with the bit.
 *
 * A change needs a higher `productSchemaVersion` (product-file.ts).
 */
export const productTables = `
  CREATE TABLE progress (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL,
    mark TEXT
  ) STRICT;
  INSERT INTO progress VALUES (1, 0, NULL);

  CREATE TABLE product (
    id INTEGER PRIMARY KEY,
    product_id TEXT NOT NULL COLLATE NOCASE,
    received_at_us INTEGER NOT NULL,
    life_us INTEGER,
    life_position INTEGER,
    gone_us INTEGER,
    gone_record_us INTEGER,
    gone_position INTEGER,
    record_position INTEGER,
    deleted INTEGER NOT NULL,
    deletion_us INTEGER,
    deletion_cause TEXT,
    ${derivedDefinitions.map(({ name, type }) => `${name} ${sqlTypes[type]}`).join(',\n    ')},
    datetime_us INTEGER AS (coalesce(sensing_start_us, publication_us, received_at_us)),
    box_id INTEGER AS (256 * id + coalesce(${cloudInBox('cloud_cover')}, 0))
  ) STRICT;
  ${productIndexes.map(creationOf).join('\n  ')}

  CREATE TABLE product_event (
    position INTEGER PRIMARY KEY,
    product INTEGER NOT NULL,
    subscription TEXT,
    event TEXT NOT NULL,
    event_us INTEGER,
    state_us INTEGER,
    notification_us INTEGER,
    received_us INTEGER NOT NULL,
    source TEXT NOT NULL
  ) STRICT;
  CREATE INDEX product_event_by_product ON product_event (product);

  CREATE TABLE product_attribute (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

  CREATE TABLE product_footprint (
    id INTEGER PRIMARY KEY,
    geometry ANY NOT NULL
  ) STRICT;
  CREATE VIRTUAL TABLE product_name USING fts5(
    name, content='', contentless_delete=1, detail='none', tokenize='trigram case_sensitive 1'
  );
  CREATE VIRTUAL TABLE product_box USING rtree(
    id, west, east, south, north, sensed_from, sensed_to, received_from, received_to
  );
`;

/** Columns selected by a search. */
export const rowColumns = `p.id AS position, p.product_id AS productId,
  p.platform_name AS platformName, p.platform_serial AS platformSerial, p.online,
  ${derivedDefinitions.flatMap((one) => ('fact' in one ? `p.${one.name} AS ${one.fact}` : [])).join(', ')},
  p.received_at_us AS receivedAtUs, p.deletion_us AS deletionDateUs,
  p.deletion_cause AS deletionCause, p.record_position AS recordPosition`;

/** A row as returned by SQLite, with the stored footprint if the search has footprints. */
export type Candidate = Omit<ProductRow, 'platform' | 'online'> & {
  platformName: string | null;
  platformSerial: string | null;
  online: number | null;
  recordPosition: number | null;
  footprint?: StoredFootprint | null;
};

export function toProductRow(candidate: Candidate): ProductRow {
  const { platformName, platformSerial, online, ...others } = candidate;
  const { recordPosition: _position, footprint: _footprint, ...row } = others;
  const { productName, collection, s3Path } = row;
  return withNamedFacts({
    ...row,
    platform: satelliteOf({ platformName, platformSerial, productName, collection }),
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

/**
 * Returns the record as filters and outputs use it: as received, with Id and Name added if missing, and with
 * the date of deletion for a tombstone.
 */
export function completeRecord(
  record: ProductRecord | null,
  row: Pick<ProductRow, 'productId' | 'productName' | 'deletionDateUs' | 'deletionCause'>,
): ProductRecord {
  const { productId, productName, deletionDateUs, deletionCause } = row;
  const known = record ?? {};
  const missing: Record<string, unknown> = {};
  if (known.Id !== productId) missing.Id = productId;
  if (typeof known.Name !== 'string' && productName !== null) missing.Name = productName;
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
