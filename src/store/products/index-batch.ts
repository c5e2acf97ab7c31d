/** Works through the log: a batch of notifications into the index, together with how far it has got. */
import type { Database } from 'better-sqlite3';
import { isEnvironmentFailure } from '../sqlite-error.ts';
import { recordIn } from './product-record.ts';
import { createProductWriter, type LoggedNotification } from './product-writer.ts';

/**
 * Notifications of one transaction: half a second's work at most. Indexes are written at random places,
 * so a page that many of them meet should be written once. The log is read in shorter steps: as long as
 * somebody reads it, its write-ahead log cannot be taken in.
 */
const batchReadsMax = 8;
const readRowsMax = 256;

export interface IndexBatches {
  /** False when the index was made from another log than this one. */
  fitsLog(): boolean;
  /** Indexes what comes next; tells how many notifications that were, 0 at the end of the log. */
  next(): number;
}

interface Progress {
  position: number;
  dedupeKey: Buffer | null;
}

const columns = `position, product_id AS productId, product_name AS productName, event,
  notification_date_us AS notificationDateUs, received_at_us AS receivedAtUs,
  body_index AS bodyIndex, bytes AS body`;

/**
 * Prepares the work. The log has a connection of its own, for reading: a write transaction would lock
 * every file attached to its connection, the log too.
 */
export function createIndexBatches(log: Database, index: Database): IndexBatches {
  const rowsAfter = log.prepare<[number, number], LoggedNotification>(
    `SELECT ${columns} FROM notification CROSS JOIN body ON body.id = body_id
     WHERE position > ? ORDER BY position LIMIT ?`,
  );
  const rowAt = log.prepare<[number], LoggedNotification>(
    `SELECT ${columns} FROM notification CROSS JOIN body ON body.id = body_id WHERE position = ?`,
  );
  const progress = index.prepare<[], Progress>(
    'SELECT position, dedupe_key AS dedupeKey FROM progress',
  );
  const keyAt = log.prepare<[number], { dedupeKey: Buffer }>(
    'SELECT dedupe_key AS dedupeKey FROM notification WHERE position = ?',
  );
  const skip = index.prepare('UPDATE progress SET skipped = skipped + 1');
  const advance = index.prepare('UPDATE progress SET position = ?, dedupe_key = ?');
  const write = createProductWriter(index, (position) => {
    const row = rowAt.get(position);
    return row === undefined ? null : recordIn(row.body, row.bodyIndex);
  });
  const batch = index.transaction((writeRow: (row: LoggedNotification) => void): number => {
    // Read within the transaction: another program may index at the same time.
    const first = progress.get()?.position ?? 0;
    let count = 0;
    let position = first;
    for (let reads = 0; reads < batchReadsMax; reads += 1) {
      const rows = rowsAfter.all(position, readRowsMax);
      for (const row of rows) writeRow(row);
      count += rows.length;
      position = rows.at(-1)?.position ?? position;
      if (rows.length < readRowsMax) break;
    }
    if (position > first) advance.run(position, keyAt.get(position)?.dedupeKey ?? null);
    return count;
  });
  const attempt = index.transaction(write);
  /** What our own code fails on is passed over and counted, so that the rest is not held up. */
  const writeOrSkip = (row: LoggedNotification) => {
    try {
      attempt(row);
    } catch (error) {
      if (isEnvironmentFailure(error)) throw error;
      skip.run();
    }
  };
  return {
    fitsLog: () => {
      const { position = 0, dedupeKey = null } = progress.get() ?? {};
      if (dedupeKey === null) return true;
      return keyAt.get(position)?.dedupeKey.equals(dedupeKey) ?? false;
    },
    next: () => {
      try {
        return batch.immediate(write);
      } catch (error) {
        if (isEnvironmentFailure(error)) throw error;
        return batch.immediate(writeOrSkip);
      }
    },
  };
}
