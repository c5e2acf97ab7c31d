/** Rows of PostgreSQL sinks, and the statements that write them: a product's row changes only to a newer state. */
import { formatDateUs, readDateUs } from '../../../core/terms/dates.ts';
import type { AnyGeometry, Rings } from '../../../filter/filter-tree.ts';
import { toGeoJson } from '../../../filter/geometry/geojson.ts';
import { factsOfRecord } from '../../../filter/product-facts.ts';
import { type ProductRecord, textOrNull } from '../../../filter/product-record.ts';
import { productView } from '../../../filter/product-view.ts';
import type { SinkDocument } from '../document.ts';
import {
  type FoundTable,
  type FoundTables,
  nameFields,
  type ProductField,
  quoted,
  stateFields,
  type TableSettings,
  type WrittenColumn,
  writtenColumns,
} from './postgres-tables.ts';

/**
 * Classes of notifications: with a record; a deletion with or without one; neither, which only names the product.
 */
type Change = 'recorded' | 'deleted' | 'deleted-unrecorded' | 'named';

/** A document, prepared for the statements. */
export interface PreparedItem {
  /** Product id, in lower case. */
  product: string;
  change: Change;
  /** Rows as JSON objects. */
  productRow: string;
  /** Null without a table of notifications. */
  notificationRow: string | null;
}

/** Prepares a document. Throws for a record that is nested too deeply to be written as JSON. */
export function prepareItem(
  document: SinkDocument,
  { notifications }: Pick<TableSettings, 'notifications'>,
): PreparedItem {
  const isDeletion = document.event === 'deleted';
  const product = document.productId.toLowerCase();
  const row = { ...stateOf(document), ...recordFields(document), product_id: product };
  const record = jsonOf(document.value);
  const unrecorded = isDeletion ? 'deleted-unrecorded' : 'named';
  return {
    product,
    change: document.value === null ? unrecorded : isDeletion ? 'deleted' : 'recorded',
    productRow: jsonWith(row, 'record', record),
    notificationRow:
      notifications === null ? null : jsonWith(notificationOf(document), 'value', record),
  };
}

type Row = Partial<Record<ProductField, unknown>>;

/** PostgreSQL has no year 0000, but a year 1 BC. */
const timeText = (text: string | null) => text?.replace(/^0000(.*)/, '0001$1 BC') ?? null;

const timeOf = (us: number | null) => (us === null ? null : timeText(formatDateUs(us)));

function dateOf(value: unknown): string | null {
  return timeOf(readDateUs(value));
}

/** The same dates as in the product index (`product-writer.ts`). */
function stateOf(document: SinkDocument): Row {
  const { event, subscription, position, receivedAt, value, notificationDate } = document;
  const state = { event, subscription, position, received_at: receivedAt };
  if (event !== 'deleted') {
    const date = dateOf(value?.ModificationDate) ?? dateOf(value?.PublicationDate);
    return { ...state, state_at: date, deleted_at: null, deletion_cause: null };
  }
  const date = dateOf(value?.DeletionDate) ?? timeText(notificationDate) ?? receivedAt;
  const cause = textOrNull(value?.DeletionCause);
  return { ...state, state_at: date, deleted_at: date, deletion_cause: cause };
}

function recordFields({ value, productName }: SinkDocument): Row {
  if (value === null) return { product_name: productName };
  const named: ProductRecord =
    textOrNull(value.Name) === null ? { ...value, Name: productName } : value;
  const facts = factsOfRecord(named, productName);
  return {
    product_name: facts.productName,
    collection: facts.collection,
    platform: facts.platform,
    product_type: facts.productType,
    processing_level: facts.processingLevel,
    sensing_start: timeOf(facts.sensingStartUs),
    sensing_end: timeOf(facts.sensingEndUs),
    publication_date: timeOf(facts.publicationDateUs),
    modification_date: timeOf(facts.modificationDateUs),
    size_bytes: facts.sizeBytes,
    online: facts.online,
    cloud_cover_percent: facts.cloudCoverPercent,
    orbit_number: facts.orbitNumber,
    relative_orbit_number: facts.relativeOrbitNumber,
    orbit_direction: facts.orbitDirection,
    tile: facts.tile,
    processing_baseline: facts.processingBaseline,
    s3_path: textOrNull(value.S3Path),
    footprint: footprintOf(named),
  };
}

function footprintOf(record: ProductRecord): AnyGeometry | null {
  const view = productView(record);
  const geometry = view.geometry();
  return geometry === null || view.footprint() === null ? null : storableOf(toGeoJson(geometry));
}

function storableOf(valid: AnyGeometry): AnyGeometry | null {
  if (valid.type === 'GeometryCollection') {
    const geometries = valid.geometries.flatMap((one) => storableOf(one) ?? []);
    return geometries.length === 0 ? null : { ...valid, geometries };
  }
  if (valid.type === 'Polygon') {
    const rings = ringsWithArea(valid.coordinates);
    return rings.length === 0 ? null : { ...valid, coordinates: rings };
  }
  if (valid.type !== 'MultiPolygon') return valid;
  const parts = valid.coordinates.map(ringsWithArea).filter((rings) => rings.length > 0);
  return parts.length === 0 ? null : { ...valid, coordinates: parts };
}

