/** Changes of summaries: adds, claims (within the budget), settles, retries and drops jobs. */
import { hash } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import {
  type NewSummaryJob,
  type Summaries,
  type SummaryBudget,
  type SummaryClaim,
  type SummaryOutcome,
  type SummaryText,
  summaryWaitMaxUs,
} from '../domain/summaries.ts';
import { prepared } from './engine/database.ts';
import { changedMax } from './paging.ts';
import { dayUs, hourUs, summaryReads } from './summaries.ts';

type Options<Name extends keyof Summaries> = Parameters<Summaries[Name]>[0];
type JobAsSeen = Options<'settle'>['job'];

/** Retention of requests: longer than any budget needs, so that people can check the spending. */
const requestRetentionUs = 31 * dayUs;
/** Maximum old requests removed with each new one: more than are added, and cheap. */
const removedMax = 100;

const { product, digest, asking } = summaryWaitMaxUs;

/** Condition for an open job whose due time is too far ahead of `@nowUs`, because the clock was set back. */
const isInFuture = `due_at_us > @nowUs + CASE WHEN state = 'asking' THEN ${asking}
  WHEN kind = 'product' THEN ${product} ELSE ${digest} END`;

/** Names the index: by default, SQLite uses the one on `state` and sorts all waiting jobs. */
const waitingProducts = `summary_job INDEXED BY summary_job_waiting_product
  WHERE state = 'waiting' AND kind = 'product'`;

/** Drops a job with the reason `@error`. Removes a text next to a template: the template has newer facts. */
const setDropped = `state = 'dropped', error = @error,
  text_key = iif(template IS NULL, text_key, NULL)`;

const isNamed = 'id IN (SELECT value FROM json_each(@ids))';

export const summaryWrites = {
  /** Restarts a subject that is requested again, but keeps its text: an old text is better than none. */
  enqueue(
    database: Database,
    { jobs, cursor, waitingMax, atUs }: Options<'enqueue'>,
  ): { ids: number[]; dropped: number } {
    const ids = jobs.map((job) => upsertJob(database, job, atUs));
    const dropped = dropExcess(database, waitingMax);
    if (cursor !== undefined) {
      prepared(database, 'INSERT OR REPLACE INTO reader_cursor VALUES (?, ?, ?)').run(
        cursor.reader,
        cursor.position,
        atUs,
      );
    }
    return { ids, dropped };
  },

  claim,

  /** Writes at most three rows, each by its key: the request, the text and the job. */
  settle(database: Database, { job, request, result, nowUs }: Options<'settle'>): void {
    const { id, revision } = job;
    if (request !== null) {
      prepared(
        database,
        `UPDATE summary_request SET settled = 1, tokens = coalesce(@tokens, tokens)
         WHERE id = @request AND job_id = @id`,
      ).run({ id, request: request.id, tokens: request.tokens });
      // A job that was requested again in the meantime has waited for this request.
      prepared(
        database,
        `UPDATE summary_job SET state = 'waiting', due_at_us = @nowUs
         WHERE id = @id AND revision > @revision AND state = 'asking' AND request_id = @request`,
      ).run({ id, revision, request: request.id, nowUs });
    }
    finish(database, { id, revision }, result, nowUs);
  },

  /**
   * Sets the request time to now, so that these jobs are not the first to be dropped again. Returns the number of
   * changed jobs: with `changedMax` there may be more.
   */
  retrySome(database: Database, { ids, nowUs }: Options<'retry'>): number {
    if (ids === 'all') return setWaiting(database, "state IN ('failed', 'dropped')", { nowUs });
    const named = { ids: JSON.stringify(ids) };
    const unverified = prepared<[object], { id: number; key: Uint8Array }>(
      database,
      `SELECT job.id, text.key FROM summary_job AS job JOIN summary_text AS text
         ON text.key = job.text_key
       WHERE job.state = 'done' AND text.verified = 0 AND job.${isNamed}
       ORDER BY job.id LIMIT ${changedMax}`,
    ).all(named);
    for (const { id, key } of unverified) {
      // Under the key of its request the text would be reused as the answer. Replaces an earlier text moved like this.
      const aside = hash('sha256', key, 'buffer');
      prepared(database, 'UPDATE OR REPLACE summary_text SET key = @aside WHERE key = @key').run({
        key,
        aside,
      });
      prepared(database, 'UPDATE summary_job SET text_key = @aside WHERE id = @id').run({
        id,
        aside,
      });
      setWaiting(database, 'id = @id', { id, nowUs });
    }
    const which = `state IN ('failed', 'dropped') AND ${isNamed}`;
    return unverified.length + setWaiting(database, which, { ...named, nowUs });
  },

  /** Returns the number of dropped jobs: with `changedMax` there may be more. */
  dropSome(database: Database, { ids }: Options<'drop'>): number {
    return prepared(
      database,
      `UPDATE summary_job SET ${setDropped} WHERE id IN (SELECT id FROM summary_job
         WHERE state = 'waiting' ${ids === 'all' ? '' : `AND ${isNamed}`} ORDER BY id LIMIT ${changedMax})`,
    ).run({ error: 'Dropped by command.', ids: JSON.stringify(ids) }).changes;
  },
};

