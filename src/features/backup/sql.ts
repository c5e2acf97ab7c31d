/** Stores the last successful and the last failed backup. */

import type { BackupRun, LastBackups } from '../../core/terms/ports.ts';
import type { Database } from '../../store/engine/database.ts';

export const schema = `
  -- The last successful and the last failed backup.
  CREATE TABLE IF NOT EXISTS backup_run (
    outcome TEXT PRIMARY KEY CHECK (outcome IN ('made', 'failed')),
    file TEXT NOT NULL,
    started_at_us INTEGER NOT NULL,
    ended_at_us INTEGER NOT NULL,
    bytes INTEGER,
    last_position INTEGER,
    error TEXT
  ) STRICT, WITHOUT ROWID;
`;

type Outcome = keyof LastBackups;

function lastBackups(database: Database): LastBackups {
  const rows = database
    .prepare<[], BackupRun & { outcome: Outcome }>(
      `SELECT outcome, file, started_at_us AS startedAtUs, ended_at_us AS endedAtUs, bytes,
         last_position AS lastPosition, error
       FROM backup_run`,
    )
    .all();
  const last: LastBackups = { made: null, failed: null };
  for (const { outcome, ...run } of rows) last[outcome] = run;
  return last;
}

/** Runs in the caller's transaction. */
function recordBackup(database: Database, run: BackupRun): void {
  const outcome: Outcome = run.error === null ? 'made' : 'failed';
  database
    .prepare(
      `INSERT OR REPLACE INTO backup_run
       VALUES (@outcome, @file, @startedAtUs, @endedAtUs, @bytes, @lastPosition, @error)`,
    )
    .run({ outcome, ...run });
}

export const reads = { lastBackups };

export const writes = { recordBackup };
