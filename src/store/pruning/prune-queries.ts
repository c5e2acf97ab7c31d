/** The questions about pruning as SQL, for one reading connection. */
import { statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import type { LogSize, PruneHorizon } from '../../domain/pruning.ts';
import { logHolders } from './log-holders.ts';
import { pageBytes } from './page-bytes.ts';
import { prunable } from './prunable.ts';
import type { PruneQuestion } from './prune-messages.ts';

/** Answers one question; the answer is what the port's call of that name resolves with. */
export function askPruning(database: Database, dataDir: string, question: PruneQuestion): unknown {
  switch (question.kind) {
    case 'horizon':
      return pruneHorizon(database);
    case 'holders':
      return logHolders(database, dataDir);
    case 'size':
      return logSize(database);
    case 'prunable':
      return prunable(database, dataDir, question.wish);
  }
}

export function pruneHorizon(database: Database): PruneHorizon | null {
  const row = database
    .prepare<[], PruneHorizon>(
      `SELECT position, received_before_us AS receivedBeforeUs, pruned_at_us AS prunedAtUs
       FROM prune_horizon`,
    )
    .get();
  return row ?? null;
}

/** Nothing is counted: SQLite keeps these figures, and finds both ends of a table at once. */
function logSize(database: Database): LogSize {
  const ends = database
    .prepare<[], Pick<LogSize, 'firstPosition' | 'lastPosition'>>(
      `SELECT coalesce((SELECT min(position) FROM notification), 0) AS firstPosition,
         coalesce((SELECT max(position) FROM notification), 0) AS lastPosition`,
    )
    .get() ?? { firstPosition: 0, lastPosition: 0 };
  const firstReceivedAtUs =
    database
      .prepare<[number], number>('SELECT received_at_us FROM notification WHERE position = ?')
      .pluck()
      .get(ends.firstPosition) ?? null;
  const wal = statSync(`${database.name}-wal`, { throwIfNoEntry: false });
  return { ...pageBytes(database), walBytes: wal?.size ?? 0, ...ends, firstReceivedAtUs };
}
