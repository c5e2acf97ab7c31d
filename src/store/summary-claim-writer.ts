/** Writes claims: who may send a request for which job, and that it is counted. */
import type { Database } from 'better-sqlite3';
import type { SummaryClaim } from '../domain/summaries.ts';
import { prepareReachedLimit } from './summary-budget.ts';
import { isStranded } from './summary-due.ts';
import type { ClaimOptions } from './summary-messages.ts';

/** Requests are kept longer than any budget looks back, for people who ask what was spent. */
const keptUs = 31 * 24 * 3_600_000_000;
/** So many old ones are removed with a new one: more than come, few enough to take no time. */
const removedMax = 100;

/**
 * A claim reads its job and the index on the requests of a day, and writes two rows: the job and the
 * request. The lock is taken before anything is read, so that of two programs one gets the job, and both
 * together stay within the budget.
 */
export function prepareClaim(database: Database) {
  const reachedLimit = prepareReachedLimit(database);
  const free = database.prepare(
    `SELECT 1 FROM summary_job WHERE id = @id AND revision = @revision
       AND state IN ('waiting', 'asking') AND (due_at_us <= @nowUs OR ${isStranded})`,
  );
  // A clock that was set back would let them count until it has caught up.
  const bringToNow = database.prepare(
    'UPDATE summary_request SET asked_at_us = @nowUs WHERE asked_at_us > @nowUs',
  );
  const removeOld = database.prepare(
    `DELETE FROM summary_request WHERE id IN
       (SELECT id FROM summary_request WHERE asked_at_us < ? LIMIT ${removedMax})`,
  );
  const lease = database.prepare(
    `UPDATE summary_job SET state = 'asking', due_at_us = @leaseUntilUs, request_id = @requestId
     WHERE id = @id`,
  );
  const count = database.prepare(
    `INSERT INTO summary_request (job_id, asked_at_us, model, tokens, settled)
     VALUES (@id, @nowUs, @model, @tokens, 0)`,
  );
  return ({ job: { id, revision }, nowUs, ...options }: ClaimOptions): SummaryClaim => {
    const { model, tokens, budget, leaseUntilUs } = options;
    if (free.get({ id, revision, nowUs }) === undefined) return { outcome: 'taken' };
    bringToNow.run({ nowUs });
    const reached = reachedLimit({ budget, tokens, nowUs });
    if (reached !== null) return { outcome: 'budget', ...reached };
    removeOld.run(nowUs - keptUs);
    const requestId = Number(count.run({ id, nowUs, model, tokens }).lastInsertRowid);
    lease.run({ id, leaseUntilUs, requestId });
    return { outcome: 'claimed', requestId };
  };
}
