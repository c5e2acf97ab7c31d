/** Writes notifications into the index, one after the other, in the caller's transaction. */
import { readDateUs } from '../../../core/terms/dates.ts';
import { boxesOf } from '../../../filter/geometry/shape.ts';
import {
  type DerivedColumns,
  deriveColumns,
  derivedColumns,
} from '../../../filter/product-facts.ts';
import { type ProductView, productView } from '../../../filter/product-view.ts';
import type { ProductRecord } from '../../../filter/values.ts';
import { type Database, perConnection, prepared } from '../../../store/engine/database.ts';
import {
  completeRecord,
  receivedUnits,
  type StoredFootprint,
  sensingUnits,
  storedFootprint,
  storedPath,
} from './product-schema.ts';

/** A row of the log with its record. */
export interface LoggedNotification {
  position: number;
  productId: string;
  productName: string | null;
  event: string;
  /** Name in the URL path. */
  subscription: string | null;
  /** `push` or `reconcile`. */
  source: string;
  notificationDateUs: number | null;
  receivedAtUs: number;
  /** Null for a notification without a record. */
  record: ProductRecord | null;
}

/** Columns of the state: the newest record that is not of a deletion, and the newest deletion, with or without a record. */
const registers = [
  'life_us',
  'life_position',
  'gone_us',
  'gone_record_us',
  'gone_position',
] as const;
type ProductState = Record<(typeof registers)[number], number | null>;

type StoredProduct = ProductState & {
  id: number;
  name: string | null;
  sensing_start_us: number | null;
  box_id: number;
};

/** A record without a date counts as older than one with a date. */
const undatedUs = -1;

const unknownState = Object.fromEntries(registers.map((name) => [name, null])) as ProductState;

const stateColumns = [...registers, 'record_position', 'deleted', 'deletion_us'];
const recordColumns = [...stateColumns, 'deletion_cause', ...derivedColumns];
const marks = (count: number) => Array(count).fill('?').join(', ');

const findSql = `SELECT id, name, sensing_start_us, box_id, ${registers.join(', ')}
  FROM product WHERE product_id = ?`;
const writeSql = `INSERT INTO product (id, product_id, received_at_us, ${recordColumns.join(', ')})
  VALUES (${marks(3 + recordColumns.length)}) ON CONFLICT (product_id) DO UPDATE SET
  ${recordColumns.map((column) => `${column} = excluded.${column}`).join(', ')}`;
// With RETURNING in the statement above, FTS5 would write a segment for each name: a fifth of all processor time.
const boxIdSql = 'SELECT box_id FROM product WHERE id = ?';
const insertBareSql =
  'INSERT INTO product (id, product_id, received_at_us, deleted) VALUES (?, ?, ?, 0)';
const updateStateSql = `UPDATE product SET ${stateColumns.join(' = ?, ')} = ? WHERE id = ?`;
const insertBoxSql = `INSERT INTO product_box VALUES (${marks(9)})`;
const insertEventSql = `INSERT INTO product_event (position, product, subscription, event, event_us, state_us,
    notification_us, received_us, source) VALUES (${marks(9)})`;

/** Writes one notification. `recordAt` reads the record of a notification that is already indexed. */
export function writeNotification(
  index: Database,
  notification: LoggedNotification,
  recordAt: (position: number) => ProductRecord | null,
): void {
  const { position, productId, record } = notification;
  const known = prepared<[string], StoredProduct>(index, findSql).get(productId);
  const isLarger = (other: number) => JSON.stringify(record) > JSON.stringify(recordAt(other));
  const state = updated(known ?? unknownState, notification, isLarger);
  const { recordPosition } = currentOf(state);
  const id = known?.id ?? position;
  if (recordPosition === position && record !== null) {
    writeRecord(index, known, { ...notification, record }, state);
  } else {
    if (recordPosition === null) writeNameOnly(index, known, notification);
    prepared(index, updateStateSql).run(...stateValues(state), id);
  }
  writeEvent(index, id, notification);
}

