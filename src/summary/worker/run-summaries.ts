/** The worker beside a receiver: one part finds out what the rules ask for, another writes it. */
import { setTimeout as delay } from 'node:timers/promises';
import { isAppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import { collectJobs, createDropNotice } from './collect-jobs.ts';
import type { RuleOf } from './compiled-rule.ts';
import { createServicePause } from './service-pause.ts';
import type { SummaryWorld } from './summary-world.ts';
import { workDue } from './work-due.ts';

/** How often the log and the jobs are looked at. */
const pollMs = 1_000;
/**
 * After a round that may have left some of a backlog. One takes 50 notifications, whose jobs cost the writer
 * 2.4 ms: a fortieth of its time, and 500 notifications a second. Intake comes first.
 */
const moreMs = 100;
/** After a failure: the disk may be full, or the index being rebuilt. */
const retryMs = 10_000;

export interface SummaryWorker {
  /** Requests in hand are given up; what they asked for is asked for again later. */
  stop(): Promise<void>;
}

/** What fails is logged, once, and tried again; nothing of it reaches the intake. */
export function startSummaryWorker(
  world: SummaryWorld,
  ruleOf: RuleOf,
  timing: { pollMs?: number } = {},
): SummaryWorker {
  const stopping = new AbortController();
  const { signal } = stopping;
  const means = { everyMs: timing.pollMs ?? pollMs, log: world.log, signal };
  const asking = { world, pause: createServicePause(world), signal };
  const noteDropped = createDropNotice(world);
  const running = Promise.all([
    repeat(
      () => collectJobs(world, ruleOf, noteDropped),
      'what is to be summarised cannot be found',
      means,
    ),
    repeat(
      async () => {
        await workDue(asking);
        return false;
      },
      'summaries cannot be made',
      means,
    ),
  ]);
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

/** A round resolves with whether there is more to do. */
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
      const reason = isAppError(error) ? error.message : String(error);
      if (reason !== failed) log.error({ reason, err: error }, trouble);
      failed = reason;
      waitMs = retryMs;
    }
    await delay(waitMs, undefined, { signal }).catch(() => undefined);
  }
}