/**
 * Condition for a job with a request in flight, perhaps the same one that the newer job would send. The job waits
 * until it is settled or its lease has expired.
 */
const isAsking = "state = 'asking' AND due_at_us > @atUs";

function upsertJob(database: Database, job: NewSummaryJob, atUs: number): number {
  const upsert = prepared(
    database,
    `INSERT INTO summary_job (kind, subject, revision, product_id, product_name, subscription,
       position, scope, state, attempts, due_at_us, requested_at_us)
     VALUES (@kind, @subject, 1, @productId, @productName, @subscription,
       @position, @scope, 'waiting', 0, @dueAtUs, @atUs)
     ON CONFLICT (kind, subject) DO UPDATE SET
       revision = revision + 1, product_id = excluded.product_id,
       product_name = excluded.product_name, subscription = excluded.subscription,
       position = excluded.position, scope = excluded.scope, attempts = 0,
       state = iif(${isAsking}, 'asking', 'waiting'),
       due_at_us = iif(${isAsking}, due_at_us, excluded.due_at_us),
       error = NULL, doubted = NULL, requested_at_us = excluded.requested_at_us
     RETURNING id`,
  ).pluck();
  const scope = job.scope === null ? null : JSON.stringify(job.scope);
  return Number(upsert.get({ ...job, scope, atUs }));
}

function dropExcess(database: Database, waitingMax: number): number {
  const waiting = prepared(database, `SELECT count(*) FROM ${waitingProducts}`).pluck().get();
  const excess = Math.min(Number(waiting) - waitingMax, changedMax);
  if (excess <= 0) return 0;
  return prepared(
    database,
    `UPDATE summary_job SET ${setDropped} WHERE id IN
       (SELECT id FROM ${waitingProducts} ORDER BY requested_at_us, id LIMIT @excess)`,
  ).run({ error: `more than ${waitingMax} summaries were waiting`, excess }).changes;
}

function setWaiting(database: Database, which: string, values: object): number {
  return prepared(
    database,
    `UPDATE summary_job SET state = 'waiting', revision = revision + 1, attempts = 0,
       due_at_us = @nowUs, requested_at_us = @nowUs, error = NULL, doubted = NULL
     WHERE id IN (SELECT id FROM summary_job WHERE ${which} ORDER BY id LIMIT ${changedMax})`,
  ).run(values).changes;
}

/**
 * Condition for an open job that is unchanged since it was read. A job that was requested again has another revision.
 * A job that is not open was settled by another program after the lease had expired.
 */
const isUnchanged = "id = @id AND revision = @revision AND state IN ('waiting', 'asking')";

