/** The budget of summaries: what was spent, and who may send the next request. Windows roll: the last hour, the last 24. */
import type { Database } from 'better-sqlite3';
import {
  type Summaries,
  type SummaryBudget,
  type SummaryClaim,
  type SummarySpending,
  summaryWaitMaxUs,
} from '../domain/summaries.ts';
import { prepared } from './engine/database.ts';

const hourUs = 3_600_000_000;
const dayUs = 24 * hourUs;

/** Requests are kept longer than any budget looks back, for people who ask what was spent. */
const keptUs = 31 * dayUs;
/** So many old ones are removed with a new one: more than come, few enough to take no time. */
const removedMax = 100;

const { product, digest, asking } = summaryWaitMaxUs;

/** True of an open job that was dated by a clock that ran ahead; for a statement with `@nowUs`. */
const isStranded = `due_at_us > @nowUs + CASE WHEN state = 'asking' THEN ${asking}
  WHEN kind = 'product' THEN ${product} ELSE ${digest} END`;

/** A request that a clock dates into the future, because it was set back since, counts as one of now. */
export function spending(database: Database, nowUs: number): SummarySpending {
  const row = prepared<[number, number], SummarySpending>(
    database,
    `SELECT count(*) FILTER (WHERE asked_at_us > ?) AS requestsLastHour,
       count(*) AS requestsLastDay, coalesce(sum(tokens), 0) AS tokensLastDay
     FROM summary_request WHERE asked_at_us > ?`,
  ).get(nowUs - hourUs, nowUs - dayUs);
  return row ?? { requestsLastHour: 0, requestsLastDay: 0, tokensLastDay: 0 };
}

/**
 * A claim reads its job and the index on the requests of a day, and writes two rows: the job and the
 * request. The lock is taken before anything is read, so that of two programs one gets the job, and both
 * together stay within the budget.
 */
export function claim(
  database: Database,
  { job: { id, revision }, nowUs, ...options }: Parameters<Summaries['claim']>[0],
): SummaryClaim {
  const { model, tokens, budget, leaseUntilUs } = options;
  const free = prepared(
    database,
    `SELECT 1 FROM summary_job WHERE id = @id AND revision = @revision
       AND state IN ('waiting', 'asking') AND (due_at_us <= @nowUs OR ${isStranded})`,
  ).get({ id, revision, nowUs });
  if (free === undefined) return { outcome: 'taken' };
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
  if (spending(database, nowUs).tokensLastDay <= left) return nowUs;
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
