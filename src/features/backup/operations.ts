/** Stores the last successful and the last failed backup. */

import type { BackupRun, LastBackups } from '../../core/terms/ports.ts';
import type { Database } from '../../store/engine/database.ts';

type Outcome = keyof LastBackups;

export function lastBackups(database: Database): LastBackups {
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
export function recordBackup(database: Database, run: BackupRun): void {
  const outcome: Outcome = run.error === null ? 'made' : 'failed';
  database
    .prepare(
      `INSERT OR REPLACE INTO backup_run
       VALUES (@outcome, @file, @startedAtUs, @endedAtUs, @bytes, @lastPosition, @error)`,
    )
    .run({ outcome, ...run });
}
