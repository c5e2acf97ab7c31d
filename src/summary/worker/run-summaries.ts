/** The worker beside a receiver: one part finds out what the rules ask for, another writes it. */
import { setTimeout as delay } from 'node:timers/promises';
import { errorText, isAppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import type { SummaryJob } from '../../domain/summaries.ts';
import { collectJobs, createDropNotice, type RuleOf } from './collect-jobs.ts';
import { type Blocked, doJob, type JobEnd, type WorkDeps } from './do-job.ts';
import { createServicePause, type SummaryContext } from './summary-context.ts';

/** How often the log and the jobs are checked. */
const pollMs = 1_000;

/** After a round that has left some, while little comes in: 500 notifications a second. */
const moreMs = 100;

/** A burst of the catalogue brings as many a second (facts, catalogue 7): then intake comes first. */
const burstPerSecond = 50;

/** After a failure: the disk may be full, or the index being rebuilt. */
const retryMs = 10_000;

export interface SummaryWorker {
  /** Requests in hand are given up; what they asked for is asked for again later. */
  stop(): Promise<void>;
}

/** What fails is logged, once, and tried again; nothing of it reaches the intake. */
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
      'what is to be summarised cannot be found',
      deps,
    ),
    repeat(
      async () => {
        await workDue(asking);
        return false;
      },
      'summaries cannot be made',
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

/** Checks whether less comes in than in a burst, since the last check. */
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

/** A round resolves with whether the next one is to follow soon. */
async function repeat(
  round: () => Promise<boolean>,
  trouble: string,
  { everyMs, log, signal }: { everyMs: number; log: Logger; signal: AbortSignal },
): Promise<void> {
  let failed: string | null = null;
  while (!signal.aborted) {
    let waitMs = everyMs;
    try {
      if (await round()) waitMs = Math.min(moreMs, everyMs);
      if (failed !== null) log.info({}, 'summaries go on');
      failed = null;
    } catch (error) {
      if (signal.aborted) return;
      const reason = isAppError(error) ? errorText(error) : String(error);
      if (reason !== failed) log.error({ reason, err: error }, trouble);
      failed = reason;
      waitMs = retryMs;
    }
    await delay(waitMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Requests at a time. */
const concurrency = 2;

/** Jobs that are looked up at once. */
const batchMax = 16;

/** Called after each job, and waited for. */
type OnJobEnd = (job: SummaryJob, end: JobEnd) => Promise<void>;

/**
 * Why the work ended: nothing more is due, or until when there is nothing to be done. `isRetryAfter`: the service itself
 * asked for a pause of this length.
 */
export type WorkEnd =
  | { end: 'nothing due' | 'stopped' }
  | { end: 'service'; untilUs: number; isRetryAfter: boolean; reason: string }
  | Blocked;

/**
 * Resolves when no job is due, when the budget is spent, the index is behind or the service needs a pause,
 * and soon after the signal is aborted. `ids`: only these jobs; `limit`: so many ends of jobs. Rejects where
 * the store cannot be written.
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
  let held: Blocked | null = null;
  const stop = (): WorkEnd | null => {
    const nowUs = context.nowUs();
    if (signal.aborted || left <= 0) return { end: 'stopped' };
    if (held !== null && held.untilUs > nowUs) return held;
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
        if ('untilUs' in end) held = end;
        await onEnd?.(job, end);
      }
    };
    // All are waited for, so that none continues behind a failure of another.
    const settled = await Promise.allSettled(Array.from({ length: concurrency }, work));
    for (const one of settled) {
      if (one.status === 'rejected' && one.reason !== signal.reason) throw one.reason;
    }
  }
}
