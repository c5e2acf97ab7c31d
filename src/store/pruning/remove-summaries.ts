/** Removes jobs and texts of summaries of what is no longer in the log. */
import type { Database } from 'better-sqlite3';
import type { PruneStep } from '../../domain/pruning.ts';
import { repeatForStep } from './step-time.ts';

/** Rows that are looked at between two looks at the time. */
const rowsMax = 200;

/** Jobs of products that are over. Digests stay: they are few, and tell of what is gone. */
export function prepareRemoveJobs(database: Database) {
  return prepareWalk(
    database,
    'summary_job',
    `kind = 'product' AND state IN ('done', 'failed', 'dropped')
     AND position <= (SELECT position FROM prune_horizon)`,
  );
}

/** Texts that no job shows: those of the jobs that went, and older ones of subjects that were told of anew. */
export function prepareRemoveTexts(database: Database) {
  return prepareWalk(
    database,
    'summary_text',
    `created_at_us < (SELECT received_before_us FROM prune_horizon)
     AND NOT EXISTS (SELECT 1 FROM summary_job WHERE text_key = summary_text.key)`,
  );
}

/** Walks through a table in the order of its rows, which has no index on what is old. */
function prepareWalk(database: Database, table: 'summary_job' | 'summary_text', isOld: string) {
  const end = database
    .prepare<[number], number>(
      `SELECT max(rowid) FROM
         (SELECT rowid FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ${rowsMax})`,
    )
    .pluck();
  const remove = database.prepare<[number, number]>(
    `DELETE FROM ${table} WHERE rowid > ? AND rowid <= ? AND ${isOld}`,
  );
  return (after: number, stepMs: number): PruneStep => {
    let removed = 0;
    let last = after;
    const isMore = repeatForStep(stepMs, () => {
      const next = end.get(last) ?? null;
      if (next === null) return false;
      removed += remove.run(last, next).changes;
      last = next;
      return true;
    });
    return { removed, next: isMore ? last : null };
  };
}
