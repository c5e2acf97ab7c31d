/** How far the index has got, and whether it is that of the log beside it. */
import type { Database } from 'better-sqlite3';
import { storeError } from '../engine/sqlite-error.ts';

interface Progress {
  position: number;
  /** Of the notification at that position; null where nothing has been indexed. */
  mark: string | null;
}

/** Reads the cursor. */
export function indexProgress(index: Database): Progress {
  const progress = index.prepare<[], Progress>('SELECT position, mark FROM progress').get();
  return progress ?? { position: 0, mark: null };
}

/**
 * What tells the notification at a position from those of other logs; null where there is none. Not its
 * dedupe key: a push that comes late gives that of its own to the row that had been recovered.
 */
export function markAt(log: Database, position: number): string | null {
  const row = readLog(() =>
    log
      .prepare<[number], { mark: string }>(
        `SELECT received_at_us || ' ' || event || ' ' || product_id AS mark
         FROM notification WHERE position = ?`,
      )
      .get(position),
  );
  return row?.mark ?? null;
}

/** Asks the log. A failure is told as one of the log: the index must not be blamed, and replaced, for it. */
export function readLog<Value>(question: () => Value): Value {
  try {
    return question();
  } catch (error) {
    throw storeError(error);
  }
}

/** False when another log has taken the place of the one that was indexed, such as a restored backup. */
export function fitsLog(log: Database, index: Database): boolean {
  const { position, mark } = indexProgress(index);
  return mark === null || markAt(log, position) === mark;
}

/** The last notification of this log that the index has read; 0 where it is that of another one. */
export function indexedPosition({ index, log }: { index: Database; log: Database }): number {
  return fitsLog(log, index) ? indexProgress(index).position : 0;
}
