/** Writes notifications into the index, one after the other, within a transaction of the caller's. */
import type { Database } from 'better-sqlite3';
import { boxesOf } from '../../filter/geometry/shape.ts';
import type { ProductRecord } from '../../filter/product-record.ts';
import { type ProductView, productView } from '../../filter/product-view.ts';
import { prepared } from '../engine/database.ts';
import { completeRecord, dateUs } from './product-record.ts';
import {
  cloudUnits,
  deriveColumns,
  derivedColumns,
  receivedUnits,
  sensingDays,
} from './product-schema.ts';

/** A row of the log with its record, as the index needs it. */
export interface LoggedNotification {
  position: number;
  productId: string;
  productName: string | null;
  event: string;
  /** The name in the URL path. */
  subscription: string | null;
  /** How it came: `push` or `reconcile`. */
  source: string;
  notificationDateUs: number | null;
  receivedAtUs: number;
  /** Null for one that came without. */
  record: ProductRecord | null;
}

/** The state of a product: its newest record alive, and its newest deletion. */
interface ProductState {
  lifeUs: number | null;
  lifePosition: number | null;
  /** The time of the newest deletion, with or without a record. */
  goneUs: number | null;
  goneRecordUs: number | null;
  gonePosition: number | null;
}

/** What one notification reports of a product's state. */
interface StateNews {
  position: number;
  deleted: boolean;
  /**
   * When the catalogue was in this state, in microseconds: ModificationDate, or DeletionDate. Null where
   * the notification came without a record: then it reports no state but that of a deletion.
   */
  recordUs: number | null;
  /** For a deletion, when it is known to have happened at the latest. */
  notifiedUs: number;
}

type StoredProduct = ProductState & { id: number; name: string | null };

/** A record without any date is older than one that has one. */
const undatedUs = -1;

const unknownState: ProductState = {
  lifeUs: null,
  lifePosition: null,
  goneUs: null,
  goneRecordUs: null,
  gonePosition: null,
};

const stateColumns = [
  'life_us',
  'life_position',
  'gone_us',
  'gone_record_us',
  'gone_position',
  'record_position',
  'deleted',
  'deletion_us',
];
const recordColumns = [...stateColumns, 'deletion_cause', ...derivedColumns];
const assigned = (columns: readonly string[]) => columns.map((one) => `${one} = ?`).join(', ');
const marks = (count: number) => Array(count).fill('?').join(', ');

const findSql = `SELECT id, life_us AS lifeUs, life_position AS lifePosition, gone_us AS goneUs,
    gone_record_us AS goneRecordUs, gone_position AS gonePosition, name
  FROM product WHERE product_id = ?`;
const insertSql = `INSERT INTO product (id, product_id, received_at_us, ${recordColumns.join(', ')})
  VALUES (${marks(3 + recordColumns.length)})`;
const insertBareSql =
  'INSERT INTO product (id, product_id, received_at_us, deleted) VALUES (?, ?, ?, 0)';
const updateSql = `UPDATE product SET ${assigned(recordColumns)} WHERE id = ?`;
const updateStateSql = `UPDATE product SET ${assigned(stateColumns)} WHERE id = ?`;
const insertEventSql = `INSERT INTO product_event (position, product, subscription, event, event_us, state_us,
    notification_us, received_us, source) VALUES (${marks(9)})`;

/** Writes one notification. `recordAt` reads the record of a notification that is indexed already. */
export function writeNotification(
  index: Database,
  notification: LoggedNotification,
  recordAt: (position: number) => ProductRecord | null,
): void {
  const { position, productId, record } = notification;
  const known = prepared<[string], StoredProduct>(index, findSql).get(productId);
  const isLarger = (held: number) => JSON.stringify(record) > JSON.stringify(recordAt(held));
  const state = withNews(known ?? unknownState, newsOf(notification), isLarger);
  const { recordPosition } = currentOf(state);
  const id = known?.id ?? position;
  if (recordPosition === position && record !== null) {
    writeRecord(index, known, { ...notification, record }, state);
  } else {
    if (recordPosition === null) writeNameAlone(index, known, notification);
    prepared(index, updateStateSql).run(...stateValues(state), id);
  }
  writeEvent(index, id, notification);
}

/** Removes a product with its events. */
export function removeProduct(index: Database, id: number): void {
  const removed = prepared<[number], { name: string | null }>(
    index,
    'DELETE FROM product WHERE id = ? RETURNING name',
  ).get(id);
  writeName(index, id, removed?.name ?? null, null);
  removePlace(index, id);
  prepared(index, 'DELETE FROM product_event WHERE product = ?').run(id);
}

/** Writes the product again from a record that has just come. */
function writeRecord(
  index: Database,
  known: StoredProduct | undefined,
  notification: LoggedNotification & { record: ProductRecord },
  state: ProductState,
): void {
  const { record, productId, productName, position, receivedAtUs } = notification;
  const { DeletionCause: cause } = record;
  const { deleted, deletionUs } = currentOf(state);
  const deletionCause = deleted && typeof cause === 'string' ? cause : null;
  const identity = { productId, name: productName, deletionUs, deletionCause };
  const complete = completeRecord(record, identity);
  const view = productView(complete);
  const columns = deriveColumns(view, complete, productName);
  const values = derivedColumns.map((column) => columns[column]);
  const all = [...stateValues(state), deletionCause, ...values];
  if (known === undefined)
    prepared(index, insertSql).run(position, productId, receivedAtUs, ...all);
  else prepared(index, updateSql).run(...all, known.id);
  const id = known?.id ?? position;
  writeName(index, id, known?.name ?? null, columns.name);
  // A new product cannot have an old place.
  if (known !== undefined) removePlace(index, id);
  writePlace(index, id, view, columns.cloud_cover);
}

