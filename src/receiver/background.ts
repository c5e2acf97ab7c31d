/**
 * Background jobs of a receiver: those of all features, on each receiver or on the leader of several with a shared log.
 * Applies changes of earshot.config.ts to them.
 */
import { join } from 'node:path';
import { type Io, pause, untilAborted, within } from '../core/cli/io.ts';
import {
  type ConfigPlace,
  readConfigFile,
  subscriptionsFileName,
} from '../core/config/subscriptions-file.ts';
import { fileMark } from '../core/host/files.ts';
import { type Closers, createClosers, errorFields, type Job, startJob } from '../core/host/job.ts';
import { AppError, errorText } from '../core/terms/app-error.ts';
import type { Logger } from '../core/terms/ports.ts';
import type { JobContext, JobSlot, RunningJob } from './slots.ts';

/** Starts every background job that is configured. None of them delays intake. Each is closed by `closers`. */
export async function startBackgroundJobs(
  context: Omit<JobContext, 'jobs' | 'rejected'>,
  closers: Closers,
): Promise<void> {
  const { receiver, version, io, log } = context;
  const slots = io.features.flatMap(({ jobs = [] }) => jobs);
  const of = (runsOn: JobSlot['runsOn']) => slots.filter((slot) => slot.runsOn === runsOn);
  const config = await watchConfig(io, log);
  const own = { ...context, rejected: config.rejected };
  const jobs = await startAll(of('each'), own, closers, new Map());
  const startOnLeader = (closers: Closers) => startAll(of('leader'), own, closers, jobs);
  let leader: ReadonlyMap<string, RunningJob> = new Map();
  if (receiver.store.shared === null) leader = await startOnLeader(closers);
  else {
    const campaign = startCampaign(context, async (closers) => {
      leader = closers === null ? new Map() : await startOnLeader(closers);
    });
    closers.add(() => campaign.stop(), 'leader jobs');
  }
  receiver.setBackgroundJobs({ version, jobs, rejected: config.rejected });
  config.start(async () => {
    for (const job of [...jobs.values(), ...leader.values()]) await job.reload?.();
  });
  closers.add(() => config.stop(), 'configuration file');
}

/** Starts jobs in their order; returns those that the settings enable. */
async function startAll(
  slots: readonly JobSlot[],
  context: Omit<JobContext, 'jobs'>,
  closers: Closers,
  earlier: ReadonlyMap<string, RunningJob>,
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

/** Pause after jobs that failed to start. */
const retryMs = 10_000;

/** Starts jobs whenever this node gets the lease `leader`, and closes them when it is lost; then calls `start` with null. */
function startCampaign(
  { receiver: { store }, io, log }: Pick<JobContext, 'receiver' | 'io' | 'log'>,
  start: (closers: Closers | null) => Promise<void>,
): Job {
  const lead = async (signal: AbortSignal) => {
    const release = await store.acquireLock('leader', { waitMs: Number.POSITIVE_INFINITY, signal });
    const closers = createClosers();
    try {
      await start(closers);
      log.info({}, 'this receiver runs the background jobs');
      await untilAborted(AbortSignal.any([signal, ...(release.lost ? [release.lost] : [])]));
    } finally {
      await start(null);
      await closers.closeAll().finally(release);
    }
    if (!signal.aborted) log.warn({}, 'another receiver runs the background jobs now');
  };
  const every = { firstMs: 0, intervalMs: 0, retryMs, retryMsMax: retryMs };
  const failed = 'failed to take over the background jobs; retrying';
  return startJob({ every, run: lead, failed, busy: failed }, { pause, random: io.random, log });
}

/** Polling interval. Polling also detects changes on network drives and replaced symbolic links. */
const pollMs = 500;

/** Maximum wait at shutdown for a load that hangs. */
const stopGraceMs = 1_000;

/** For a file whose code waits for something. */
const loadTimeoutMs = 30_000;

interface ConfigWatch {
  /** Returns why the current version is rejected, without secrets; null if it is in effect. */
  rejected(): string | null;
  /**
   * Applies each later version that is completely valid. A rejected version is logged, and the previous one
   * stays in effect. Each job reads its own part.
   */
  start(apply: () => Promise<void>): void;
  stop(): Promise<void>;
}

type Place = ConfigPlace & Pick<Io, 'features'>;

/**
 * Reads the file for the first time, and logs a file that cannot be read, once for all parts of the program.
 * Later versions count as changes.
 */
async function watchConfig(place: Place, log: Logger): Promise<ConfigWatch> {
  const path = join(place.workingDir, subscriptionsFileName);
  let applied = fileMark(path);
  let last = applied;
  let rejected: string | null = null;
  let hasVersion = true;

  const reject = (error: unknown, message: string) => {
    const details = error instanceof AppError ? error.details : [];
    rejected = [errorText(error), ...details].join(' ');
    log.error(errorFields(error), message);
  };
  await readConfigFile(place).catch((error: unknown) => {
    hasVersion = false;
    const effect = 'sinks, summaries and maintenance are off until it is fixed';
    reject(error, `rejected the configuration file; ${effect}`);
  });
  const reload = async (apply: () => Promise<void>, signal: AbortSignal) => {
    const mark = fileMark(path);
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
          ...{ every: { firstMs: pollMs, intervalMs: pollMs }, stopGraceMs },
          run: (signal) => reload(apply, signal),
          failed: 'failed to check the configuration file',
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
async function checkWhole(place: Place): Promise<void> {
  const check = Promise.all(place.features.map(({ checkConfigFile }) => checkConfigFile?.(place)));
  await within(loadTimeoutMs, check, () => {
    const problem = `The file did not load within ${loadTimeoutMs / 1_000} s.`;
    throw new AppError('configuration', problem);
  });
}
