/** Summaries in the store: the jobs, the texts that answered them, and how both are read. */
import { hash } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import {
  type DigestScope,
  type NewSummaryJob,
  type Summaries,
  type SummaryJob,
  type SummaryOutcome,
  type SummaryQuery,
  type SummaryRow,
  type SummaryState,
  type SummaryText,
  summaryWaitMaxUs,
} from '../domain/summaries.ts';
import { prepared } from './engine/database.ts';
import { changedMax } from './paging.ts';
import { claim, spending } from './summary-budget.ts';

type Options<Name extends keyof Summaries> = Parameters<Summaries[Name]>[0];
type JobAsSeen = Options<'settle'>['job'];

/** A text as it lies in its table, or the template as it lies in its job. JSON is written by this module alone. */
interface StoredText {
  text: string | null;
  model: string | null;
  verified: number | null;
  doubts: string | null;
  createdAtUs: number | null;
}

type StoredRow = Omit<SummaryRow, 'scope' | 'text'> & StoredText & { scope: string | null };

type StoredJob = Omit<SummaryJob, 'scope' | 'doubted'> & {
  scope: string | null;
  doubted: string | null;
};

/** For a query that calls the text's table `text` and the job's `job`. */
const storedTextColumns = `coalesce(text.text, job.template) AS text, text.model,
  text.verified, text.doubts, coalesce(text.created_at_us, job.template_at_us) AS createdAtUs`;

/** By default, SQLite takes an index with more to read. */
const jobsOfProducts = 'summary_job AS job INDEXED BY summary_job_product_id';

/** By default, SQLite takes the index on states and sorts all that wait. */
const openJobs = `summary_job INDEXED BY summary_job_due WHERE state IN ('waiting', 'asking')`;
const waitingProducts = `summary_job INDEXED BY summary_job_waiting_product
  WHERE state = 'waiting' AND kind = 'product'`;

/** Open jobs that were dated by a clock that ran ahead, each by an index in which there are hardly any. */
const strandedIds = `
  SELECT id FROM ${openJobs} AND kind = 'product' AND due_at_us > @nowUs + ${summaryWaitMaxUs.product}
  UNION SELECT id FROM ${openJobs} AND kind = 'digest' AND due_at_us > @nowUs + ${summaryWaitMaxUs.digest}
  UNION SELECT id FROM summary_job INDEXED BY summary_job_state
    WHERE state = 'asking' AND due_at_us > @nowUs + ${summaryWaitMaxUs.asking}`;

/** Digests first: there are few, and a backlog of products may be hours long. */
const dueJobs = [
  `${openJobs} AND kind = 'digest' AND due_at_us <= @nowUs`,
  `${openJobs} AND kind = 'product' AND due_at_us <= @nowUs`,
  `summary_job WHERE id IN (${strandedIds})`,
];

const productIdsMax = 1_000;

