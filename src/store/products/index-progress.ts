/** How far the index has got, and whether it is that of the log beside it. */
import type { Database } from 'better-sqlite3';
import { storeError } from '../sqlite-error.ts';

interface Progress {
  position: number;
  /** Of the notification at that position; null where nothing has been indexed. */
  dedupeKey: Buffer | null;
}

/** Reads the cursor. */
export function indexProgress(index: Database): Progress {
  const progress = index
    .prepare<[], Progress>('SELECT position, dedupe_key AS dedupeKey FROM progress')
    .get();
  return progress ?? { position: 0, dedupeKey: null };
}

/** The key of the notification at a position; null where there is none. */
export function dedupeKeyAt(log: Database, position: number): Buffer | null {
  const row = readLog(() =>
    log
      .prepare<[number], { dedupeKey: Buffer }>(
        'SELECT dedupe_key AS dedupeKey FROM notification WHERE position = ?',
      )
      .get(position),
  );
  return row?.dedupeKey ?? null;
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
  const { position, dedupeKey } = indexProgress(index);
  return dedupeKey === null || dedupeKeyAt(log, position)?.equals(dedupeKey) === true;
}
