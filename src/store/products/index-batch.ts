/** Works through the log: a batch of notifications into the index, together with how far it has got. */
import type { Database } from 'better-sqlite3';
import { isEnvironmentFailure } from '../sqlite-error.ts';
import { recordIn } from './product-record.ts';
import { createProductWriter, type LoggedNotification } from './product-writer.ts';

/** Notifications of one transaction: other programs wait for its lock some tens of ms at most. */
const batchRowsMax = 256;

export interface IndexBatches {
  /** Indexes what comes next; tells how many notifications that were, 0 at the end of the log. */
  next(): number;
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
  const progress = index.prepare<[], { position: number }>('SELECT position FROM progress');
  const skip = index.prepare('UPDATE progress SET skipped = skipped + 1');
  const advance = index.prepare('UPDATE progress SET position = ?');
  const write = createProductWriter(index, (position) => {
    const row = rowAt.get(position);
    return row === undefined ? null : recordIn(row.body, row.bodyIndex);
  });
  const batch = index.transaction((writeRow: (row: LoggedNotification) => void): number => {
    // Read within the transaction: another program may index at the same time.
    const from = progress.get()?.position ?? 0;
    const rows = rowsAfter.all(from, batchRowsMax);
    for (const row of rows) writeRow(row);
    const last = rows.at(-1);
    if (last !== undefined) advance.run(last.position);
    return rows.length;
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
