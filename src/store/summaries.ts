/** Queries of summaries: texts, due jobs, and spent tokens. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import {
  type DigestScope,
  type Summaries,
  type SummaryJob,
  type SummaryQuery,
  type SummaryRow,
  type SummarySpending,
  type SummaryState,
  type SummaryText,
  summaryWaitMaxUs,
} from '../domain/summaries.ts';
import { prepared } from './engine/database.ts';

type Options<Name extends keyof Summaries> = Parameters<Summaries[Name]>[0];

/** A stored text, or the template of a job. `doubts` is JSON, written only by this module. */
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

/** Columns for a query with the table aliases `text` and `job`. */
const storedTextColumns = `coalesce(text.text, job.template) AS text, text.model,
  text.verified, text.doubts, coalesce(text.created_at_us, job.template_at_us) AS createdAtUs`;

/** Names the index: by default, SQLite uses one with more rows to read. */
const jobsOfProducts = 'summary_job AS job INDEXED BY summary_job_product_id';

/** Names the index: by default, SQLite uses the one on `state` and sorts all waiting jobs. */
const openJobs = `summary_job INDEXED BY summary_job_due WHERE state IN ('waiting', 'asking')`;

/** Open jobs whose due time is too far ahead, because the clock was set back. */
const futureJobIds = `
  SELECT id FROM ${openJobs} AND kind = 'product' AND due_at_us > @nowUs + ${summaryWaitMaxUs.product}
  UNION SELECT id FROM ${openJobs} AND kind = 'digest' AND due_at_us > @nowUs + ${summaryWaitMaxUs.digest}
  UNION SELECT id FROM summary_job INDEXED BY summary_job_state
    WHERE state = 'asking' AND due_at_us > @nowUs + ${summaryWaitMaxUs.asking}`;

/** Digests come first: there are few, and a backlog of products may be hours long. */
const dueJobs = [
  `${openJobs} AND kind = 'digest' AND due_at_us <= @nowUs`,
  `${openJobs} AND kind = 'product' AND due_at_us <= @nowUs`,
  `summary_job WHERE id IN (${futureJobIds})`,
];

const productIdsMax = 1_000;
export const hourUs = 3_600_000_000;
export const dayUs = 24 * hourUs;

export const summaryReads = {
  /** Returns a page of rows, newest first; fewer than `rowsMax` mean the end. */
  page(database: Database, query: SummaryQuery, rowsMax: number): SummaryRow[] {
    const { where, values } = conditions(query);
    const source = query.productId === undefined ? 'summary_job AS job' : jobsOfProducts;
    return prepared<unknown[], StoredRow>(
      database,
      `SELECT job.id, job.kind, job.product_id AS productId, job.product_name AS productName,
         job.subscription, job.scope, job.state, job.attempts,
         job.requested_at_us AS requestedAtUs,
         iif(job.state IN ('waiting', 'asking'), job.due_at_us, NULL) AS nextAttemptAtUs, job.error,
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
      throw new AppError(
        'invalid',
        `Texts of at most ${productIdsMax} products can be requested at once.`,
      );
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

  /** Counts requests with a future time as current: the clock was set back since. */
  spending(database: Database, nowUs: number): SummarySpending {
    const row = prepared<[number, number], SummarySpending>(
      database,
      `SELECT count(*) FILTER (WHERE asked_at_us > ?) AS requestsLastHour,
         count(*) AS requestsLastDay, coalesce(sum(tokens), 0) AS tokensLastDay
       FROM summary_request WHERE asked_at_us > ?`,
    ).get(nowUs - hourUs, nowUs - dayUs);
    return row ?? { requestsLastHour: 0, requestsLastDay: 0, tokensLastDay: 0 };
  },

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

/** Returns the text of a row; null when there is none. */
function textIn(row: StoredText): SummaryText | null {
  const { text, model, verified, doubts, createdAtUs } = row;
  if (text === null || createdAtUs === null) return null;
  return {
    text,
    model,
    verified: verified !== 0,
    // A template has no doubts.
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
    // `+` disables the index on kind: with it, SQLite would sort all matches for each page.
    ['+job.kind = ?', query.kind],
    ['job.state = ?', query.state],
    ['job.product_id = ?', query.productId],
    ['job.subscription = ?', query.subscription],
    // A template is verified. Without any text this is NULL and matches neither.
    ['coalesce(text.verified, job.template IS NOT NULL OR NULL) = ?', verified],
    ['job.requested_at_us >= ?', query.sinceUs],
    ['job.requested_at_us < ?', query.untilUs],
    ['instr(job.error, ?) = 1', query.error],
    ['job.id < ?', query.beforeId],
  ];
  const used = parts.filter(([, value]) => value !== undefined);
  return {
    where: used.length === 0 ? 'true' : used.map(([text]) => text).join(' AND '),
    values: used.map(([, value]) => value),
  };
}
