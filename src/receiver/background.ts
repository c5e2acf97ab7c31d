/** Background jobs of a receiver: those of all features, on each receiver or on the leader of several with a shared log. */
import { pause, untilAborted } from '../core/cli/io.ts';
import { readConfigFile } from '../core/config/subscriptions-file.ts';
import { type Closers, createClosers, errorFields, type Job, startJob } from '../core/host/job.ts';
import type { JobContext, JobSlot, RunningJob } from './slots.ts';

/** Starts every background job that is configured. None of them delays intake. Each is closed by `closers`. */
export async function startBackgroundJobs(
  context: Omit<JobContext, 'jobs'>,
  closers: Closers,
): Promise<void> {
  const { receiver, version, io, log } = context;
  const slots = io.features.flatMap(({ jobs = [] }) => jobs);
  const of = (runsOn: JobSlot['runsOn']) => slots.filter((slot) => slot.runsOn === runsOn);
  // Logged once for all readers of the file.
  await readConfigFile(io).catch((error: unknown) =>
    log.error(
      errorFields(error),
      'rejected earshot.config.ts: sinks, summaries and maintenance are off',
    ),
  );
  const jobs = await startAll(of('each'), context, closers, new Map());
  const startOnLeader = (closers: Closers) => startAll(of('leader'), context, closers, jobs);
  if (receiver.store.shared === null) await startOnLeader(closers);
  else {
    const campaign = startCampaign(context, startOnLeader);
    closers.add(() => campaign.stop(), 'leader jobs');
  }
  receiver.setBackgroundJobs({ version, jobs });
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

/** Starts jobs whenever this node gets the lease `leader`, and closes them when it is lost. */
function startCampaign(
  { receiver: { store }, io, log }: Pick<JobContext, 'receiver' | 'io' | 'log'>,
  start: (closers: Closers) => Promise<unknown>,
): Job {
  const lead = async (signal: AbortSignal) => {
    const release = await store.acquireLock('leader', { waitMs: Number.POSITIVE_INFINITY, signal });
    const closers = createClosers();
    try {
      await start(closers);
      log.info({}, 'this receiver runs the background jobs');
      await untilAborted(AbortSignal.any([signal, ...(release.lost ? [release.lost] : [])]));
    } finally {
      await closers.closeAll().finally(release);
    }
    if (!signal.aborted) log.warn({}, 'another receiver runs the background jobs now');
  };
  const every = { firstMs: 0, intervalMs: 0, retryMs, retryMsMax: retryMs };
  const failed = 'failed to take over the background jobs; retrying';
  return startJob({ every, run: lead, failed, busy: failed }, { pause, random: io.random, log });
}
