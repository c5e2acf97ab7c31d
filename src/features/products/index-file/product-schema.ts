/** Tables of the product index, and the units of the box index. */

import { dayUs } from '../../../core/terms/dates.ts';
import { type Column, derivedDefinitions } from '../../../filter/product-facts.ts';

/** Increased with each change of the tables or of derived values. An index of another version is rebuilt. */
export const productSchemaVersion = 1;

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
const byField = new Map(columns.map((column) => [column.field, column]));
const byAttribute = new Map(columns.map((column) => [column.attribute, column]));

/** Returns the column of a field; undefined if there is none. */
export function columnOfField(field: string): Column | undefined {
  return byField.get(field);
}

/** Returns the column of an attribute; undefined if there is none. */
export function columnOfAttribute(name: string): Column | undefined {
  return byAttribute.get(name);
}

/**
 * Returns a path without the product's name at its end, which leaves a third of it. The result ends with a slash in
 * this case only: other paths that end with one are stored as JSON.
 */
export function storedPath(path: string, name: string | null): string {
  if (name !== null && name !== '' && path.endsWith(`/${name}`)) return path.slice(0, -name.length);
  return path.startsWith('"') || path.endsWith('/') ? JSON.stringify(path) : path;
}

/** Returns the path that was stored. `name` is that of the row. */
export function fullPath(stored: string, name: string | null): string {
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
 * `product_box` finds boxes on the globe by sensing time and range of ids, in the units above. A footprint that crosses
 * the antimeridian has two boxes, with ids 2n and 2n+1.
 */
export const productTables = `
  CREATE TABLE progress (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL,
    mark TEXT,
    skipped INTEGER NOT NULL
  ) STRICT;
  INSERT INTO progress VALUES (1, 0, NULL, 0);

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
    datetime_us INTEGER AS (coalesce(sensing_start_us, publication_us, received_at_us))
  ) STRICT;
  CREATE UNIQUE INDEX product_by_id ON product (product_id);

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

/** Definitions of the other indexes, by name. */
export const productIndexes = {
  product_by_name: 'product (name)',
  product_by_collection: 'product (collection, sensing_start_us)',
  product_by_type: 'product (product_type, sensing_start_us)',
  product_by_sensing: 'product (sensing_start_us)',
  product_by_datetime: 'product (datetime_us)',
  product_by_sensing_end: 'product (sensing_end_us)',
  product_by_publication: 'product (publication_us)',
  product_by_modification: 'product (modification_us)',
  product_by_deletion: 'product (deletion_us) WHERE deleted = 1',
  product_by_orbit: 'product (orbit_number)',
  product_by_tile: 'product (tile) WHERE tile IS NOT NULL',
  product_event_by_product: 'product_event (product)',
};
