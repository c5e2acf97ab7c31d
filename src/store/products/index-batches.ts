/** Indexes the log in batches, each a transaction that also moves the cursor, and removes what was pruned from it. */
import type { Database } from 'better-sqlite3';
import { isAppError } from '../../domain/app-error.ts';
import { isTooDeep } from '../../domain/notification.ts';
import { type ProductRecord, recordIn } from '../../filter/product-record.ts';
import { bodyReader } from '../bodies/bodies.ts';
import { prepared } from '../engine/database.ts';
import { isEnvironmentFailure, storeError } from '../engine/sqlite-error.ts';
import { pruneHorizon } from '../pruning/prune-queries.ts';
import { indexProgress, markAt, readLog } from './product-file.ts';
import { bodyDocument } from './product-record.ts';
import { type LoggedNotification, removeProduct, writeNotification } from './product-writer.ts';

/**
 * Notifications of one transaction: half a second's work at most. Indexes are written at random places,
 * so a page that many of them meet should be written once. The log is read in shorter steps: its write-ahead log
 * cannot be moved into the file while somebody reads it.
 */
export const batchRowsMax = 2_048;
const readRowsMax = 256;

/** The two connections. The log has its own: a write transaction would lock every file attached to its connection. */
export interface IndexFiles {
  log: Database;
  index: Database;
  /** The body that was read last: it may hold thousands of notifications. */
  lastBody?: { bodyId: number; document: unknown };
}

/** Indexes up to `rowsMax` notifications in one transaction; returns their number, 0 at the end of the log. */
export function indexBatch(files: IndexFiles, rowsMax: number): number {
  const { log, index } = files;
  const batch = index.transaction((write: (row: LogRow) => void): number => {
    // Read within the transaction: another program may index at the same time.
    const { position: first } = indexProgress(index);
    let count = 0;
    let position = first;
    while (count < rowsMax) {
      const limit = Math.min(readRowsMax, rowsMax - count);
      const next = readLog(() =>
        prepared<[number, number], LogRow>(log, rowsAfterSql).all(position, limit),
      );
      for (const row of next) write(row);
      count += next.length;
      position = next.at(-1)?.position ?? position;
      if (next.length < limit) break;
    }
    if (position > first) {
      const advance = prepared(index, 'UPDATE progress SET position = ?, mark = ?');
      advance.run(position, markAt(log, position));
    }
    return count;
  });
  try {
    return batch.immediate((row) => write(files, row));
  } catch (error) {
    if (isEnvironmentFailure(error)) throw error;
    return batch.immediate((row) => writeOrSkip(files, row));
  }
}

/**
 * Removes what is no longer in the log, in one transaction of at most `eventsMax` events; returns how many were removed,
 * 0 when none is left. A product that is left without any is removed with them. One that has others is written again from
 * those, as in an index that is built from this log.
 */
export function pruneIndexed(files: IndexFiles, eventsMax: number): number {
  const { log, index } = files;
  const upTo = readLog(() => pruneHorizon(log))?.position ?? 0;
  const oldest = prepared<[number, number], { position: number; product: number }>(
    index,
    `SELECT position, product FROM product_event WHERE position <= ?
     ORDER BY position LIMIT ?`,
  );
  // Without this check, each call would take the index's lock.
  if (oldest.get(upTo, 1) === undefined) return 0;
  const positionsOf = prepared<[number], number>(
    index,
    'SELECT position FROM product_event WHERE product = ? ORDER BY position',
  ).pluck();
  const prune = index.transaction((): number => {
    const events = oldest.all(upTo, eventsMax);
    for (const product of new Set(events.map((event) => event.product))) {
      const positions = positionsOf.all(product);
      removeProduct(index, product);
      for (const position of positions) {
        const row = position > upTo ? rowAt(log, position) : undefined;
        if (row !== undefined) writeOrSkip(files, row);
      }
    }
    return events.length;
  });
  return prune.immediate();
}

function write(files: IndexFiles, row: LogRow): void {
  writeNotification(files.index, { ...row, record: recordOf(files, row) }, (position) => {
    const held = rowAt(files.log, position);
    return held === undefined ? null : recordOf(files, held);
  });
}

/** Skips and counts what our own code fails on, so that the rest is not held up. */
function writeOrSkip(files: IndexFiles, row: LogRow): void {
  try {
    files.index.transaction(() => write(files, row))();
  } catch (error) {
    if (isEnvironmentFailure(error)) throw error;
    prepared(files.index, 'UPDATE progress SET skipped = skipped + 1').run();
  }
}

type LogRow = Omit<LoggedNotification, 'record'> & { bodyIndex: number; bodyId: number };

/*
 * A push that comes late is counted on the row that had been recovered, with its NotificationDate. That is ignored:
 * what is derived from a row must not depend on when it was read.
 */
const columns = `position, product_id AS productId, product_name AS productName, event,
  subscription, source, received_at_us AS receivedAtUs, body_index AS bodyIndex, body_id AS bodyId,
  CASE source WHEN 'reconcile' THEN NULL ELSE notification_date_us END AS notificationDateUs`;
const rowsAfterSql = `SELECT ${columns} FROM notification WHERE position > ? ORDER BY position LIMIT ?`;
const rowAtSql = `SELECT ${columns} FROM notification WHERE position = ?`;

function rowAt(log: Database, position: number): LogRow | undefined {
  return readLog(() => prepared<[number], LogRow>(log, rowAtSql).get(position));
}

/** Throws for a damaged body, so that it is skipped and a comparison with the catalogue recovers its events. */
function recordOf(files: IndexFiles, { bodyId, bodyIndex }: LogRow): ProductRecord | null {
  if (files.lastBody?.bodyId !== bodyId) {
    const body = readBody(files.log, bodyId);
    if (body === undefined) return null;
    const document = bodyDocument(body);
    // One that is nested too deep is sound: its product is indexed by id and name.
    if (document === undefined && !isTooDeep(body)) throw new Error(`Body ${bodyId} is not JSON.`);
    files.lastBody = { bodyId, document };
  }
  return recordIn(files.lastBody.document, bodyIndex);
}

function readBody(log: Database, bodyId: number): Uint8Array | undefined {
  try {
    return bodyReader(log).content(bodyId);
  } catch (error) {
    // A damaged body is skipped; a log that cannot be read at all ends the batch.
    if (isAppError(error)) throw new Error(`Body ${bodyId} cannot be read.`, { cause: error });
    throw storeError(error);
  }
}
