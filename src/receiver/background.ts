/** Background jobs of a receiver: those of all features. */

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type Io, pause } from '../core/cli/io.ts';
import {
  type ConfigPlace,
  readConfigFile,
  subscriptionsFileName,
} from '../core/config/subscriptions-file.ts';
import { type Closers, createClosers, errorFields, type Job, startJob } from '../core/host/job.ts';
import { AppError, errorText } from '../core/terms/app-error.ts';
import type { Logger } from '../core/terms/ports.ts';
import type { Store } from '../store/store.ts';
import type { JobContext, JobSlot, RunningJob } from './slots.ts';

type Context = Omit<JobContext, 'jobs' | 'rejected'>;

/** Starts every background job that is configured. None of them delays intake. Each is closed by `closers`. */
export async function startBackgroundJobs(context: Context, closers: Closers): Promise<void> {
  const { receiver, version, io, log } = context;
  const slots = io.features.flatMap(({ jobs = [] }) => jobs);
  const of = (runsOn: JobSlot['runsOn']) => slots.filter((slot) => slot.runsOn === runsOn);
  const config = await watchConfig(io, log);
  const own = { ...context, rejected: config.rejected };
  const jobs = await startAll(of('each'), own, { closers, earlier: new Map() });
  const leader = await startLeaderJobs({
    ...{ store: receiver.store, pause, log },
    start: () => startOnLeader(of('leader'), own, jobs),
  });
  closers.add(() => leader.stop(), 'leader jobs');
  receiver.setBackgroundJobs({ version, jobs, rejected: config.rejected });
  config.start(async () => {
    await reloadAll(jobs);
    await leader.reload();
  });
  closers.add(() => config.stop(), 'configuration file');
}

/** Starts the jobs that only one receiver runs. */
async function startOnLeader(
  slots: readonly JobSlot[],
  context: Omit<JobContext, 'jobs'>,
  earlier: ReadonlyMap<string, RunningJob>,
): Promise<LeaderJobs> {
  const closers = createClosers();
  try {
    const jobs = await startAll(slots, context, { closers, earlier });
    return { reload: () => reloadAll(jobs), stop: closers.closeAll };
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

/** Starts jobs in their order; returns those that the settings enable. */
async function startAll(
  slots: readonly JobSlot[],
  context: Omit<JobContext, 'jobs'>,
  { closers, earlier }: { closers: Closers; earlier: ReadonlyMap<string, RunningJob> },
): Promise<Map<string, RunningJob>> {
  const started = new Map<string, RunningJob>();
  for (const { name, start } of slots) {
    const job = await start({ ...context, jobs: new Map([...earlier, ...started]) });
    if (job === null) continue;
    closers.add(() => job.stop(), name);
    started.set(name, job);
  }
  return started;
}

async function reloadAll(jobs: ReadonlyMap<string, RunningJob>): Promise<void> {
  for (const job of jobs.values()) await job.reload?.();
}

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

/** Polling interval. Polling also detects changes on network drives and replaced symbolic links. */
const pollMs = 500;

/** Maximum wait at shutdown for a load that hangs. */
const stopGraceMs = 1_000;

/** For a file whose code waits for something. */
const loadTimeoutMs = 30_000;

export interface ConfigWatch {
  /** Returns why the current version is rejected, without secrets; null if it is in effect. */
  rejected(): string | null;
  /**
   * Applies each later version that is completely valid. A rejected version is logged, and the previous one
   * stays in effect. Each job reads its own part.
   */
  start(apply: () => Promise<void>): void;
  stop(): Promise<void>;
}

/**
 * Reads the file for the first time, and logs a file that cannot be read, once for all parts of the program.
 * Later versions count as changes.
 */
export async function watchConfig(
  place: ConfigPlace & Pick<Io, 'features'>,
  log: Logger,
): Promise<ConfigWatch> {
  const path = join(place.workingDir, subscriptionsFileName);
  let applied = markOf(path);
  let last = applied;
  let rejected: string | null = null;

  const reject = (error: unknown, message: string) => {
    const details = error instanceof AppError ? error.details : [];
    rejected = [errorText(error), ...details].join(' ');
    log.error(errorFields(error), message);
  };
  let hasVersion = true;
  try {
    await readConfigFile(place);
  } catch (error) {
    hasVersion = false;
    reject(
      error,
      'rejected the configuration file; sinks, summaries and maintenance are off until it is fixed',
    );
  }
  const reload = async (apply: () => Promise<void>, signal: AbortSignal) => {
    const mark = markOf(path);
    // Two equal readings mean that the file is completely written.
    const isSettled = mark === last;
    last = mark;
    if (!isSettled || mark === applied) return;
    applied = mark;
    try {
      // Removing a file that is in effect would stop all of its sinks, so it is rejected.
      if (hasVersion && mark === '') throw removed(path);
      await checkWhole(place);
      await apply();
      [rejected, hasVersion] = [null, true];
      log.info({ path }, 'applied the changed configuration file');
    } catch (error) {
      if (signal.aborted) return;
      const effect = hasVersion
        ? 'the previous version stays in effect'
        : 'sinks, summaries and maintenance stay off';
      reject(error, `rejected the changed configuration file; ${effect}`);
    }
  };
  let job: Job | undefined;
  return {
    rejected: () => rejected,
    start: (apply) => {
      job = startJob(
        {
          every: { firstMs: pollMs, intervalMs: pollMs },
          run: (signal) => reload(apply, signal),
          failed: 'failed to check the configuration file',
          stopGraceMs,
        },
        { pause, random: () => 0.5, log },
      );
    },
    stop: async () => job?.stop(),
  };
}

function removed(path: string): AppError {
  return new AppError('configuration', `${path} was removed.`, {
    advice:
      'Restore the file. If the file is no longer needed, restart the receiver. Without a restart, write `export default { sinks: {} };` to the file.',
  });
}

/** Checks all parts of the file. Rejects with `configuration` and the problems. */
async function checkWhole(place: ConfigPlace & Pick<Io, 'features'>): Promise<void> {
  const done = new AbortController();
  const check = Promise.all(place.features.map(({ checkConfigFile }) => checkConfigFile?.(place)));
  const checked = await Promise.race([check, pause(loadTimeoutMs, done.signal)]).finally(() =>
    done.abort(),
  );
  if (checked !== undefined) return;
  throw new AppError('configuration', `The file did not load within ${loadTimeoutMs / 1_000} s.`);
}

/** Returns a mark that changes when the file is replaced or written; empty without a file. */
function markOf(path: string): string {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? '' : `${stats.ino} ${stats.mtimeMs} ${stats.size}`;
  } catch {
    return 'unreadable';
  }
}