/** Removes a product and its events. */
export function removeProduct(index: Database, id: number): void {
  const removed = prepared<[number], Pick<StoredProduct, 'name' | 'box_id'>>(
    index,
    'DELETE FROM product WHERE id = ? RETURNING name, box_id',
  ).get(id);
  writeName(index, id, removed?.name ?? null, null);
  removeFootprint(index, id, removed?.box_id);
  prepared(index, 'DELETE FROM product_event WHERE product = ?').run(id);
}

/** Writes or rewrites the product from a new record. */
function writeRecord(
  index: Database,
  known: StoredProduct | undefined,
  notification: LoggedNotification & { record: ProductRecord },
  state: ProductState,
): void {
  const { record, productId, productName, position, receivedAtUs } = notification;
  const { DeletionCause: cause } = record;
  const { deleted, deletionDateUs } = currentOf(state);
  const deletionCause = deleted && typeof cause === 'string' ? cause : null;
  const identity = { productId, productName, deletionDateUs, deletionCause };
  const complete = completeRecord(record, identity);
  const view = productView(complete);
  const columns = deriveColumns(view, complete, productName);
  const { s3_path: path, name } = columns;
  const stored = { ...columns, s3_path: path === null ? null : storedPath(path, name) };
  const values = derivedColumns.map((column) => stored[column]);
  const all = [...stateValues(state), deletionCause, ...values];
  const id = known?.id ?? position;
  prepared(index, writeSql).run(id, productId, receivedAtUs, ...all);
  writeName(index, id, known?.name ?? null, name);
  writeFootprint(index, id, known, view, columns);
  writeAttributeNames(index, view);
}

/** Names that the connection has written. After a transaction that failed, the connection is closed. */
const writtenNames = perConnection(() => new Set<string>());
const writtenNamesMax = 10_000;

function writeAttributeNames(index: Database, view: ProductView): void {
  const written = writtenNames(index);
  if (written.size > writtenNamesMax) written.clear();
  for (const name of view.attributeNames()) {
    if (written.has(name)) continue;
    prepared(index, 'INSERT OR IGNORE INTO product_attribute VALUES (?)').run(name);
    written.add(name);
  }
}

/** Writes the name of a product without a record: the largest of all names, so that their order does not matter. */
function writeNameOnly(
  index: Database,
  known: StoredProduct | undefined,
  { productId, productName, position, receivedAtUs }: LoggedNotification,
): void {
  const id = known?.id ?? position;
  if (known === undefined) prepared(index, insertBareSql).run(id, productId, receivedAtUs);
  if ((productName ?? '') <= (known?.name ?? '')) return;
  prepared(index, 'UPDATE product SET name = ? WHERE id = ?').run(productName, id);
  writeName(index, id, known?.name ?? null, productName);
}

/** Replaces a product's name in the name index. */
function writeName(index: Database, id: number, old: string | null, name: string | null): void {
  if (old === name) return;
  if (old !== null) prepared(index, 'DELETE FROM product_name WHERE rowid = ?').run(id);
  if (name !== null)
    prepared(index, 'INSERT INTO product_name (rowid, name) VALUES (?, ?)').run(id, name);
}

/** Replaces a product's footprint. Most changes of a product leave it as it is. */
function writeFootprint(
  index: Database,
  id: number,
  known: StoredProduct | undefined,
  view: ProductView,
  { sensing_start_us: sensingStartUs }: DerivedColumns,
): void {
  const shape = view.footprint();
  const geometry = view.geometry();
  const stored = geometry === null || shape === null ? null : storedFootprint(geometry);
  const boxId = Number(prepared(index, boxIdSql).pluck().get(id));
  if (known !== undefined) {
    const isSame = known.sensing_start_us === sensingStartUs && known.box_id === boxId;
    if (isSame && hasFootprint(index, id, stored)) return;
    removeFootprint(index, id, known.box_id);
  }
  if (stored === null || shape === null) return;
  prepared(index, 'INSERT INTO product_footprint VALUES (?, ?)').run(id, stored);
  // A product without sensing time matches no filter on it, so any value is correct.
  const [sensed, received] = [sensingUnits(sensingStartUs ?? 0), receivedUnits(id)];
  const times = [sensed, sensed, received, received];
  const insert = prepared(index, insertBoxSql);
  boxesOf(shape).forEach(({ west, east, south, north }, part) => {
    insert.run(boxId + 128 * part, west, east, south, north, ...times);
  });
}

