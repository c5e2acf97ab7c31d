/** Records the last deliveries and counts of requests, without slowing intake. */
import type { Administration, DeliveryMark } from '../admin/account.ts';
import { type Io, pause } from '../core/cli/io.ts';
import { type Job, type RoundTimes, startJob } from '../core/host/job.ts';
import { errorText } from '../core/terms/app-error.ts';
import { minuteMs } from '../core/terms/dates.ts';
import type { Logger } from '../core/terms/ports.ts';
import { compactLog, freeShare } from '../store/bodies/compact-log.ts';
import type { DataPlace } from '../store/engine/disk-limit.ts';
import { createAcquireLock } from '../store/engine/locks.ts';
import type { Store } from '../store/store.ts';
import type { Outcome } from './app.ts';

/** Maximum age of a mark in memory. After a crash, the next delivery sets a lost mark again. */
const deliveryIntervalMs = 2_000;

/** With a shared log, each change is stored on all receivers. */
const sharedIntervalMs = 15_000;

/** Maximum number of marks in one interval: anyone with the password can invent names. */
const marksMax = 1_000;

interface DeliveryMarks extends Job {
  note(subscription: string | null, username: string): void;
}

/** Stores the marks at each interval, if there are any. */
export function startDeliveryMarks(
  {
    administration,
    shared,
  }: { administration: Pick<Administration, 'markDeliveries'>; shared: Store['shared'] },
  { nowUs, log }: { nowUs: () => number; log: Logger },
): DeliveryMarks {
  let marks = new Map<string, DeliveryMark>();
  const flush = async () => {
    if (marks.size === 0) return;
    const flushed = marks;
    marks = new Map();
    try {
      await administration.markDeliveries([...flushed.values()]);
    } catch (error) {
      const reason = errorText(error);
      log.debug({ reason }, 'failed to store the times of the last deliveries');
      marks = new Map([...new Map([...flushed, ...marks])].slice(0, marksMax));
    }
  };
  return {
    ...repeat(flush, shared === null ? deliveryIntervalMs : sharedIntervalMs),
    note: (subscription, username) => {
      const key = `${subscription ?? ''} ${username}`;
      if (marks.size >= marksMax && !marks.has(key)) return;
      marks.set(key, { subscription, username, lastAtUs: nowUs() });
    },
  };
}

const outcomeIntervalMs = 60_000;

interface OutcomeSummary extends Job {
  observe(outcome: Outcome): void;
}

/** Logs the counts once a minute, unless nothing happened. */
export function startOutcomeSummary(log: Logger): OutcomeSummary {
  let counts: Partial<Record<Outcome, number>> = {};
  const report = async () => {
    if (Object.keys(counts).length > 0) log.info(counts, 'requests since the previous report');
    counts = {};
  };
  return {
    ...repeat(report, outcomeIntervalMs),
    observe: (outcome) => {
      counts[outcome] = (counts[outcome] ?? 0) + 1;
    },
  };
}

/** Runs the work at each interval and at the stop, never twice at once. Does not keep the process alive. */
export function repeat(
  run: () => Promise<void>,
  intervalMs: number,
  first = Promise.resolve(),
): Job {
  let running = first;
  const timer = setInterval(() => {
    running = running.then(run);
  }, intervalMs);
  timer.unref();
  return {
    stop: () => {
      clearInterval(timer);
      return running.then(run);
    },
  };
}

const compactTimes: RoundTimes = { firstMs: 5 * minuteMs, intervalMs: 60 * minuteMs };

/** Ratio of the pause after a step to the duration of the step. */
const restFactor = 4;

/** Polling interval of the intake queue. */
const busyPollMs = 1_000;

/** Compacts the log once an hour, in short steps. */
export function startCompacting(
  { store, log }: { store: Pick<Store, 'queue'>; log: Logger },
  place: DataPlace,
  { random }: Pick<Io, 'random'>,
  times: Partial<RoundTimes> = {},
): Job {
  const run = async (signal: AbortSignal) => {
    const rest = async (tookMs: number) => {
      await pause(restFactor * tookMs, signal);
      while (store.queue().bytes > 0 && !signal.aborted) await pause(busyPollMs, signal);
    };
    const done = await compactLog({ ...place, freeShare, rest, signal });
    if (done.unreadable > 0) log.error({ rows: done.unreadable }, 'unreadable bodies');
    log.debug(done, 'compacted the log');
  };
  return startJob(
    {
      every: { ...compactTimes, ...times },
      failed: 'failed to compact the log; retrying later',
      // Of this machine: with a shared log, each receiver compacts its own file.
      acquireLock: () => createAcquireLock(place.dataDir)('compact', { waitMs: 0 }),
      run,
    },
    { pause, random, log },
  );
}