function finish(database: Database, job: JobAsSeen, result: SummaryOutcome, nowUs: number): void {
  if (result.outcome === 'text') {
    const open = prepared(database, `SELECT 1 FROM summary_job WHERE ${isUnchanged}`).get(job);
    saveText(database, result.key, result.text, open !== undefined);
    setDone(database, job, result.key);
  } else if (result.outcome === 'known') {
    requireText(database, result.key);
    setDone(database, job, result.key);
  } else if (result.outcome === 'withdrawn') {
    prepared(database, `DELETE FROM summary_job WHERE ${isUnchanged}`).run(job);
  } else {
    saveFailure(database, job, result, nowUs);
  }
}

function requireText(database: Database, key: Uint8Array): void {
  const known = prepared(database, 'SELECT 1 FROM summary_text WHERE key = ?').get(key);
  if (known !== undefined) return;
  throw new AppError('internal', 'The store does not contain the text of the summary.');
}

/** A delayed answer does not replace the text that the job was settled with (`replaces` is false). */
function saveText(
  database: Database,
  key: Uint8Array,
  { verified, doubts, ...text }: SummaryText,
  replaces: boolean,
): void {
  prepared(
    database,
    `INSERT INTO summary_text (key, text, model, verified, doubts, created_at_us)
     VALUES (@key, @text, @model, @verified, @doubts, @createdAtUs)
     ON CONFLICT (key) DO UPDATE SET text = excluded.text, model = excluded.model,
       verified = excluded.verified, doubts = excluded.doubts,
       created_at_us = excluded.created_at_us
     WHERE @replaces`,
  ).run({
    ...text,
    key,
    verified: Number(verified),
    doubts: JSON.stringify(doubts),
    replaces: Number(replaces),
  });
}

function setDone(database: Database, job: JobAsSeen, key: Uint8Array): void {
  prepared(
    database,
    `UPDATE summary_job SET state = 'done', text_key = @key, error = NULL, doubted = NULL,
       template = NULL, template_at_us = NULL WHERE ${isUnchanged}`,
  ).run({ ...job, key });
}

/**
 * Saves a failed or postponed job. A permanent failure counts as an attempt. An unchanged template keeps its time, and
 * without a new template the old one stays. A text of older facts stays until the job has ended.
 */
function saveFailure(
  database: Database,
  job: JobAsSeen,
  result: Extract<SummaryOutcome, { error: string }>,
  nowUs: number,
): void {
  const { outcome, error, template } = result;
  const isPostponed = outcome === 'postponed';
  const doubted = isPostponed ? result.doubted : undefined;
  prepared(
    database,
    `UPDATE summary_job SET state = @state, attempts = attempts + @failures, error = @error,
       doubted = coalesce(@doubted, doubted),
       text_key = iif(@isEnded AND coalesce(@template, template) IS NOT NULL, NULL, text_key),
       due_at_us = coalesce(@nextAttemptAtUs, due_at_us),
       template_at_us = iif(coalesce(@template, template) IS template, template_at_us, @nowUs),
       template = coalesce(@template, template)
     WHERE ${isUnchanged}`,
  ).run({
    ...job,
    state: isPostponed ? 'waiting' : outcome,
    isEnded: Number(!isPostponed),
    doubted: doubted === undefined ? null : JSON.stringify(doubted),
    failures: Number(isPostponed ? result.counts : outcome === 'failed'),
    nextAttemptAtUs: isPostponed ? result.nextAttemptAtUs : null,
    error,
    template,
    nowUs,
  });
}

/**
 * Claims a job: reads it and the index on the requests of a day, and writes the job and the request. The
 * transaction acquires the lock before it reads: only one of two programs gets the job, and both together
 * stay within the budget.
 */
