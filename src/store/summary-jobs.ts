/** Changes of summaries: jobs that are added, claimed within the budget, settled, retried, dropped. */
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

/** Requests are kept longer than any budget looks back, for people who ask what was spent. */
const keptUs = 31 * dayUs;
/** So many old ones are removed with a new one: more than come, few enough to take no time. */
const removedMax = 100;

const { product, digest, asking } = summaryWaitMaxUs;

/** True of an open job that was dated by a clock that ran ahead; for a statement with `@nowUs`. */
const isStranded = `due_at_us > @nowUs + CASE WHEN state = 'asking' THEN ${asking}
  WHEN kind = 'product' THEN ${product} ELSE ${digest} END`;

/** By default, SQLite takes the index on states and sorts all that wait. */
const waitingProducts = `summary_job INDEXED BY summary_job_waiting_product
  WHERE state = 'waiting' AND kind = 'product'`;

/** With the reason as `@error`. A template was made of newer facts than a text next to it. */
const nowDropped = `state = 'dropped', error = @error,
  text_key = iif(template IS NULL, text_key, NULL)`;

const isNamed = 'id IN (SELECT value FROM json_each(@ids))';

export const summaryWrites = {
  /** A subject that is requested again begins again, but for its text: an old one is better than none. */
  enqueue(
    database: Database,
    { jobs, cursor, waitingMax, atUs }: Options<'enqueue'>,
  ): { ids: number[]; dropped: number } {
    const ids = jobs.map((job) => put(database, job, atUs));
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

  /** Writes three rows at most, each found by its key: the request, the text and the job. */
  settle(database: Database, { job, request, result, nowUs }: Options<'settle'>): void {
    const { id, revision } = job;
    if (request !== null) {
      prepared(
        database,
        `UPDATE summary_request SET settled = 1, tokens = coalesce(@tokens, tokens)
         WHERE id = @request AND job_id = @id`,
      ).run({ id, request: request.id, tokens: request.tokens });
      // Requested again while this request was out, the job has waited for it.
      prepared(
        database,
        `UPDATE summary_job SET state = 'waiting', due_at_us = @nowUs
         WHERE id = @id AND revision > @revision AND state = 'asking' AND request_id = @request`,
      ).run({ id, revision, request: request.id, nowUs });
    }
    finish(database, { id, revision }, result, nowUs);
  },

  /**
   * They count as requested at this moment, so that they are not the first to be dropped again. Returns how many they
   * were: with `changedMax` there may be more.
   */
  retrySome(database: Database, { ids, nowUs }: Options<'retry'>): number {
    if (ids === 'all') return setWaiting(database, "state IN ('failed', 'dropped')", { nowUs });
    const named = { ids: JSON.stringify(ids) };
    const unverified = prepared<[object], { id: number; key: Uint8Array }>(
      database,
      `SELECT job.id, text.key FROM summary_job AS job JOIN summary_text AS text
         ON text.key = job.text_key
       WHERE job.state = 'done' AND text.verified = 0 AND job.${isNamed} LIMIT ${changedMax}`,
    ).all(named);
    for (const { id, key } of unverified) {
      // Under its request's key it would be found as the answer. An earlier one of that fate gives way.
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

  /** Returns how many they were: with `changedMax` there may be more. */
  dropSome(database: Database, { ids }: Options<'drop'>): number {
    return prepared(
      database,
      `UPDATE summary_job SET ${nowDropped} WHERE id IN (SELECT id FROM summary_job
         WHERE state = 'waiting' ${ids === 'all' ? '' : `AND ${isNamed}`} LIMIT ${changedMax})`,
    ).run({ error: 'Dropped by command.', ids: JSON.stringify(ids) }).changes;
  },
};

/**
 * A request is out, perhaps the very one that the newer job would send: it comes first, until it is settled
 * or its lease has run out.
 */
const isAsked = "state = 'asking' AND due_at_us > @atUs";

function put(database: Database, job: NewSummaryJob, atUs: number): number {
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
       state = iif(${isAsked}, 'asking', 'waiting'),
       due_at_us = iif(${isAsked}, due_at_us, excluded.due_at_us),
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
    `UPDATE summary_job SET ${nowDropped} WHERE id IN
       (SELECT id FROM ${waitingProducts} ORDER BY requested_at_us, id LIMIT @excess)`,
  ).run({ error: `more than ${waitingMax} were waiting`, excess }).changes;
}

function setWaiting(database: Database, which: string, values: object): number {
  return prepared(
    database,
    `UPDATE summary_job SET state = 'waiting', revision = revision + 1, attempts = 0,
       due_at_us = @nowUs, requested_at_us = @nowUs, error = NULL, doubted = NULL
     WHERE id IN (SELECT id FROM summary_job WHERE ${which} LIMIT ${changedMax})`,
  ).run(values).changes;
}

/**
 * The job as it was seen, while nobody else has ended it. One that was requested again has another revision;
 * one that has ended was settled by another holder, after a lease had run out.
 */
const asSeen = "id = @id AND revision = @revision AND state IN ('waiting', 'asking')";

function finish(database: Database, job: JobAsSeen, result: SummaryOutcome, nowUs: number): void {
  if (result.outcome === 'text') {
    const isSeen = prepared(database, `SELECT 1 FROM summary_job WHERE ${asSeen}`).get(job);
    keepText(database, result.key, result.text, isSeen !== undefined);
    setDone(database, job, result.key);
  } else if (result.outcome === 'known') {
    requireText(database, result.key);
    setDone(database, job, result.key);
  } else if (result.outcome === 'withdrawn') {
    prepared(database, `DELETE FROM summary_job WHERE ${asSeen}`).run(job);
  } else {
    leaveUndone(database, job, result, nowUs);
  }
}

function requireText(database: Database, key: Uint8Array): void {
  const known = prepared(database, 'SELECT 1 FROM summary_text WHERE key = ?').get(key);
  if (known !== undefined) return;
  throw new AppError('internal', 'A summary was to be a text that the store does not have.');
}

/** A late answer to the same request does not replace the one that its job was settled with. */
function keepText(
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
       template = NULL, template_at_us = NULL WHERE ${asSeen}`,
  ).run({ ...job, key });
}

/**
 * A permanent failure is the job's own, and counts. A template that comes again keeps the time when it was
 * first written; none at all leaves the one there is. A text of older facts stands until the job has ended.
 */
function leaveUndone(
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
       text_key = iif(@isOver AND coalesce(@template, template) IS NOT NULL, NULL, text_key),
       due_at_us = coalesce(@nextAttemptAtUs, due_at_us),
       template_at_us = iif(coalesce(@template, template) IS template, template_at_us, @nowUs),
       template = coalesce(@template, template)
     WHERE ${asSeen}`,
  ).run({
    ...job,
    state: isPostponed ? 'waiting' : outcome,
    isOver: Number(!isPostponed),
    doubted: doubted === undefined ? null : JSON.stringify(doubted),
    failures: Number(isPostponed ? result.counts : outcome === 'failed'),
    nextAttemptAtUs: isPostponed ? result.nextAttemptAtUs : null,
    error,
    template,
    nowUs,
  });
}

/**
 * A claim reads its job and the index on the requests of a day, and writes two rows: the job and the
 * request. The lock is taken before anything is read, so that of two programs one gets the job, and both
 * together stay within the budget.
 */
function claim(
  database: Database,
  { job: { id, revision }, nowUs, ...options }: Options<'claim'>,
): SummaryClaim {
  const { model, tokens, budget, leaseUntilUs } = options;
  const free = prepared(
    database,
    `SELECT 1 FROM summary_job WHERE id = @id AND revision = @revision
       AND state IN ('waiting', 'asking') AND (due_at_us <= @nowUs OR ${isStranded})`,
  ).get({ id, revision, nowUs });
  if (free === undefined) return { outcome: 'superseded' };
  // A clock that was set back would let them count until it has caught up.
  prepared(
    database,
    'UPDATE summary_request SET asked_at_us = @nowUs WHERE asked_at_us > @nowUs',
  ).run({ nowUs });
  const reached = reachedLimit(database, { budget, tokens, nowUs });
  if (reached !== null) return { outcome: 'budget', ...reached };
  prepared(
    database,
    `DELETE FROM summary_request WHERE id IN
       (SELECT id FROM summary_request WHERE asked_at_us < ? LIMIT ${removedMax})`,
  ).run(nowUs - keptUs);
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

/** A limit that is reached, and when enough of what counts against it has run out. */
interface ReachedLimit {
  limit: keyof SummaryBudget;
  freeAtUs: number;
}

/**
 * Returns the limit that keeps a request of so many tokens from being sent now; of several, the one that
 * takes longest. Null when none does. Where waiting does not help, because a limit is 0 or less than the
 * one request, the time is the end of the limit's window. Reads the requests of one day, in the index.
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

/** The request that must run out, and all older ones with it, for fewer than the limit to be left. */
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
  // Counted from the newest request back, the first one with which they are too many.
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
