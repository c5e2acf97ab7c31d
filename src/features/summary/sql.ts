/** Summaries in the database: texts, jobs, and sent requests. */
import { dayUs } from '../../core/terms/dates.ts';
import { type Database, prepared } from '../../store/engine/database.ts';
import type { DescribeReader, PrunedRows } from '../../store/pruning/terms.ts';
import {
  type DigestScope,
  type NewSummaryJob,
  type Summaries,
  type SummaryJob,
  type SummaryOutcome,
  type SummaryQuery,
  type SummaryRow,
  type SummarySpending,
  type SummaryText,
  summaryReader,
} from './terms.ts';

export const schema = `
  -- One row per subject with its job and its text. \`due_at_us\` is null when the job is done.
  -- \`revision\` changes whenever the subject is requested again. \`scope\` and \`facts\` are JSON.
  -- \`request\` is the hash of the request that a model answered; without \`model\`, the answer was refused.

  CREATE TABLE IF NOT EXISTS summary (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    revision INTEGER NOT NULL,
    product_id TEXT,
    product_name TEXT,
    subscription TEXT,
    scope TEXT,
    position INTEGER NOT NULL,
    requested_at_us INTEGER NOT NULL,
    due_at_us INTEGER,
    reason TEXT,
    text TEXT,
    facts TEXT,
    model TEXT,
    request BLOB,
    created_at_us INTEGER,
    UNIQUE (kind, subject)
  ) STRICT;
  -- The few open jobs.
  CREATE INDEX IF NOT EXISTS summary_due ON summary (kind, due_at_us) WHERE due_at_us IS NOT NULL;
  -- The newest answers of a model.
  CREATE INDEX IF NOT EXISTS summary_answered ON summary (created_at_us)
  WHERE model IS NOT NULL OR request IS NOT NULL;
  -- Requests count against the budget, also of a job that was removed.
  CREATE TABLE IF NOT EXISTS summary_request (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_us INTEGER NOT NULL,
    tokens INTEGER NOT NULL
  ) STRICT;
  -- With the tokens, so that adding up a budget does not read the table.
  CREATE INDEX IF NOT EXISTS summary_request_at_us ON summary_request (at_us, tokens);
`;

export const needsSpace = ['enqueue', 'beginRequest'];

type Options<Name extends keyof Summaries> = Parameters<Summaries[Name]>[0];

type Stored<Row> = Omit<Row, 'scope'> & { scope: string | null };

type StoredRow = Stored<Omit<SummaryRow, 'state' | 'text'>> & StoredText;

interface StoredText {
  text: string | null;
  facts: string | null;
  model: string | null;
  createdAtUs: number | null;
}

const textColumns = 'text, facts, model, created_at_us AS createdAtUs';

const subjectColumns = `id, kind, subject, product_id AS productId, product_name AS productName, subscription,
  scope, requested_at_us AS requestedAtUs, due_at_us AS dueAtUs`;

/** No job waits longer: a job due later was dated by a clock that ran ahead, and is due now. */
const waitUsMax = 8 * dayUs;

/** Number of refused answers, one after the other, from which the model counts as unable to follow the form. */
const refusalsMin = 3;

/** Requests are kept longer than a budget needs, so that people can check the spending. */
const requestRetentionUs = 31 * dayUs;

