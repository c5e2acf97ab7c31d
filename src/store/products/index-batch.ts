/** Works through the log: a batch of notifications into the index, together with how far it has got. */

import type { Database } from 'better-sqlite3';
import { isAppError } from '../../domain/app-error.ts';
import { isTooDeep } from '../../domain/nesting.ts';
import { type ProductRecord, recordIn } from '../../filter/record-parts.ts';
import { type BodyReader, bodyReader } from '../bodies/body-reader.ts';
import { isEnvironmentFailure, storeError } from '../engine/sqlite-error.ts';
import { fitsLog, indexProgress, markAt, readLog } from './index-progress.ts';
import { createIndexPruner } from './index-pruner.ts';
import { createEventWriter } from './product-event-writer.ts';
import { bodyDocument } from './product-record.ts';
import { createProductWriter, type LoggedNotification } from './product-writer.ts';

/**
 * Notifications of one transaction: half a second's work at most. Indexes are written at random places,
 * so a page that many of them meet should be written once. The log is read in shorter steps: as long as
 * somebody reads it, its write-ahead log cannot be taken in.
 */
export const batchRowsMax = 2_048;
const readRowsMax = 256;

export interface IndexBatches {
  /** False when the index was made from another log than this one. */
  fitsLog(): boolean;
  /** Indexes up to `rowsMax` notifications in one transaction; returns their number, 0 at the end of the log. */
  next(rowsMax: number): number;
  /** Takes out some of what the log has no more; tells how many events that were, 0 when none is left. */
  prune(eventsMax: number): number;
}

/*
 * A push that comes late is counted on the row that had been recovered, with its NotificationDate. That is
 * passed over: what is derived from a row must not hang on when it was read.
 */
const columns = `position, product_id AS productId, product_name AS productName, event,
  subscription, source, received_at_us AS receivedAtUs, body_index AS bodyIndex, body_id AS bodyId,
  CASE source WHEN 'reconcile' THEN NULL ELSE notification_date_us END AS notificationDateUs`;

type LogRow = Omit<LoggedNotification, 'record'> & { bodyIndex: number; bodyId: number };

/**
 * Prepares the work. The log has a connection of its own, for reading: a write transaction would lock
 * every file attached to its connection, the log too.
 */
export function createIndexBatches(log: Database, index: Database): IndexBatches {
  const rows = createLogRows(log);
  const skip = index.prepare('UPDATE progress SET skipped = skipped + 1');
  const advance = index.prepare('UPDATE progress SET position = ?, mark = ?');
  const writeProduct = createProductWriter(index, rows.recordAt);
  const writeEvent = createEventWriter(index);
  const write = (row: LogRow) => {
    const notification = { ...row, record: rows.recordOf(row) };
    writeEvent(writeProduct(notification), notification);
  };
  const batch = index.transaction((writeRow: (row: LogRow) => void, rowsMax: number): number => {
    // Read within the transaction: another program may index at the same time.
    const { position: first } = indexProgress(index);
    let count = 0;
    let position = first;
    while (count < rowsMax) {
      const limit = Math.min(readRowsMax, rowsMax - count);
      const next = rows.after(position, limit);
      for (const row of next) writeRow(row);
      count += next.length;
      position = next.at(-1)?.position ?? position;
      if (next.length < limit) break;
    }
    if (position > first) advance.run(position, markAt(log, position));
    return count;
  });
  const attempt = index.transaction(write);
  /** What our own code fails on is passed over and counted, so that the rest is not held up. */
  const writeOrSkip = (row: LogRow) => {
    try {
      attempt(row);
    } catch (error) {
      if (isEnvironmentFailure(error)) throw error;
      skip.run();
    }
  };
  const prune = createIndexPruner(log, index, (position) => {
    const row = rows.at(position);
    if (row !== undefined) writeOrSkip(row);
  });
  return {
    fitsLog: () => fitsLog(log, index),
    prune,
    next: (rowsMax) => {
      try {
        return batch.immediate(write, rowsMax);
      } catch (error) {
        if (isEnvironmentFailure(error)) throw error;
        return batch.immediate(writeOrSkip, rowsMax);
      }
    },
  };
}

/** Reads the log, each body once. */
function createLogRows(log: Database) {
  const rowsAfter = log.prepare<[number, number], LogRow>(
    `SELECT ${columns} FROM notification WHERE position > ? ORDER BY position LIMIT ?`,
  );
  const rowAt = log.prepare<[number], LogRow>(
    `SELECT ${columns} FROM notification WHERE position = ?`,
  );
  const bodies = bodyReader(log);
  // Of a body with many notifications: it is read once.
  let last: { bodyId: number; document: unknown } | undefined;
  const recordOf = ({ bodyId, bodyIndex }: LogRow): ProductRecord | null => {
    if (last?.bodyId !== bodyId) {
      const body = readBody(bodies, bodyId);
      if (body === undefined) return null;
      const document = bodyDocument(body);
      // A damaged body is passed over, so that a comparison with the catalogue recovers its events. One that is
      // nested too deep is sound: its product is indexed by id and name.
      if (document === undefined && !isTooDeep(body))
        throw new Error(`Body ${bodyId} is not JSON.`);
      last = { bodyId, document };
    }
    return recordIn(last.document, bodyIndex);
  };
  const at = (position: number) => readLog(() => rowAt.get(position));
  return {
    after: (position: number, limit: number) => readLog(() => rowsAfter.all(position, limit)),
    at,
    recordOf,
    recordAt: (position: number) => {
      const row = at(position);
      return row === undefined ? null : recordOf(row);
    },
  };
}

/** One that is damaged is passed over as what cannot be indexed; a log that cannot be read at all is another matter. */
function readBody(bodies: BodyReader, bodyId: number): Uint8Array | undefined {
  try {
    return bodies.content(bodyId);
  } catch (error) {
    if (isAppError(error)) throw new Error(`Body ${bodyId} cannot be read.`, { cause: error });
    throw storeError(error);
  }
}
