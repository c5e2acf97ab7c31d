/** The questions about summaries as SQL, for one reading connection. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import type { SummaryState, SummaryText } from '../domain/summaries.ts';
import { spending } from './summary-budget.ts';
import { due, nextDueAtUs } from './summary-due.ts';
import type { SummaryQuestion } from './summary-messages.ts';
import {
  findSummaries,
  jobsOfProducts,
  type StoredText,
  storedTextColumns,
  textIn,
} from './summary-rows.ts';

const productIdsMax = 1_000;

/** Answers one question; the answer is what the port's call of that name resolves with. */
export function askSummaries(database: Database, question: SummaryQuestion): unknown {
  switch (question.kind) {
    case 'find':
      return findSummaries(database, question.query, question.rowsMax);
    case 'texts-of':
      return textsOf(database, question.productIds);
    case 'due':
      return due(database, question.options);
    case 'next-due':
      return nextDueAtUs(database);
    case 'known':
      return known(database, question.key);
    case 'spending':
      return spending(database, question.nowUs);
    case 'counts':
      return counts(database);
    case 'backlog':
      return backlog(database);
  }
}

function textsOf(database: Database, productIds: readonly string[]): Map<string, SummaryText> {
  if (productIds.length > productIdsMax) {
    throw new AppError('invalid', `Texts of at most ${productIdsMax} products can be asked for.`);
  }
  const rows = database
    .prepare<[string], StoredText & { productId: string }>(
      `SELECT job.product_id AS productId, ${storedTextColumns}
       FROM ${jobsOfProducts} LEFT JOIN summary_text AS text ON text.key = job.text_key
       WHERE job.kind = 'product' AND job.product_id IN (SELECT value FROM json_each(?))
       ORDER BY coalesce(text.created_at_us, job.template_at_us), job.id`,
    )
    .all(JSON.stringify(productIds));
  const texts = new Map<string, SummaryText>();
  for (const row of rows) {
    const text = textIn(row);
    if (text !== null) texts.set(row.productId, text);
  }
  return texts;
}

function known(database: Database, key: Uint8Array): SummaryText | null {
  const row = database
    .prepare<[Uint8Array], StoredText>(
      `SELECT ${storedTextColumns} FROM summary_text AS text
       LEFT JOIN (SELECT NULL AS template, NULL AS template_at_us) AS job WHERE text.key = ?`,
    )
    .get(key);
  return row === undefined ? null : textIn(row);
}

function counts(database: Database): Record<SummaryState, number> {
  const rows = database
    .prepare<[], [SummaryState, number]>('SELECT state, count(*) FROM summary_job GROUP BY state')
    .raw()
    .all();
  const found = new Map(rows);
  const count = (state: SummaryState) => found.get(state) ?? 0;
  return {
    waiting: count('waiting'),
    asking: count('asking'),
    done: count('done'),
    failed: count('failed'),
    dropped: count('dropped'),
  };
}

function backlog(database: Database): { waiting: number; failed: number } {
  const count = (where: string) =>
    Number(database.prepare(`SELECT count(*) FROM summary_job WHERE ${where}`).pluck().get());
  return { waiting: count("state IN ('waiting', 'asking')"), failed: count("state = 'failed'") };
}