function claim(
  database: Database,
  { job: { id, revision }, nowUs, ...options }: Options<'claim'>,
): SummaryClaim {
  const { model, tokens, budget, leaseUntilUs } = options;
  const free = prepared(
    database,
    `SELECT 1 FROM summary_job WHERE id = @id AND revision = @revision
       AND state IN ('waiting', 'asking') AND (due_at_us <= @nowUs OR ${isInFuture})`,
  ).get({ id, revision, nowUs });
  if (free === undefined) return { outcome: 'superseded' };
  // After the clock was set back, these requests would count for too long.
  prepared(
    database,
    'UPDATE summary_request SET asked_at_us = @nowUs WHERE asked_at_us > @nowUs',
  ).run({ nowUs });
  const reached = reachedLimit(database, { budget, tokens, nowUs });
  if (reached !== null) return { outcome: 'budget', ...reached };
  prepared(
    database,
    `DELETE FROM summary_request WHERE id IN
       (SELECT id FROM summary_request WHERE asked_at_us < ? ORDER BY id LIMIT ${removedMax})`,
  ).run(nowUs - requestRetentionUs);
  const { lastInsertRowid } = prepared(
    database,
    `INSERT INTO summary_request (job_id, asked_at_us, model, tokens, settled)
     VALUES (@id, @nowUs, @model, @tokens, 0)`,
  ).run({ id, nowUs, model, tokens });
  const requestId = Number(lastInsertRowid);
  prepared(
    database,
    `UPDATE summary_job SET state = 'asking', due_at_us = @leaseUntilUs, request_id = @requestId
     WHERE id = @id`,
  ).run({ id, leaseUntilUs, requestId });
  return { outcome: 'claimed', requestId };
}

/** A reached limit, and the time from which the next request is within it. */
interface ReachedLimit {
  limit: keyof SummaryBudget;
  freeAtUs: number;
}

/**
 * Returns the limit that forbids a request with this number of tokens now; of several limits, the one with
 * the latest time; null when none does. When waiting does not help (a limit is 0 or less than this one
 * request), the time is the end of the limit's window. Reads the requests of one day from the index.
 */
function reachedLimit(
  database: Database,
  { budget, tokens, nowUs }: { budget: SummaryBudget; tokens: number; nowUs: number },
): ReachedLimit | null {
  const requestsFreeAtUs = (allowed: number, windowUs: number) => {
    const atUs = allowed < 1 ? nowUs : requestAtUs(database, nowUs - windowUs, allowed - 1);
    return atUs === undefined ? nowUs : atUs + windowUs;
  };
  const limits: ReachedLimit[] = [
    { limit: 'requestsPerHour', freeAtUs: requestsFreeAtUs(budget.requestsPerHour, hourUs) },
    { limit: 'requestsPerDay', freeAtUs: requestsFreeAtUs(budget.requestsPerDay, dayUs) },
    { limit: 'tokensPerDay', freeAtUs: tokensFreeAtUs(database, budget, tokens, nowUs) },
  ];
  const longest = limits.reduce((one, other) => (other.freeAtUs > one.freeAtUs ? other : one));
  return longest.freeAtUs > nowUs ? longest : null;
}

/** Returns the time of the newest request that must leave the window for the next one to be within the limit. */
function requestAtUs(database: Database, sinceUs: number, newer: number): number | undefined {
  return prepared<[number, number], number>(
    database,
    `SELECT asked_at_us FROM summary_request WHERE asked_at_us > ?
     ORDER BY asked_at_us DESC LIMIT 1 OFFSET ?`,
  )
    .pluck()
    .get(sinceUs, newer);
}

function tokensFreeAtUs(
  database: Database,
  { tokensPerDay }: SummaryBudget,
  tokens: number,
  nowUs: number,
): number {
  const left = tokensPerDay - tokens;
  if (left < 0 || tokensPerDay < 1) return nowUs + dayUs;
  const sinceUs = nowUs - dayUs;
  if (summaryReads.spending(database, nowUs).tokensLastDay <= left) return nowUs;
  // Sums from the newest request backwards: the first one that exceeds the limit.
  const atUs = prepared<[number, number], number>(
    database,
    `SELECT asked_at_us FROM
       (SELECT asked_at_us, sum(tokens) OVER (ORDER BY asked_at_us DESC, id DESC) AS sum_tokens
        FROM summary_request WHERE asked_at_us > ?)
     WHERE sum_tokens > ? ORDER BY asked_at_us DESC LIMIT 1`,
  )
    .pluck()
    .get(sinceUs, left);
  return (atUs ?? nowUs) + dayUs;
}
