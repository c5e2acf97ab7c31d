/** Background jobs of a receiver: those of all features. */
import { pause } from '../core/cli/io.ts';
import { type Closers, createClosers } from '../core/host/closers.ts';
import type { JobContext, JobSlot, RunningJob } from './job-slot.ts';
import { type LeaderJobs, startLeaderJobs } from './leadership.ts';
import { watchConfig } from './reload-config.ts';

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