/** Returns rings of at least three corners: PostGIS stores others, but queries on them fail. */
function ringsWithArea(rings: Rings): Rings {
  const [outline, ...holes] = rings;
  if (outline === undefined || outline.length < 4) return [];
  return [outline, ...holes.filter((hole) => hole.length >= 4)];
}

function notificationOf(document: SinkDocument) {
  return {
    // The same in a replay, which adds no row.
    id: document.notificationId,
    sink: document.sink,
    position: document.position,
    subscription: document.subscription,
    event: document.event,
    product_id: document.productId,
    product_name: document.productName,
    subscription_id: document.subscriptionId,
    ack_id: document.ackId,
    notification_date: timeText(document.notificationDate),
    received_at: document.receivedAt,
    source: document.source,
  };
}

/** Escapes in JSON of characters that PostgreSQL cannot store: NUL, and surrogates without their pair. */
const unstorable = /\\u(?:0000|d[89a-f])/i;

/** Writes JSON; each unstorable character becomes U+FFFD. */
function jsonOf(value: object | null): string {
  const text = JSON.stringify(value);
  return unstorable.test(text) ? JSON.stringify(storable(value)) : text;
}

/** Writes an object with at least one field, and a field that is already JSON. */
function jsonWith(row: object, field: string, json: string): string {
  return `${jsonOf(row).slice(0, -1)},"${field}":${json}}`;
}

function storable(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed().replaceAll('\0', '\ufffd');
  if (Array.isArray(value)) return value.map(storable);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, one]) => [storable(key), storable(one)]);
  return Object.fromEntries(entries);
}

/** Returns the statements of a batch, with their only parameter. */
export type BatchSql = (items: readonly PreparedItem[]) => (readonly [sql: string, rows: string])[];

/** Creates the statements that write into the tables. */
export function createBatchSql(
  { tables, postgis }: FoundTables,
  deleted: 'mark' | 'remove',
): BatchSql {
  const written = (purpose: WrittenTable['purpose']): WrittenTable | undefined => {
    const found = tables.find((one) => one.purpose === purpose);
    return found && { ...found, written: writtenColumns(found, postgis) };
  };
  const products = written('products');
  const removed = deleted === 'remove' ? written('removed') : undefined;
  const notifications = written('notifications');
  if (products === undefined) throw new Error('The sink has no table of products.');
  const changes = removed === undefined ? markingSql(products) : removingSql(products, removed);
  const insert = notifications && insertNewSql(notifications);
  const lock = removed === undefined ? [] : [lockSql];
  return (items) => {
    const all = listOf(items.map(({ productRow }) => productRow));
    const locks = lock.map((sql) => [sql, all] as const);
    const ofProducts = changes.flatMap(({ kinds, statements }) => {
      const rows = items.filter(({ change }) => kinds.includes(change));
      const list = listOf(rows.map(({ productRow }) => productRow));
      return rows.length === 0 ? [] : statements.map((sql) => [sql, list] as const);
    });
    if (insert === undefined) return [...locks, ...ofProducts];
    const rows = items.map(({ notificationRow }) => notificationRow);
    return [...locks, ...ofProducts, [insert, listOf(rows)]];
  };
}

/**
 * Locks the products of a batch until its end: otherwise, another program that writes the same two tables could move a
 * product to the one that this program does not see yet.
 */
const lockSql = `SELECT pg_advisory_xact_lock(id) FROM (
  SELECT DISTINCT hashtextextended('earshot ' || (one ->> 'product_id'), 0) AS id
  FROM jsonb_array_elements($1::jsonb) AS one ORDER BY id) AS ids`;

const listOf = (rows: readonly (string | null)[]) => `[${rows.join(',')}]`;

type WrittenTable = FoundTable & { written: WrittenColumn[] };

interface ChangeSql {
  kinds: readonly Change[];
  statements: readonly string[];
}

/** Statements of a table in which deleted products stay. */
function markingSql(table: WrittenTable): ChangeSql[] {
  const unrecorded = ({ field }: WrittenColumn) => stateFields.has(field) || nameFields.has(field);
  return [
    { kinds: ['recorded', 'deleted'], statements: [upsertSql(table, () => true)] },
    {
      kinds: ['deleted-unrecorded'],
      statements: [upsertSql(table, ({ field }) => stateFields.has(field), unrecorded)],
    },
    { kinds: ['named'], statements: [insertNewSql(table, unrecorded)] },
  ];
}

