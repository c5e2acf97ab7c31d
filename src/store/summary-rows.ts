/** Summaries as rows: how a page of them is found, and how a stored text is read. */
import type { Database } from 'better-sqlite3';
import type { DigestScope, SummaryQuery, SummaryRow, SummaryText } from '../domain/summaries.ts';

/** A text as it lies in its table, or the template as it lies in its job. */
export interface StoredText {
  text: string | null;
  model: string | null;
  verified: number | null;
  doubts: string | null;
  createdAtUs: number | null;
}

/** For a query that calls the text's table `text` and the job's `job`. */
export const storedTextColumns = `coalesce(text.text, job.template) AS text, text.model,
  text.verified, text.doubts, coalesce(text.created_at_us, job.template_at_us) AS createdAtUs`;

/** Left to itself, SQLite takes an index with more to look at. */
export const jobsOfProducts = 'summary_job AS job INDEXED BY summary_job_product_id';

/** A stored text, or null where there is none. */
export function textIn(row: StoredText): SummaryText | null {
  const { text, model, verified, doubts, createdAtUs } = row;
  if (text === null || createdAtUs === null) return null;
  return {
    text,
    model,
    verified: verified !== 0,
    // Written by our own writer, from the same type; a template has none.
    doubts: doubts === null ? [] : (JSON.parse(doubts) as string[]),
    createdAtUs,
  };
}

export function scopeIn(text: string | null): DigestScope | null {
  // Written by our own writer, from the same type.
  return text === null ? null : (JSON.parse(text) as DigestScope);
}

type StoredRow = Omit<SummaryRow, 'scope' | 'text'> & StoredText & { scope: string | null };

/** One page of rows, newest first; fewer than `rowsMax` means the end. */
export function findSummaries(
  database: Database,
  query: SummaryQuery,
  rowsMax: number,
): SummaryRow[] {
  const { where, values } = conditions(query);
  const source = query.productId === undefined ? 'summary_job AS job' : jobsOfProducts;
  return database
    .prepare<unknown[], StoredRow>(
      `SELECT job.id, job.kind, job.product_id AS productId, job.product_name AS productName,
         job.subscription, job.scope, job.state, job.attempts,
         job.requested_at_us AS requestedAtUs,
         iif(job.state IN ('waiting', 'asking'), job.due_at_us, NULL) AS nextTryAtUs, job.error,
         ${storedTextColumns}
       FROM ${source} LEFT JOIN summary_text AS text ON text.key = job.text_key
       WHERE ${where} ORDER BY job.id DESC LIMIT ?`,
    )
    .all(...values, rowsMax)
    .map(rowIn);
}

function rowIn(stored: StoredRow): SummaryRow {
  const { text, model, verified, doubts, createdAtUs, scope, ...row } = stored;
  const found = textIn({ text, model, verified, doubts, createdAtUs });
  return { ...row, scope: scopeIn(scope), text: found };
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
