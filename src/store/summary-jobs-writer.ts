/** Writes which summaries are wanted: new jobs, wanted-anew ones, and the rule for too many. */
import type { Database } from 'better-sqlite3';
import type { NewSummaryJob } from '../domain/summaries.ts';
import { changedMax } from './change-all.ts';
import type { EnqueueOptions } from './summary-messages.ts';

/** A subject that is wanted anew begins anew, but for its text: an old one is better than none. */
export function prepareEnqueue(database: Database) {
  const put = preparePut(database);
  const drop = prepareDropExcess(database);
  const moveCursor = database.prepare('INSERT OR REPLACE INTO reader_cursor VALUES (?, ?, ?)');
  return ({ jobs, cursor, waitingMax, atUs }: EnqueueOptions) => {
    const ids = jobs.map((job) => put(job, atUs));
    const dropped = drop(waitingMax);
    if (cursor !== undefined) moveCursor.run(cursor.reader, cursor.position, atUs);
    return { ids, dropped };
  };
}

/** Left to itself, SQLite takes the index on states and sorts all that wait. */
const waitingProducts = `summary_job INDEXED BY summary_job_waiting_product
  WHERE state = 'waiting' AND kind = 'product'`;

/** With the reason as `@error`. A template was made of newer facts than a text beside it. */
export const nowDropped = `state = 'dropped', error = @error,
  text_key = iif(template IS NULL, text_key, NULL)`;

function prepareDropExcess(database: Database) {
  const count = database.prepare(`SELECT count(*) FROM ${waitingProducts}`).pluck();
  const dropOldest = database.prepare(
    `UPDATE summary_job SET ${nowDropped} WHERE id IN
       (SELECT id FROM ${waitingProducts} ORDER BY requested_at_us, id LIMIT @excess)`,
  );
  return (waitingMax: number): number => {
    const excess = Math.min(Number(count.get()) - waitingMax, changedMax);
    if (excess <= 0) return 0;
    return dropOldest.run({ error: `more than ${waitingMax} were waiting`, excess }).changes;
  };
}

/**
 * A request is out, perhaps the very one that the newer job would send: it comes first, until it is settled
 * or its lease has run out.
 */
const isAsked = "state = 'asking' AND due_at_us > @atUs";

function preparePut(database: Database) {
  const upsert = database
    .prepare<unknown[], number>(
      `INSERT INTO summary_job (kind, subject, revision, product_id, product_name, subscription,
         position, scope, state, attempts, due_at_us, requested_at_us)
       VALUES (@kind, @subject, 1, @productId, @productName, @subscription,
         @position, @scope, 'waiting', 0, @dueAtUs, @atUs)
       ON CONFLICT (kind, subject) DO UPDATE SET
         revision = revision + 1, product_id = excluded.product_id,
         product_name = excluded.product_name, subscription = excluded.subscription,
         position = excluded.position, scope = excluded.scope, attempts = 0,
         state = iif(${isAsked}, 'asking', 'waiting'),
         due_at_us = iif(${isAsked}, due_at_us, excluded.due_at_us),
         error = NULL, doubted = NULL, requested_at_us = excluded.requested_at_us
       RETURNING id`,
    )
    .pluck();
  return (job: NewSummaryJob, atUs: number) => {
    const scope = job.scope === null ? null : JSON.stringify(job.scope);
    return Number(upsert.get({ ...job, scope, atUs }));
  };
}
