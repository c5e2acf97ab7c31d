/** Writes what came of a job, and what its request really took. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import type { SummaryOutcome, SummaryText } from '../domain/summaries.ts';
import type { SettleOptions } from './summary-messages.ts';

type JobAsSeen = SettleOptions['job'];
type Undone = Extract<SummaryOutcome, { error: string }>;

/**
 * The job as it was seen, while nobody else has ended it. One that was wanted anew has another revision;
 * one that is over was settled by another holder, after a lease had run out.
 */
const asSeen = "id = @id AND revision = @revision AND state IN ('waiting', 'asking')";

/** Writes three rows at most, each found by its key: the request, the text and the job. */
export function prepareSettle(database: Database) {
  const spent = database.prepare(
    `UPDATE summary_request SET settled = 1, tokens = coalesce(@tokens, tokens)
     WHERE id = @request AND job_id = @id`,
  );
  // Wanted anew while this request was out, the job has waited for it.
  const release = database.prepare(
    `UPDATE summary_job SET state = 'waiting', due_at_us = @nowUs
     WHERE id = @id AND revision > @revision AND state = 'asking' AND request_id = @request`,
  );
  const done = database.prepare(
    `UPDATE summary_job SET state = 'done', text_key = @key, error = NULL, doubted = NULL,
       template = NULL, template_at_us = NULL WHERE ${asSeen}`,
  );
  const withdraw = database.prepare(`DELETE FROM summary_job WHERE ${asSeen}`);
  const seen = database.prepare(`SELECT 1 FROM summary_job WHERE ${asSeen}`);
  const known = database.prepare('SELECT 1 FROM summary_text WHERE key = ?');
  const keep = prepareKeep(database);
  const leaveUndone = prepareLeaveUndone(database);
  return ({ job: { id, revision }, request, result, nowUs }: SettleOptions): void => {
    const job = { id, revision };
    if (request !== null) {
      spent.run({ id, request: request.id, tokens: request.tokens });
      release.run({ ...job, request: request.id, nowUs });
    }
    switch (result.outcome) {
      case 'text':
        keep(result.key, result.text, seen.get(job) !== undefined);
        return void done.run({ ...job, key: result.key });
      case 'known':
        if (known.get(result.key) === undefined) {
          throw new AppError(
            'internal',
            'A summary was to be a text that the store does not have.',
          );
        }
        return void done.run({ ...job, key: result.key });
      case 'withdrawn':
        return void withdraw.run(job);
      case 'postponed':
      case 'failed':
      case 'dropped':
        return void leaveUndone(job, result, nowUs);
    }
  };
}

/** A late answer to the same request does not replace the one that its job was settled with. */
function prepareKeep(database: Database) {
  const upsert = database.prepare(
    `INSERT INTO summary_text (key, text, model, verified, doubts, created_at_us)
     VALUES (@key, @text, @model, @verified, @doubts, @createdAtUs)
     ON CONFLICT (key) DO UPDATE SET text = excluded.text, model = excluded.model,
       verified = excluded.verified, doubts = excluded.doubts,
       created_at_us = excluded.created_at_us
     WHERE @replaces`,
  );
  return (key: Uint8Array, text: SummaryText, replaces: boolean) => {
    const { verified, doubts, ...rest } = text;
    const stored = { verified: Number(verified), doubts: JSON.stringify(doubts) };
    upsert.run({ ...rest, ...stored, key, replaces: Number(replaces) });
  };
}

/**
 * A failure for good is the job's own, and counts. A template that is told again keeps the time when it was
 * first written; none at all leaves the one there is. A text of older facts stands until the job is over.
 */
function prepareLeaveUndone(database: Database) {
  const update = database.prepare(
    `UPDATE summary_job SET state = @state, attempts = attempts + @failures, error = @error,
       doubted = coalesce(@doubted, doubted),
       text_key = iif(@isOver AND coalesce(@template, template) IS NOT NULL, NULL, text_key),
       due_at_us = coalesce(@nextTryAtUs, due_at_us),
       template_at_us = iif(coalesce(@template, template) IS template, template_at_us, @nowUs),
       template = coalesce(@template, template)
     WHERE ${asSeen}`,
  );
  return (job: JobAsSeen, result: Undone, nowUs: number) => {
    const { outcome, error, template } = result;
    const isPostponed = outcome === 'postponed';
    const doubted = isPostponed ? result.doubted : undefined;
    update.run({
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
  };
}
