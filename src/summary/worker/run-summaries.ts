/** The worker beside a receiver: one part finds out what the rules ask for, another writes it. */
import { setTimeout as delay } from 'node:timers/promises';
import { errorText, isAppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import { collectJobs, createDropNotice } from './collect-jobs.ts';
import type { RuleOf } from './compiled-rule.ts';
import { createServicePause } from './service-pause.ts';
import type { SummaryWorld } from './summary-world.ts';
import { workDue } from './work-due.ts';

/** How often the log and the jobs are looked at. */
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
  world: SummaryWorld,
  ruleOf: RuleOf,
  timing: { pollMs?: number } = {},
): SummaryWorker {
  const stopping = new AbortController();
  const { signal } = stopping;
  const means = { everyMs: timing.pollMs ?? pollMs, log: world.log, signal };
  const asking = { world, pause: createServicePause(world), signal };
  const noteDropped = createDropNotice(world);
  const isQuiet = createQuietCheck(world);
  const running = Promise.all([
    repeat(
      async () => (await collectJobs(world, ruleOf, noteDropped)) && (await isQuiet()),
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

/** Tells whether less comes in than in a burst, since it was asked last. */
function createQuietCheck({
  notifications,
}: Pick<SummaryWorld, 'notifications'>): () => Promise<boolean> {
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