function hasFootprint(index: Database, id: number, footprint: StoredFootprint | null): boolean {
  const sql = 'SELECT geometry FROM product_footprint WHERE id = ?';
  const known = prepared<[number], StoredFootprint>(index, sql).pluck().get(id) ?? null;
  if (known === null || typeof known === 'string') return known === footprint;
  return footprint instanceof Uint8Array && Buffer.compare(known, footprint) === 0;
}

function removeFootprint(index: Database, id: number, boxId = 0): void {
  prepared(index, 'DELETE FROM product_footprint WHERE id = ?').run(id);
  prepared(index, 'DELETE FROM product_box WHERE id IN (?, ?)').run(boxId, boxId + 128);
}

function writeEvent(index: Database, product: number, notification: LoggedNotification): void {
  const { position, subscription, event, record, source } = notification;
  const { notificationDateUs, receivedAtUs } = notification;
  // The catalogue's date of the event, used by reconciliation (facts, catalogue 5).
  const dates: Record<string, unknown> = {
    created: record?.PublicationDate,
    modified: record?.ModificationDate,
    deleted: record?.DeletionDate,
  };
  prepared(index, insertEventSql).run(
    ...[position, product, subscription, event, readDateUs(dates[event])],
    ...[readDateUs(record?.ModificationDate), notificationDateUs, receivedAtUs, source],
  );
}

/**
 * Applies a notification. Each value only grows, so that neither order nor repetition matters. `isLarger` chooses between
 * two records of the same time: it compares the record of the notification with the one at a position.
 */
function updated(
  state: ProductState,
  { position, event, record, notificationDateUs, receivedAtUs }: LoggedNotification,
  isLarger: (position: number) => boolean,
): ProductState {
  const isNewer = (recordUs: number | null, us: number | null, other: number | null) =>
    recordUs !== null &&
    (us === null || other === null || recordUs > us || (recordUs === us && isLarger(other)));
  if (event === 'deleted') {
    // The latest possible time of the deletion.
    const notifiedUs = notificationDateUs ?? receivedAtUs;
    const recordUs = record && (readDateUs(record.DeletionDate) ?? notifiedUs);
    const deletedUs = recordUs ?? notifiedUs;
    const gone = { ...state, gone_us: Math.max(state.gone_us ?? deletedUs, deletedUs) };
    if (!isNewer(recordUs, state.gone_record_us, state.gone_position)) return gone;
    return { ...gone, gone_record_us: recordUs, gone_position: position };
  }
  // A notification without a record can only report a deletion.
  const recordUs =
    record &&
    (readDateUs(record.ModificationDate) ?? readDateUs(record.PublicationDate) ?? undatedUs);
  if (!isNewer(recordUs, state.life_us, state.life_position)) return state;
  return { ...state, life_us: recordUs, life_position: position };
}

/** Returns the current state. On a tie, the deletion wins: a deleted product is not modified. */
function currentOf(state: ProductState): {
  deleted: boolean;
  /** Position of the notification with the product's current record; null without any record. */
  recordPosition: number | null;
  /** Deletion time of a tombstone: from its record, otherwise from the newest deletion. */
  deletionDateUs: number | null;
} {
  const { life_us: lifeUs, life_position: lifePosition, gone_us: goneUs } = state;
  const { gone_record_us: goneRecordUs, gone_position: gonePosition } = state;
  const deleted = goneUs !== null && goneUs >= (lifeUs ?? goneUs);
  if (!deleted) return { deleted, recordPosition: lifePosition, deletionDateUs: null };
  // After a deletion without a record, the last known record stays.
  const goneIsNewest = goneRecordUs !== null && goneRecordUs >= (lifeUs ?? goneRecordUs);
  const recordPosition = goneIsNewest ? gonePosition : lifePosition;
  const isOwn = recordPosition === gonePosition && gonePosition !== null;
  return { deleted, recordPosition, deletionDateUs: isOwn ? goneRecordUs : goneUs };
}

/** Returns the values in the order of `stateColumns`. */
function stateValues(state: ProductState) {
  const { deleted, recordPosition, deletionDateUs } = currentOf(state);
  const values = registers.map((name) => state[name]);
  return [...values, recordPosition, Number(deleted), deletionDateUs];
}
