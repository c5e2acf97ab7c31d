/** Which jobs are due, as SQL. */
import type { Database } from 'better-sqlite3';
import { type SummaryJob, summaryWaitMaxUs } from '../domain/summaries.ts';
import type { DueOptions } from './summary-messages.ts';
import { scopeIn } from './summary-rows.ts';

/** Left to itself, SQLite takes the index on states and sorts all that wait. */
const openJobs = `summary_job INDEXED BY summary_job_due WHERE state IN ('waiting', 'asking')`;

const { product, digest, asking } = summaryWaitMaxUs;

/** Whether an open job was dated by a clock that ran ahead; for a statement with `@nowUs`. */
export const isStranded = `due_at_us > @nowUs + CASE WHEN state = 'asking' THEN ${asking}
  WHEN kind = 'product' THEN ${product} ELSE ${digest} END`;

/** The same, each by an index in which there are hardly any. */
const strandedIds = `
  SELECT id FROM ${openJobs} AND kind = 'product' AND due_at_us > @nowUs + ${product}
  UNION SELECT id FROM ${openJobs} AND kind = 'digest' AND due_at_us > @nowUs + ${digest}
  UNION SELECT id FROM summary_job INDEXED BY summary_job_state
    WHERE state = 'asking' AND due_at_us > @nowUs + ${asking}`;

type StoredJob = Omit<SummaryJob, 'scope' | 'doubted'> & {
  scope: string | null;
  doubted: string | null;
};

/** Digests first: there are few, and a backlog of products may be hours long. */
export function due(database: Database, { nowUs, limit, ids }: DueOptions): SummaryJob[] {
  const among = ids === undefined ? '' : 'AND id IN (SELECT value FROM json_each(@ids))';
  const found: StoredJob[] = [];
  for (const source of [
    `${openJobs} AND kind = 'digest' AND due_at_us <= @nowUs`,
    `${openJobs} AND kind = 'product' AND due_at_us <= @nowUs`,
    `summary_job WHERE id IN (${strandedIds})`,
  ]) {
    const rows = database
      .prepare<unknown[], StoredJob>(
        `SELECT id, kind, subject, revision, product_id AS productId, product_name AS productName,
           subscription, position, scope, attempts, doubted, due_at_us AS dueAtUs,
           requested_at_us AS requestedAtUs
         FROM ${source} ${among} ORDER BY due_at_us, id LIMIT @left`,
      )
      .all({ nowUs, ids: JSON.stringify(ids ?? null), left: limit - found.length });
    found.push(...rows);
  }
  return found.map(({ scope, doubted, ...job }) => ({
    ...job,
    scope: scopeIn(scope),
    // Written by our own writer, from the same type.
    doubted: doubted === null ? null : (JSON.parse(doubted) as string[]),
  }));
}

export function nextDueAtUs(database: Database): number | null {
  const row = database
    .prepare<[], { atUs: number | null }>(`SELECT min(due_at_us) AS atUs FROM ${openJobs}`)
    .get();
  return row?.atUs ?? null;
}