export const reads = {
  /** Returns a page of rows, newest first; fewer than `rowsMax` mean the end. */
  page(database: Database, query: SummaryQuery, rowsMax: number): SummaryRow[] {
    const conditions: [string, unknown][] = [
      // `+` disables the index: with it, SQLite would sort all matches for each page.
      ['+kind = ?', query.kind],
      ["iif(due_at_us IS NULL, 'done', 'waiting') = ?", query.state],
      ['id IN (SELECT value FROM json_each(?))', query.ids && JSON.stringify(query.ids)],
      ["kind = 'product' AND subject = ?", query.productId?.toLowerCase()],
      ['subscription = ?', query.subscription],
      ['requested_at_us >= ?', query.sinceUs],
      ['requested_at_us < ?', query.untilUs],
      ['id < ?', query.beforeId],
    ];
    const used = conditions.filter(([, value]) => value !== undefined);
    const where = ['true', ...used.map(([text]) => text)].join(' AND ');
    return prepared<unknown[], StoredRow>(
      database,
      `SELECT ${subjectColumns}, reason, ${textColumns} FROM summary
       WHERE ${where} ORDER BY id DESC LIMIT ?`,
    )
      .all(...used.map(([, value]) => value), rowsMax)
      .map(({ text, facts, model, createdAtUs, scope, ...row }) => ({
        ...row,
        state: row.dueAtUs === null ? 'done' : 'waiting',
        scope: scopeIn(scope),
        text: textIn({ text, facts, model, createdAtUs }),
      }));
  },

  textsOf(database: Database, productIds: readonly string[]): Map<string, SummaryText> {
    const rows = prepared<[string], StoredText & { productId: string }>(
      database,
      `SELECT id.value AS productId, ${textColumns} FROM json_each(?) AS id
       JOIN summary ON kind = 'product' AND subject = lower(id.value)`,
    ).all(JSON.stringify(productIds));
    const texts = rows.map((row) => [row.productId, textIn(row)] as const);
    return new Map(texts.filter((one): one is [string, SummaryText] => one[1] !== null));
  },

  due(database: Database, { nowUs, digestsUntilUs, limit, ids }: Options<'due'>): SummaryJob[] {
    const named = ids === undefined ? '' : 'AND id IN (SELECT value FROM json_each(@ids))';
    const jobs = (kind: string, rowsMax: number) =>
      prepared<[object], Stored<SummaryJob>>(
        database,
        `SELECT ${subjectColumns}, revision, position, iif(model IS NULL, NULL, request) AS request FROM summary
         WHERE due_at_us IS NOT NULL AND ${kind} ${named}
           AND (due_at_us <= @nowUs OR due_at_us > @nowUs + ${waitUsMax})
         ORDER BY due_at_us, id LIMIT @rowsMax`,
      ).all({ nowUs, digestsUntilUs, ids: JSON.stringify(ids ?? null), rowsMax });
    // Digests come first: there are few, and products may wait for hours.
    const hasEnded = "json_extract(scope, '$.untilUs') <= @digestsUntilUs";
    const digests = jobs(`kind = 'digest' AND ${hasEnded}`, limit);
    return [...digests, ...jobs("kind = 'product'", limit - digests.length)].map(
      ({ scope, ...job }) => ({ ...job, scope: scopeIn(scope) }),
    );
  },

  waiting(database: Database): { waiting: number; dueAtUs: number | null } {
    const row = prepared<[], { waiting: number; dueAtUs: number | null }>(
      database,
      `SELECT count(*) AS waiting, min(due_at_us) AS dueAtUs FROM summary WHERE due_at_us IS NOT NULL`,
    ).get();
    return row ?? { waiting: 0, dueAtUs: null };
  },

  spending(database: Database, nowUs: number): SummarySpending {
    const row = prepared<[number, number], SummarySpending>(
      database,
      `SELECT count(*) AS requests, coalesce(sum(tokens), 0) AS tokens, min(at_us) AS sinceUs
       FROM summary_request WHERE at_us > ? AND at_us <= ?`,
    ).get(nowUs - dayUs, nowUs);
    return row ?? { requests: 0, tokens: 0, sinceUs: null };
  },

  refusedAnswer(database: Database): string | null {
    const sql = `SELECT iif(model IS NULL, reason, NULL) FROM summary
      WHERE model IS NOT NULL OR request IS NOT NULL ORDER BY created_at_us DESC LIMIT ${refusalsMin}`;
    const reasons = prepared<[], string | null>(database, sql).pluck().all();
    return reasons.length < refusalsMin || reasons.includes(null) ? null : (reasons[0] ?? null);
  },
};

function textIn({ text, facts, model, createdAtUs }: StoredText): SummaryText | null {
  if (text === null || createdAtUs === null) return null;
  return { text, facts: JSON.parse(facts ?? '{}') as SummaryText['facts'], model, createdAtUs };
}

function scopeIn(text: string | null): DigestScope | null {
  return text === null ? null : (JSON.parse(text) as DigestScope);
}

