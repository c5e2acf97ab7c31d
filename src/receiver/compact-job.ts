/** Compaction of the log of a receiver. */

import { type Io, pause } from '../core/cli/io.ts';
import { type Job, type RoundTimes, startJob } from '../core/host/job.ts';
import type { Logger } from '../core/terms/ports.ts';
import { minuteMs } from '../core/terms/time-units.ts';
import { compactLog, freeShare } from '../store/bodies/compact-log.ts';
import type { DataPlace } from '../store/engine/disk-limit.ts';
import { createAcquireLock } from '../store/engine/locks.ts';
import type { Store } from '../store/store.ts';

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