/** A name without a record is better than none; which of several must not depend on the order. */
function writeNameAlone(
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

/** Makes a product found by its name, and no longer by the one before. */
function writeName(index: Database, id: number, old: string | null, name: string | null): void {
  if (old === name) return;
  if (old !== null) prepared(index, 'DELETE FROM product_name WHERE rowid = ?').run(id);
  if (name !== null)
    prepared(index, 'INSERT INTO product_name (rowid, name) VALUES (?, ?)').run(id, name);
}

/** Makes a product found by its footprint. */
function writePlace(
  index: Database,
  id: number,
  view: ProductView,
  cloudCover: number | null,
): void {
  const [geometry, shape] = [view.geometry(), view.footprint()];
  if (geometry === null || shape === null) return;
  prepared(index, 'INSERT INTO product_footprint VALUES (?, ?)').run(id, JSON.stringify(geometry));
  // Without a sensing time no question about one can be meant for it.
  const days = sensingDays(view.dateUs('ContentDate/Start') ?? 0);
  const [received, clouds] = [receivedUnits(id), cloudUnits(cloudCover)];
  const others = [days, days, received, received, clouds, clouds];
  const insert = prepared(index, `INSERT INTO product_box VALUES (${marks(11)})`);
  boxesOf(shape).forEach(({ west, east, south, north }, part) => {
    insert.run(2 * id + part, west, east, south, north, ...others);
  });
}

function removePlace(index: Database, id: number): void {
  prepared(index, 'DELETE FROM product_footprint WHERE id = ?').run(id);
  prepared(index, 'DELETE FROM product_box WHERE id IN (?, ?)').run(2 * id, 2 * id + 1);
}

function writeEvent(index: Database, product: number, notification: LoggedNotification): void {
  const { position, subscription, event, record, source } = notification;
  const { notificationDateUs, receivedAtUs } = notification;
  // The catalogue's date of the event, by which reconciliation looks for it (facts, catalogue 5).
  const dates: Record<string, unknown> = {
    created: record?.PublicationDate,
    modified: record?.ModificationDate,
    deleted: record?.DeletionDate,
  };
  prepared(index, insertEventSql).run(
    ...[position, product, subscription, event, dateUs(dates[event])],
    ...[dateUs(record?.ModificationDate), notificationDateUs, receivedAtUs, source],
  );
}

function newsOf(notification: LoggedNotification): StateNews {
  const { position, record, notificationDateUs, receivedAtUs } = notification;
  const deleted = notification.event === 'deleted';
  const notifiedUs = notificationDateUs ?? receivedAtUs;
  if (record === null) return { position, deleted, recordUs: null, notifiedUs };
  const recordUs = deleted
    ? (dateUs(record.DeletionDate) ?? notifiedUs)
    : (dateUs(record.ModificationDate) ?? dateUs(record.PublicationDate) ?? undatedUs);
  return { position, deleted, recordUs, notifiedUs };
}

/**
 * Takes news into account. Each of the values only grows, so that neither the order of arrival matters nor a
 * repetition. Of two records of the same moment `isLarger` chooses: it compares the record of the news with the one at
 * a position.
 */
function withNews(
  state: ProductState,
  news: StateNews,
  isLarger: (position: number) => boolean,
): ProductState {
  const { recordUs, position } = news;
  const wins = (us: number | null, held: number | null) =>
    recordUs !== null &&
    (us === null || held === null || recordUs > us || (recordUs === us && isLarger(held)));
  if (!news.deleted) {
    if (!wins(state.lifeUs, state.lifePosition)) return state;
    return { ...state, lifeUs: recordUs, lifePosition: position };
  }
  const goneUs = Math.max(state.goneUs ?? recordUs ?? news.notifiedUs, recordUs ?? news.notifiedUs);
  const known = { ...state, goneUs };
  if (!wins(state.goneRecordUs, state.gonePosition)) return known;
  return { ...known, goneRecordUs: recordUs, gonePosition: position };
}

/** The current state. Deleted wins a tie: nothing is modified after it is gone. */
function currentOf({ lifeUs, lifePosition, goneUs, goneRecordUs, gonePosition }: ProductState): {
  deleted: boolean;
  /** The notification whose record is the product's; null while none has come. */
  recordPosition: number | null;
  /** The time of deletion that a tombstone shows: its record's own, else that of the newest news. */
  deletionUs: number | null;
} {
  const deleted = goneUs !== null && goneUs >= (lifeUs ?? goneUs);
  if (!deleted) return { deleted, recordPosition: lifePosition, deletionUs: null };
  // A deletion that came without its record leaves the last one known.
  const goneIsNewest = goneRecordUs !== null && goneRecordUs >= (lifeUs ?? goneRecordUs);
  const recordPosition = goneIsNewest ? gonePosition : lifePosition;
  const isOwn = recordPosition === gonePosition && gonePosition !== null;
  return { deleted, recordPosition, deletionUs: isOwn ? goneRecordUs : goneUs };
}

/** In the order of `stateColumns`. */
function stateValues(state: ProductState) {
  const { lifeUs, lifePosition, goneUs, goneRecordUs, gonePosition } = state;
  const { deleted, recordPosition, deletionUs } = currentOf(state);
  const registers = [lifeUs, lifePosition, goneUs, goneRecordUs, gonePosition];
  return [...registers, recordPosition, Number(deleted), deletionUs];
}