export const writes = {
  enqueue(
    database: Database,
    { jobs, cursor, waitingMax, atUs }: Options<'enqueue'>,
  ): { ids: number[]; dropped: number } {
    const ids = jobs.map((job) => upsertJob(database, job, atUs));
    if (cursor !== undefined) {
      prepared(database, 'INSERT OR REPLACE INTO reader_cursor VALUES (?, ?, ?)').run(
        cursor.reader,
        cursor.position,
        atUs,
      );
    }
    const reason = `More than ${waitingMax} summaries were waiting.`;
    const { changes: dropped } = prepared(
      database,
      `UPDATE summary SET due_at_us = NULL, reason = ? WHERE id IN
         (SELECT id FROM summary WHERE due_at_us IS NOT NULL AND kind = 'product'
          ORDER BY due_at_us DESC, id DESC LIMIT -1 OFFSET ?)`,
    ).run(reason, waitingMax);
    return { ids, dropped };
  },

  beginRequest(database: Database, { atUs, tokens }: Options<'beginRequest'>): number {
    prepared(database, 'DELETE FROM summary_request WHERE at_us < ?').run(
      atUs - requestRetentionUs,
    );
    return Number(
      prepared(database, 'INSERT INTO summary_request (at_us, tokens) VALUES (?, ?)').run(
        atUs,
        tokens,
      ).lastInsertRowid,
    );
  },

  settle(database: Database, { job, result, requests = [] }: Options<'settle'>): void {
    for (const { id, tokensAbove } of requests) {
      prepared(database, 'UPDATE summary_request SET tokens = tokens + ? WHERE id = ?').run(
        tokensAbove,
        id,
      );
    }
    const isSame = 'id = @id AND revision = @revision';
    if (result.outcome === 'withdrawn') {
      prepared(database, `DELETE FROM summary WHERE ${isSame}`).run(job);
      return;
    }
    const { text, request = null, dueAtUs = null, reason = null }: Ended = result;
    // A template with newer facts replaces an older text.
    if (text) {
      prepared(
        database,
        `UPDATE summary SET text = @text, facts = @facts, model = @model, request = @request,
           created_at_us = @createdAtUs WHERE ${isSame}`,
      ).run({ ...job, ...text, facts: JSON.stringify(text.facts), request });
    }
    prepared(
      database,
      `UPDATE summary SET due_at_us = @dueAtUs, reason = @reason WHERE ${isSame}`,
    ).run({ ...job, dueAtUs, reason });
  },
};

/** Fields of all outcomes; missing ones are null, and a missing text keeps the present one. */
interface Ended {
  outcome: SummaryOutcome['outcome'];
  text?: SummaryText | null;
  request?: Uint8Array | null;
  dueAtUs?: number | null;
  reason?: string | null;
}

function upsertJob(database: Database, job: NewSummaryJob, atUs: number): number {
  const upsert = prepared(
    database,
    `INSERT INTO summary (kind, subject, revision, product_id, product_name, subscription, scope,
       position, requested_at_us, due_at_us)
     VALUES (@kind, @subject, 1, @productId, @productName, @subscription, @scope,
       @position, @atUs, @dueAtUs)
     ON CONFLICT (kind, subject) DO UPDATE SET revision = revision + 1,
       product_id = excluded.product_id, product_name = excluded.product_name,
       subscription = excluded.subscription, scope = excluded.scope, position = excluded.position,
       requested_at_us = excluded.requested_at_us, due_at_us = excluded.due_at_us, reason = NULL
     RETURNING id`,
  ).pluck();
  const scope = job.scope === null ? null : JSON.stringify(job.scope);
  return Number(upsert.get({ ...job, scope, atUs }));
}

export const describeReader: DescribeReader = (key) =>
  key === summaryReader
    ? { name: key, advance: '`earshot start`, if a rule requests summaries' }
    : null;

/** Digests stay: they are few, and describe removed notifications. */
export const pruned: PrunedRows = {
  select: (database, after) => {
    const last = prepared<[number], number | null>(
      database,
      'SELECT max(id) FROM (SELECT id FROM summary WHERE id > ? ORDER BY id LIMIT 500)',
    ).pluck();
    const next = last.get(after) ?? null;
    if (next === null) return null;
    const ids = prepared<[number, number], number>(
      database,
      `SELECT id FROM summary WHERE id > ? AND id <= ? AND kind = 'product'
         AND position <= (SELECT position FROM prune_horizon)`,
    ).pluck();
    return { ids: ids.all(after, next), next };
  },
  remove: (database, ids) => {
    const remove = prepared<[number]>(
      database,
      `DELETE FROM summary WHERE id = ? AND position <= (SELECT position FROM prune_horizon)`,
    );
    return ids.reduce((removed, id) => removed + remove.run(id).changes, 0);
  },
};
