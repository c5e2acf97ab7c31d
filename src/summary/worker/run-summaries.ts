/** Background jobs of a receiver that create summary jobs by the rules, and write the summaries. */
import { setTimeout as delay } from 'node:timers/promises';
import { errorText, isAppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import type { SummaryJob } from '../../domain/summaries.ts';
import { collectJobs, createDropNotice, type RuleOf } from './collect-jobs.ts';
import { type Blocked, doJob, type JobEnd, type WorkDeps } from './do-job.ts';
import { createServicePause, type SummaryContext } from './summary-context.ts';

/** Interval at which the log and the jobs are checked. */
const pollMs = 1_000;

/** Interval while more notifications wait and the intake is quiet: reads 500 notifications per second. */
const moreMs = 100;

/** Intake rate of a burst (facts, catalogue 7): from here on the intake has priority. */
const burstPerSecond = 50;

/** Delay after a failure: the disk may be full, or the index may be rebuilding. */
const retryMs = 10_000;

export interface SummaryWorker {
  /** Cancels requests in flight; their jobs are retried later. */
  stop(): Promise<void>;
}

/** Starts the background jobs. A failure is logged once and retried; the intake is not affected. */
export function startSummaryWorker(
  context: SummaryContext,
  ruleOf: RuleOf,
  timing: { pollMs?: number } = {},
): SummaryWorker {
  const stopping = new AbortController();
  const { signal } = stopping;
  const deps = { everyMs: timing.pollMs ?? pollMs, log: context.log, signal };
  const asking = { context, pause: createServicePause(context), signal };
  const noteDropped = createDropNotice(context);
  const isQuiet = createQuietCheck(context);
  const running = Promise.all([
    repeat(
      async () => (await collectJobs(context, ruleOf, noteDropped)) && (await isQuiet()),
      'failed to collect summary jobs',
      deps,
    ),
    repeat(
      async () => {
        await workDue(asking);
        return false;
      },
      'failed to write summaries',
      deps,
    ),
  ]);
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

/** Checks whether the intake rate since the last check is below that of a burst. */
function createQuietCheck({
  notifications,
}: Pick<SummaryContext, 'notifications'>): () => Promise<boolean> {
  let [position, atMs] = [Number.POSITIVE_INFINITY, performance.now()];
  return async () => {
    const before = { position, atMs };
    [position, atMs] = [await notifications.lastPosition(), performance.now()];
    return ((position - before.position) * 1000) / (atMs - before.atMs) < burstPerSecond;
  };
}

/** Repeats rounds until the signal is aborted; a round resolves with true if the next one should follow soon. */
async function repeat(
  round: () => Promise<boolean>,
  failure: string,
  { everyMs, log, signal }: { everyMs: number; log: Logger; signal: AbortSignal },
): Promise<void> {
  let failed: string | null = null;
  while (!signal.aborted) {
    let waitMs = everyMs;
    try {
      if (await round()) waitMs = Math.min(moreMs, everyMs);
      if (failed !== null) log.info({}, 'resumed summaries');
      failed = null;
    } catch (error) {
      if (signal.aborted) return;
      const reason = isAppError(error) ? errorText(error) : String(error);
      if (reason !== failed) log.error({ reason, err: error }, failure);
      failed = reason;
      waitMs = retryMs;
    }
    await delay(waitMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Maximum number of concurrent requests. */
const concurrency = 2;

/** Maximum number of jobs read at once. */
const batchMax = 16;

/** Awaited after each job. */
type OnJobEnd = (job: SummaryJob, end: JobEnd) => Promise<void>;

/** Why the work ended. `isRetryAfter`: the service set the length of the pause. */
export type WorkEnd =
  | { end: 'nothing due' | 'stopped' }
  | { end: 'service'; untilUs: number; isRetryAfter: boolean; reason: string }
  | Blocked;

/**
 * Processes due jobs. Resolves when no job is due, the budget is spent, the index lags or the service needs a
 * pause, and soon after the signal is aborted. `ids`: only these jobs; `limit`: maximum number of processed
 * jobs. Rejects when the store cannot be written.
 */
export async function workDue(
  asking: WorkDeps,
  options: {
    ids?: readonly number[] | undefined;
    limit?: number | undefined;
    onEnd?: OnJobEnd | undefined;
  } = {},
): Promise<WorkEnd> {
  const { context, pause, signal } = asking;
  const { ids, onEnd } = options;
  let left = options.limit ?? Number.POSITIVE_INFINITY;
  let reason = '';
  let blocked: Blocked | null = null;
  const stop = (): WorkEnd | null => {
    const nowUs = context.nowUs();
    if (signal.aborted || left <= 0) return { end: 'stopped' };
    if (blocked !== null && blocked.untilUs > nowUs) return blocked;
    const untilUs = pause.untilUs();
    if (untilUs <= nowUs) return null;
    return { end: 'service', untilUs, isRetryAfter: pause.isRetryAfter(), reason };
  };
  for (;;) {
    const ended = stop();
    if (ended !== null) return ended;
    const limit = Math.min(left, pause.isProbing() ? 1 : batchMax);
    const named = ids === undefined ? {} : { ids };
    const jobs = await context.summaries.due({ nowUs: context.nowUs(), limit, ...named });
    if (jobs.length === 0) return { end: 'nothing due' };
    const queue = jobs.values();
    const work = async () => {
      for (const job of queue) {
        if (stop() !== null) return;
        const end = await doJob(job, asking);
        left -= 1;
        if ('reason' in end) reason = end.reason;
        if ('untilUs' in end) blocked = end;
        await onEnd?.(job, end);
      }
    };
    // Waits for all, so that none continues after another has failed.
    const settled = await Promise.allSettled(Array.from({ length: concurrency }, work));
    for (const one of settled) {
      if (one.status === 'rejected' && one.reason !== signal.reason) throw one.reason;
    }
  }
}
