/** Works through the jobs that are due, a few at a time, until none is or nothing may be sent. */
import type { SummaryJob } from '../../domain/summaries.ts';
import { type Asking, doJob, type Held, type JobEnd } from './do-job.ts';

/** Requests at a time. */
const concurrency = 2;
/** Jobs that are looked up at once. */
const batchMax = 16;

/** Called after each job, and waited for. */
export type OnJobEnd = (job: SummaryJob, end: JobEnd) => Promise<void>;

/**
 * Why the work ended: nothing more is due, or until when there is nothing to be done. `isAsked`: the service itself
 * asked for a pause of this length.
 */
export type WorkEnd =
  | { end: 'nothing due' | 'stopped' }
  | { end: 'service'; untilUs: number; isAsked: boolean; reason: string }
  | Held;

/**
 * Resolves when no job is due, when the budget is spent, the index is behind or the service needs a pause,
 * and soon after the signal is aborted. `ids`: only these jobs; `limit`: so many ends of jobs. Rejects where
 * the store cannot be written.
 */
export async function workDue(
  asking: Asking,
  options: {
    ids?: readonly number[] | undefined;
    limit?: number | undefined;
    onEnd?: OnJobEnd | undefined;
  } = {},
): Promise<WorkEnd> {
  const { world, pause, signal } = asking;
  const { ids, onEnd } = options;
  let left = options.limit ?? Number.POSITIVE_INFINITY;
  let reason = '';
  let held: Held | null = null;
  const stop = (): WorkEnd | null => {
    const nowUs = world.nowUs();
    if (signal.aborted || left <= 0) return { end: 'stopped' };
    if (held !== null && held.untilUs > nowUs) return held;
    const untilUs = pause.untilUs();
    if (untilUs <= nowUs) return null;
    return { end: 'service', untilUs, isAsked: pause.isAsked(), reason };
  };
  for (;;) {
    const ended = stop();
    if (ended !== null) return ended;
    const limit = Math.min(left, pause.isProbing() ? 1 : batchMax);
    const named = ids === undefined ? {} : { ids };
    const jobs = await world.summaries.due({ nowUs: world.nowUs(), limit, ...named });
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
    // All are waited for, so that none goes on behind a failure of another.
    const settled = await Promise.allSettled(Array.from({ length: concurrency }, work));
    for (const one of settled) {
      if (one.status === 'rejected' && one.reason !== signal.reason) throw one.reason;
    }
  }
}
