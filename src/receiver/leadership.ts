/** Jobs that run on one receiver only: on this one, or on the leader of several receivers with a shared log. */

import type { Job } from '../core/host/job.ts';
import { errorText } from '../core/terms/app-error.ts';
import type { Logger } from '../core/terms/ports.ts';
import type { Store } from '../store/store.ts';

export interface LeaderJobs extends Job {
  /** Applies a changed configuration file. */
  reload(): Promise<void>;
}

/** Pause after jobs that failed to start. */
const retryMs = 10_000;

/**
 * Starts the jobs: at once without a shared log, otherwise whenever this node gets the lease `leader`. Stops them when
 * the lease is lost.
 */
export async function startLeaderJobs(options: {
  store: Pick<Store, 'shared' | 'acquireLock'>;
  start: () => Promise<LeaderJobs>;
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  log: Logger;
}): Promise<LeaderJobs> {
  const { store, start } = options;
  return store.shared === null ? start() : campaign(options);
}

function campaign({ store, start, pause, log }: Parameters<typeof startLeaderJobs>[0]): LeaderJobs {
  const stopping = new AbortController();
  const { signal } = stopping;
  let jobs: LeaderJobs | undefined;

  const lead = async () => {
    const release = await store.acquireLock('leader', { waitMs: Number.POSITIVE_INFINITY, signal });
    try {
      const ends = AbortSignal.any(release.lost === undefined ? [signal] : [signal, release.lost]);
      jobs = await start();
      log.info({}, 'this receiver runs the background jobs');
      if (!ends.aborted) {
        await new Promise((resolve) => ends.addEventListener('abort', resolve, { once: true }));
      }
    } finally {
      const ended = jobs;
      jobs = undefined;
      try {
        await ended?.stop();
      } finally {
        release();
      }
    }
    if (!signal.aborted) log.warn({}, 'another receiver runs the background jobs now');
  };
  const run = async () => {
    while (!signal.aborted) {
      try {
        await lead();
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ reason: errorText(error) }, 'failed to take over the background jobs; retrying');
        await pause(retryMs, signal);
      }
    }
  };
  const running = run();
  return {
    reload: async () => jobs?.reload(),
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}
