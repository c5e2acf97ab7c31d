/** Indexes the log in batches and removes pruned notifications. Each transaction also moves the cursor. */
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
 * Notifications in one transaction: at most half a second of work. Indexes are written at random places; a large
 * transaction writes a shared page only once. The log is read in smaller steps, because an open read blocks the
 * checkpoint of its write-ahead log.
 */
export const batchRowsMax = 2_048;
const readRowsMax = 256;

/** Separate connections, because a write transaction would lock every file attached to its connection. */
export interface IndexFiles {
  log: Database;
  index: Database;
  /** Cache of the last body, which may contain thousands of notifications. */
  lastBody?: { bodyId: number; document: unknown };
}

/** Indexes up to `rowsMax` notifications in one transaction. Returns their number; 0 at the end of the log. */
export function indexBatch(files: IndexFiles, rowsMax: number): number {
  const { log, index } = files;
  const batch = index.transaction((write: (row: LogRow) => void): number => {
    // Read inside the transaction: another process may index at the same time.
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
 * Removes events that are no longer in the log, at most `eventsMax` in one transaction. Returns their number; 0 when
 * none is left. Removes a product without remaining events. Rewrites other products from their remaining events, so
 * that the index equals one built from this log.
 */
export function pruneIndexed(files: IndexFiles, eventsMax: number): number {
  const { log, index } = files;
  const upTo = readLog(() => pruneHorizon(log))?.position ?? 0;
  const oldest = prepared<[number, number], { position: number; product: number }>(
    index,
    `SELECT position, product FROM product_event WHERE position <= ?
     ORDER BY position LIMIT ?`,
  );
  // Without this check, each call would lock the index.
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
    const other = rowAt(files.log, position);
    return other === undefined ? null : recordOf(files, other);
  });
}

/** Skips and counts a notification on which our own code fails, so that it does not block the others. */
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
 * A late push is counted on the recovered row and sets its NotificationDate. The index ignores that date:
 * derived values must not depend on the time of reading.
 */
const columns = `position, product_id AS productId, product_name AS productName, event,
  subscription, source, received_at_us AS receivedAtUs, body_index AS bodyIndex, body_id AS bodyId,
  CASE source WHEN 'reconcile' THEN NULL ELSE notification_date_us END AS notificationDateUs`;
const rowsAfterSql = `SELECT ${columns} FROM notification WHERE position > ? ORDER BY position LIMIT ?`;
const rowAtSql = `SELECT ${columns} FROM notification WHERE position = ?`;

function rowAt(log: Database, position: number): LogRow | undefined {
  return readLog(() => prepared<[number], LogRow>(log, rowAtSql).get(position));
}

/** Throws for a damaged body: it is then skipped, and a comparison with the catalogue recovers its events. */
function recordOf(files: IndexFiles, { bodyId, bodyIndex }: LogRow): ProductRecord | null {
  if (files.lastBody?.bodyId !== bodyId) {
    const body = readBody(files.log, bodyId);
    if (body === undefined) return null;
    const document = bodyDocument(body);
    // A body that is nested too deep is not damaged: its product is indexed by id and name.
    if (document === undefined && !isTooDeep(body)) throw new Error(`Body ${bodyId} is not JSON.`);
    files.lastBody = { bodyId, document };
  }
  return recordIn(files.lastBody.document, bodyIndex);
}

function readBody(log: Database, bodyId: number): Uint8Array | undefined {
  try {
    return bodyReader(log).content(bodyId);
  } catch (error) {
    // A damaged body is skipped; an unreadable log ends the batch.
    if (isAppError(error)) throw new Error(`Body ${bodyId} cannot be read.`, { cause: error });
    throw storeError(error);
  }
}
