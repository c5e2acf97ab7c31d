/** Brings one notification after the other into the index, within a transaction of the caller's. */

import type { Database } from 'better-sqlite3';
import type { ProductRecord } from '../../filter/product-record.ts';
import { productView } from '../../filter/product-view.ts';
import { deriveColumns, derivedColumns } from './product-columns.ts';
import { completeRecord, stateUsOf } from './product-record.ts';
import { createProductSearchWriter } from './product-search.ts';
import {
  currentOf,
  deletionUsOf,
  type ProductState,
  type StateNews,
  unknownState,
  withNews,
} from './product-state.ts';

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

/** What the row of a product says of its state. */
interface StoredProduct extends ProductState {
  id: number;
  name: string | null;
}

/** A record without any date is older than one that has one. */
const undatedUs = -1;

/**
 * Prepares the statements. `recordAt` reads the record of a notification that is indexed already. What is
 * given back writes one notification, and returns the id of its product's row.
 */
export function createProductWriter(
  database: Database,
  recordAt: (position: number) => ProductRecord | null,
): (notification: LoggedNotification) => number {
  const rows = prepareRows(database);
  const search = createProductSearchWriter(database);

  /** Writes the product anew from a record that has just come. */
  const writeRecord = (
    known: StoredProduct | undefined,
    record: ProductRecord,
    { productId, productName, position, receivedAtUs }: LoggedNotification,
    state: ProductState,
  ) => {
    const { DeletionCause: cause } = record;
    const { deleted } = currentOf(state);
    const deletionCause = deleted && typeof cause === 'string' ? cause : null;
    const deletionUs = deletionUsOf(state);
    const identity = { productId, name: productName, deletionUs, deletionCause };
    const complete = completeRecord(record, identity);
    const view = productView(complete);
    const columns = deriveColumns(view, complete, productName);
    const values = derivedColumns.map((column) => columns[column]);
    const all = [...stateValues(state), deletionCause, ...values];
    if (known === undefined) rows.insert.run(...all, position, productId, receivedAtUs);
    else rows.update.run(...all, known.id);
    search.writeName(known?.id ?? position, known?.name ?? null, columns.name);
    const { cloud_cover: cloudCover } = columns;
    const isNew = known === undefined;
    search.writePlace(known?.id ?? position, { view, cloudCover, isNew });
  };

  /** A name without a record is better than none; which of several must not hang on the order. */
  const writeNameAlone = (
    known: StoredProduct | undefined,
    { productId, productName, position, receivedAtUs }: LoggedNotification,
  ) => {
    if (known === undefined) rows.insertBare.run(position, productId, receivedAtUs);
    if ((productName ?? '') <= (known?.name ?? '')) return;
    rows.updateName.run(productName, known?.id ?? position);
    search.writeName(known?.id ?? position, known?.name ?? null, productName);
  };

  return (notification) => {
    const { record } = notification;
    const known = rows.find.get(notification.productId);
    const isLarger = (held: number) => textOf(record) > textOf(recordAt(held));
    const state = withNews(known ?? unknownState, newsOf(notification), isLarger);
    const { recordPosition } = currentOf(state);
    const id = known?.id ?? notification.position;
    if (recordPosition === notification.position && record !== null) {
      writeRecord(known, record, notification, state);
      return id;
    }
    if (recordPosition === null) writeNameAlone(known, notification);
    rows.updateState.run(...stateValues(state), id);
    return id;
  };
}

function stateValues(state: ProductState) {
  const { lifeUs, lifePosition, goneUs, goneRecordUs, gonePosition } = state;
  const { deleted, recordPosition } = currentOf(state);
  const registers = [lifeUs, lifePosition, goneUs, goneRecordUs, gonePosition];
  return [...registers, recordPosition, Number(deleted), deletionUsOf(state)];
}

function newsOf(notification: LoggedNotification): StateNews {
  const { position, record, notificationDateUs, receivedAtUs } = notification;
  const deleted = notification.event === 'deleted';
  const notifiedUs = notificationDateUs ?? receivedAtUs;
  const statedUs = record === null ? null : stateUsOf(record, deleted);
  const recordUs = record === null ? null : (statedUs ?? (deleted ? notifiedUs : undatedUs));
  return { position, deleted, recordUs, notifiedUs };
}

function textOf(record: ProductRecord | null): string {
  return JSON.stringify(record);
}

/** In the order of `stateValues`. */
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

function prepareRows(database: Database) {
  const all = [...stateColumns, 'deletion_cause', ...derivedColumns];
  const assigned = (columns: readonly string[]) => columns.map((one) => `${one} = ?`).join(', ');
  return {
    find: database.prepare<[string], StoredProduct>(
      `SELECT id, life_us AS lifeUs, life_position AS lifePosition, gone_us AS goneUs,
         gone_record_us AS goneRecordUs, gone_position AS gonePosition, name
       FROM product WHERE product_id = ?`,
    ),
    insert: database.prepare(
      `INSERT INTO product (${all.join(', ')}, id, product_id, received_at_us)
       VALUES (${all.map(() => '?').join(', ')}, ?, ?, ?)`,
    ),
    insertBare: database.prepare(
      'INSERT INTO product (id, product_id, received_at_us, deleted) VALUES (?, ?, ?, 0)',
    ),
    update: database.prepare(`UPDATE product SET ${assigned(all)} WHERE id = ?`),
    updateName: database.prepare('UPDATE product SET name = ? WHERE id = ?'),
    updateState: database.prepare(`UPDATE product SET ${assigned(stateColumns)} WHERE id = ?`),
  };
}
