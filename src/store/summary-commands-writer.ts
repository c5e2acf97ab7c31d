/** Writes what people want of jobs that are there: to be tried again, or to wait no longer. */
import { hash } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { changedMax } from './change-all.ts';
import { nowDropped } from './summary-jobs-writer.ts';
import type { DropOptions, RetryOptions } from './summary-messages.ts';

/**
 * They count as wanted anew at this moment, so that they are not the first to be dropped again. Returns how
 * many they were: with `changedMax` there may be more.
 */
export function prepareRetry(database: Database) {
  const prepare = (which: string) =>
    database.prepare(
      `UPDATE summary_job SET state = 'waiting', revision = revision + 1, attempts = 0,
         due_at_us = @nowUs, requested_at_us = @nowUs, error = NULL, doubted = NULL
       WHERE id IN (SELECT id FROM summary_job WHERE ${which} LIMIT ${changedMax})`,
    );
  const all = prepare("state IN ('failed', 'dropped')");
  const some = prepare(`state IN ('failed', 'dropped') AND ${isNamed}`);
  const one = prepare('id = @id');
  const unverified = database.prepare<[{ ids: string }], { id: number; key: Uint8Array }>(
    `SELECT job.id, text.key FROM summary_job AS job JOIN summary_text AS text
       ON text.key = job.text_key
     WHERE job.state = 'done' AND text.verified = 0 AND job.${isNamed} LIMIT ${changedMax}`,
  );
  // Under its request's key it would be found as the answer. An earlier one of that fate gives way.
  const moveText = database.prepare(
    'UPDATE OR REPLACE summary_text SET key = @aside WHERE key = @key',
  );
  const moveKey = database.prepare('UPDATE summary_job SET text_key = @aside WHERE id = @id');
  return ({ ids, nowUs }: RetryOptions): number => {
    if (ids === 'all') return all.run({ nowUs }).changes;
    const named = { ids: JSON.stringify(ids) };
    const doubtful = unverified.all(named);
    for (const { id, key } of doubtful) {
      const aside = hash('sha256', key, 'buffer');
      moveText.run({ key, aside });
      moveKey.run({ id, aside });
      one.run({ id, nowUs });
    }
    return doubtful.length + some.run({ ...named, nowUs }).changes;
  };
}

const isNamed = 'id IN (SELECT value FROM json_each(@ids))';

/** Returns how many they were: with `changedMax` there may be more. */
export function prepareDrop(database: Database) {
  const prepare = (among: string) =>
    database.prepare(
      `UPDATE summary_job SET ${nowDropped} WHERE id IN
         (SELECT id FROM summary_job WHERE state = 'waiting' ${among} LIMIT ${changedMax})`,
    );
  const all = prepare('');
  const some = prepare(`AND ${isNamed}`);
  const error = 'Dropped by command.';
  return ({ ids }: DropOptions): number =>
    ids === 'all'
      ? all.run({ error }).changes
      : some.run({ error, ids: JSON.stringify(ids) }).changes;
}