/** Statements of a table without deleted products. */
function removingSql(table: WrittenTable, removed: WrittenTable): ChangeSql[] {
  const unrecorded = ({ field }: WrittenColumn) => stateFields.has(field) || nameFields.has(field);
  const isNew = `gone.product_id = new.product_id::text`;
  const isGone = (and: string) =>
    `WHERE NOT EXISTS (SELECT FROM ${removed.sqlName} AS gone WHERE ${isNew}${and})`;
  const [stateOfNew, stateOfGone] = [newState('false'), rowState('gone', removed, 'true')];
  const isSame = `${columnOf(table, 'product_id', 'known')} = new.product_id`;
  const [removal, stateOfKnown] = [newState('true'), rowState('known', table)];
  const rows = newRows(table, ({ field }) =>
    ['product_id', 'state_at', 'position'].includes(field),
  );
  return [
    {
      kinds: ['recorded'],
      statements: [
        upsertSql(
          table,
          () => true,
          () => true,
          isGone(` AND ${stateOfGone} > ${stateOfNew}`),
        ),
        `DELETE FROM ${removed.sqlName} AS gone USING ${rows}
         WHERE ${isNew} AND ${stateOfNew} > ${stateOfGone}`,
      ],
    },
    {
      kinds: ['deleted', 'deleted-unrecorded'],
      statements: [
        `INSERT INTO ${removed.sqlName} AS gone (product_id, state_at, position)
         SELECT new.product_id::text, new.state_at, new.position FROM ${rows}
         WHERE NOT EXISTS (SELECT FROM ${table.sqlName} AS known
           WHERE ${isSame} AND ${stateOfKnown} > ${removal})
         ON CONFLICT (product_id) DO UPDATE
         SET state_at = excluded.state_at, position = excluded.position
         WHERE ${rowState('excluded', removed, 'true')} > ${stateOfGone}`,
        `DELETE FROM ${table.sqlName} AS known USING ${rows}
         WHERE ${isSame} AND ${removal} > ${stateOfKnown}`,
      ],
    },
    {
      kinds: ['named'],
      statements: [insertNewSql(table, unrecorded, isGone(''))],
    },
  ];
}

type Selects = (column: WrittenColumn) => boolean;

/** Inserts rows, or updates the selected columns of known rows to a newer state. */
function upsertSql(
  table: WrittenTable,
  updates: Selects,
  inserts: Selects = () => true,
  condition = '',
): string {
  const sets = table.written
    .filter((one) => one.column !== table.key && updates(one))
    .map(({ column }) => `${quoted(column)} = excluded.${quoted(column)}`);
  return `${insertSql(table, inserts, condition)}
    ON CONFLICT (${quoted(table.key)}) DO UPDATE SET ${sets.join(', ')}
    WHERE ${rowState('excluded', table)} > ${rowState('known', table)}`;
}

/** Inserts rows with unknown keys. A violation of another constraint is an error. */
function insertNewSql(table: WrittenTable, inserts?: Selects, condition?: string): string {
  return `${insertSql(table, inserts, condition)} ON CONFLICT (${quoted(table.key)}) DO NOTHING`;
}

function insertSql(table: WrittenTable, inserts: Selects = () => true, condition = ''): string {
  const columns = table.written.filter(inserts);
  const names = columns.map(({ column }) => quoted(column)).join(', ');
  const values = columns.map(({ value }) => value).join(', ');
  return `INSERT INTO ${table.sqlName} AS known (${names})
    SELECT ${values} FROM ${newRows(table, inserts)} ${condition}`;
}

/** The rows of the parameter, in the order of the key, so that two programs rarely cause a deadlock. */
function newRows({ written, key }: WrittenTable, selects: Selects): string {
  const columns = written.filter(selects);
  const list = columns.map(({ field, type }) => `${quoted(field)} ${type}`).join(', ');
  const order = columns.find(({ column }) => column === key)?.field ?? key;
  return `(SELECT * FROM jsonb_to_recordset($1::jsonb) AS read(${list})
    ORDER BY ${quoted(order)}) AS new`;
}

/*
 * States are compared by time, then a deletion is newer than a record, then by position. A record without a date is
 * older than all others.
 */
const stateSql = (at: string, isDeleted: string, position: string) =>
  `(coalesce(${at}::timestamptz, '-infinity'), ${isDeleted}, coalesce(${position}, 0))`;

const newState = (isDeleted: string) => stateSql('new.state_at', isDeleted, 'new.position');

function rowState(alias: string, table: WrittenTable, isDeleted?: string): string {
  const deletedAt = columnOf(table, 'deleted_at', alias);
  return stateSql(
    columnOf(table, 'state_at', alias) ?? 'NULL',
    isDeleted ?? (deletedAt === null ? 'false' : `${deletedAt} IS NOT NULL`),
    columnOf(table, 'position', alias) ?? 'NULL',
  );
}

function columnOf({ written }: WrittenTable, field: string, alias: string): string | null {
  const column = written.find((one) => one.field === field)?.column;
  return column === undefined ? null : `${alias}.${quoted(column)}`;
}
