/** The thread that reads a log for a copy into a shared log, while the receiver writes it, and moves it there at the end. */

import { hash } from 'node:crypto';
import { AppError } from '../../core/terms/app-error.ts';
import { type Database, openForWriting, prepared } from '../../store/engine/database.ts';
import { serveThread } from '../../store/engine/serve-thread.ts';
import { lastPosition } from '../../store/log/queries.ts';
import { pruneHorizon } from '../../store/pruning/prune-queries.ts';
import { joinCopied, type NodePlace, nodePlace } from './apply-entries.ts';
import {
  type CopiedPart,
  changedRows,
  copiedRows,
  dropCopiedChanges,
  noRows,
} from './copied-rows.ts';
import { encodeContent } from './entry.ts';
import { endInCopy } from './operations.ts';
import { readStateTables } from './state-tables.ts';

interface Copying {
  database: Database;
  /** Parts of the state tables, while they are read. */
  parts: ReturnType<typeof readStateTables> | undefined;
}

const operations = {
  /** Records changes of copied rows from now on. Returns the place in a shared log, which the log may already have. */
  begin({ database }: Copying, logId: string): NodePlace | null {
    const place = nodePlace(database);
    if (place !== null) return place;
    const other = prepared<[], string>(database, 'SELECT log_id FROM shared_copy').pluck().get();
    if (other !== undefined && other !== logId) endInCopy(database);
    if (other === logId) return null;
    database.exec(`BEGIN IMMEDIATE;
      CREATE TRIGGER copied_change_noted AFTER UPDATE ON notification BEGIN
        INSERT OR IGNORE INTO copied_change VALUES (old.position);
      END;`);
    prepared(database, 'INSERT INTO shared_copy VALUES (1, ?)').run(logId);
    database.exec('COMMIT');
    return null;
  },
  /** Returns true if a copy into this log has begun. */
  isCopying: ({ database }: Copying, logId: string): boolean =>
    prepared(database, 'SELECT 1 FROM shared_copy WHERE log_id = ?').get(logId) !== undefined,
  lastPosition: ({ database }: Copying): number => lastPosition(database),
  /** Position up to which notifications were pruned: the shared log may still contain them. */
  prunedTo: ({ database }: Copying): number => pruneHorizon(database)?.position ?? 0,
  rows: ({ database }: Copying, after: number): CopiedPart | null => copiedRows(database, after),
  noRows: ({ database }: Copying): CopiedPart => noRows(database),
  changed: ({ database }: Copying, upTo: number): CopiedPart | null => changedRows(database, upTo),
  dropChanges({ database }: Copying, seen: CopiedPart['seen']): void {
    dropCopiedChanges(database, seen);
  },
  /** Stops all writers of the log until `join` or `unlock`. */
  lock({ database }: Copying): void {
    database.exec('BEGIN IMMEDIATE');
  },
  unlock({ database }: Copying): void {
    if (database.inTransaction) database.exec('ROLLBACK');
  },
  /** Returns the next part of the state tables; null after the last one. */
  nextPart(copying: Copying): ReturnType<typeof encodeContent> | null {
    copying.parts ??= readStateTables(copying.database);
    const part = copying.parts.next();
    return part.done ? null : encodeContent(part.value);
  },
  /** Makes the log a node of the shared log. From now on, a receiver without EARSHOT_LOG_URL is refused. */
  join({ database }: Copying, place: NodePlace): void {
    joinCopied(database, place);
    endInCopy(database);
    database.exec('COMMIT');
  },
  /** Returns the same as `LogCopy.keysOf`. */
  keysOf({ database }: Copying, from: number, to: number): { count: number; digest: string } {
    const rows = prepared<[number, number], string>(
      database,
      `SELECT position || ':' || lower(hex(dedupe_key)) FROM notification
       WHERE position >= ? AND position < ? ORDER BY position`,
    )
      .pluck()
      .all(from, to);
    return { count: rows.length, digest: hash('sha256', rows.join(','), 'hex') };
  },
  /** Makes the node a log of its own. */
  leave({ database }: Copying): NodePlace {
    const place = nodePlace(database);
    if (place === null) {
      throw new AppError('conflict', 'The data directory does not belong to a shared log.');
    }
    if (place.stateFrom > 0) {
      throw new AppError(
        'conflict',
        'This receiver has not yet filled itself from the shared log.',
      );
    }
    database.exec(`BEGIN IMMEDIATE;
      DELETE FROM shared_log;
      DELETE FROM shared_result;
      COMMIT`);
    return place;
  },
};

export type CopyOperations = typeof operations;

export default serveThread<Copying>(({ dataDir }) => {
  const copying: Copying = { database: openForWriting(dataDir), parts: undefined };
  return {
    operations,
    context: () => copying,
    close: () => copying.database.close(),
  };
});