export const summaryReads = {
  /** One page of rows, newest first; fewer than `rowsMax` means the end. */
  page(database: Database, query: SummaryQuery, rowsMax: number): SummaryRow[] {
    const { where, values } = conditions(query);
    const source = query.productId === undefined ? 'summary_job AS job' : jobsOfProducts;
    return prepared<unknown[], StoredRow>(
      database,
      `SELECT job.id, job.kind, job.product_id AS productId, job.product_name AS productName,
         job.subscription, job.scope, job.state, job.attempts,
         job.requested_at_us AS requestedAtUs,
         iif(job.state IN ('waiting', 'asking'), job.due_at_us, NULL) AS nextTryAtUs, job.error,
         ${storedTextColumns}
       FROM ${source} LEFT JOIN summary_text AS text ON text.key = job.text_key
       WHERE ${where} ORDER BY job.id DESC LIMIT ?`,
    )
      .all(...values, rowsMax)
      .map(({ text, model, verified, doubts, createdAtUs, scope, ...row }) => ({
        ...row,
        scope: scopeIn(scope),
        text: textIn({ text, model, verified, doubts, createdAtUs }),
      }));
  },

  textsOf(database: Database, productIds: readonly string[]): Map<string, SummaryText> {
    if (productIds.length > productIdsMax) {
      throw new AppError('invalid', `Texts of at most ${productIdsMax} products can be asked for.`);
    }
    const rows = prepared<[string], StoredText & { productId: string }>(
      database,
      `SELECT job.product_id AS productId, ${storedTextColumns}
       FROM ${jobsOfProducts} LEFT JOIN summary_text AS text ON text.key = job.text_key
       WHERE job.kind = 'product' AND job.product_id IN (SELECT value FROM json_each(?))
       ORDER BY coalesce(text.created_at_us, job.template_at_us), job.id`,
    ).all(JSON.stringify(productIds));
    const texts = new Map<string, SummaryText>();
    for (const row of rows) {
      const text = textIn(row);
      if (text !== null) texts.set(row.productId, text);
    }
    return texts;
  },

  due(database: Database, { nowUs, limit, ids }: Options<'due'>): SummaryJob[] {
    const among = ids === undefined ? '' : 'AND id IN (SELECT value FROM json_each(@ids))';
    const found: StoredJob[] = [];
    for (const source of dueJobs) {
      const rows = prepared<[object], StoredJob>(
        database,
        `SELECT id, kind, subject, revision, product_id AS productId, product_name AS productName,
           subscription, position, scope, attempts, doubted, due_at_us AS dueAtUs,
           requested_at_us AS requestedAtUs
         FROM ${source} ${among} ORDER BY due_at_us, id LIMIT @left`,
      ).all({ nowUs, ids: JSON.stringify(ids ?? null), left: limit - found.length });
      found.push(...rows);
    }
    return found.map(({ scope, doubted, ...job }) => ({
      ...job,
      scope: scopeIn(scope),
      doubted: doubted === null ? null : (JSON.parse(doubted) as string[]),
    }));
  },

  nextDueAtUs(database: Database): number | null {
    const row = prepared<[], { atUs: number | null }>(
      database,
      `SELECT min(due_at_us) AS atUs FROM ${openJobs}`,
    ).get();
    return row?.atUs ?? null;
  },

  known(database: Database, key: Uint8Array): SummaryText | null {
    const row = prepared<[Uint8Array], StoredText>(
      database,
      `SELECT ${storedTextColumns} FROM summary_text AS text
       LEFT JOIN (SELECT NULL AS template, NULL AS template_at_us) AS job WHERE text.key = ?`,
    ).get(key);
    return row === undefined ? null : textIn(row);
  },

  spending,

  counts(database: Database): Record<SummaryState, number> {
    const rows = prepared<[], { state: SummaryState; count: number }>(
      database,
      'SELECT state, count(*) AS count FROM summary_job GROUP BY state',
    ).all();
    const none = { waiting: 0, asking: 0, done: 0, failed: 0, dropped: 0 };
    return { ...none, ...Object.fromEntries(rows.map(({ state, count }) => [state, count])) };
  },

  backlog(database: Database): { waiting: number; failed: number } {
    const count = (where: string) =>
      Number(prepared(database, `SELECT count(*) FROM summary_job WHERE ${where}`).pluck().get());
    return { waiting: count("state IN ('waiting', 'asking')"), failed: count("state = 'failed'") };
  },
};

/** A stored text, or null where there is none. */
function textIn(row: StoredText): SummaryText | null {
  const { text, model, verified, doubts, createdAtUs } = row;
  if (text === null || createdAtUs === null) return null;
  return {
    text,
    model,
    verified: verified !== 0,
    // A template has none.
    doubts: doubts === null ? [] : (JSON.parse(doubts) as string[]),
    createdAtUs,
  };
}

function scopeIn(text: string | null): DigestScope | null {
  return text === null ? null : (JSON.parse(text) as DigestScope);
}

function conditions(query: SummaryQuery) {
  const verified = query.verified === undefined ? undefined : Number(query.verified);
  const parts: [string, unknown][] = [
    // `+`: by the index on kind, all that match would be sorted for each page.
    ['+job.kind = ?', query.kind],
    ['job.state = ?', query.state],
    ['job.product_id = ?', query.productId],
    ['job.subscription = ?', query.subscription],
    // A template is verified; where there is no text at all, this is NULL and matches neither.
    ['coalesce(text.verified, job.template IS NOT NULL OR NULL) = ?', verified],
    ['job.requested_at_us >= ?', query.sinceUs],
    ['job.requested_at_us < ?', query.untilUs],
    ['job.id < ?', query.beforeId],
  ];
  const used = parts.filter(([, value]) => value !== undefined);
  return {
    where: used.length === 0 ? 'true' : used.map(([text]) => text).join(' AND '),
    values: used.map(([, value]) => value),
  };
}

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
       due_at_us = coalesce(@nextTryAtUs, due_at_us),
       template_at_us = iif(coalesce(@template, template) IS template, template_at_us, @nowUs),
       template = coalesce(@template, template)
     WHERE ${asSeen}`,
  ).run({
    ...job,
    state: isPostponed ? 'waiting' : outcome,
    isOver: Number(!isPostponed),
    doubted: doubted === undefined ? null : JSON.stringify(doubted),
    failures: Number(isPostponed ? result.counts : outcome === 'failed'),
    nextTryAtUs: isPostponed ? result.nextTryAtUs : null,
    error,
    template,
    nowUs,
  });
}
