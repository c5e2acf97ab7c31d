/** Keeps the product index up to date with the log: in a receiver, or in a command. */

import { pause } from '../../../core/cli/io.ts';
import { moduleFile, type Remote } from '../../../core/host/rpc.ts';
import { AppError, errorText, isAppError } from '../../../core/terms/app-error.ts';
import type { Logger } from '../../../core/terms/ports.ts';
import { counted } from '../../../core/terms/text.ts';
import { inodeOf } from '../../../store/engine/database.ts';
import type { DataPlace } from '../../../store/engine/disk-limit.ts';
import { withThread } from '../../../store/engine/thread.ts';
import type { IntakeActivity } from '../../../store/log/intake-queue.ts';
import type { AfterPruning } from '../../../store/pruning/terms.ts';
import type { Store } from '../../../store/store.ts';
import type { IndexOperations, WorkDone } from './index-thread.ts';
import { currentProductFile, damagedIndex, isReportedDamaged } from './product-file.ts';

/** Duration of the thread's work between two progress reports. */
const budgetMs = 100;
/** Delay after a commit, so that notifications are indexed together. */
const collectMs = 150;
/** Interval of the check for notifications that another process wrote. */
const pollMs = 2_000;
/** Delay after a failure, such as a full disk or a locked index. */
const retryMs = 5_000;

/**
 * During a burst, indexing pauses: intake then has both processor cores. The catalogue sends up to 50 notifications a
 * second (facts, catalogue 7), and indexing keeps up with many more than `perSecondMin`.
 */
const burst = {
  perSecondMin: 3_000,
  /** Limits of a pause: its lag in notifications, and its duration. */
  lagMax: 500_000,
  pauseMaxMs: 60_000,
  pollMs: 100,
};

type Index = Remote<IndexOperations>;

/** Time without anything to index after which the thread of a receiver ends, to save memory. */
const idleSeconds = 5;

/** A batch waits up to 5 s for the lock of another process that indexes. */
function withIndex<T>(
  place: DataPlace & { idleSeconds?: number },
  work: (index: Index) => Promise<T>,
): Promise<T> {
  return withThread<IndexOperations, T>(moduleFile('./index-thread', import.meta.url), place, work);
}

/** Minimum time between two repairs of an index by this process: on a faulty disk, repairs would not end. */
const repairPauseMs = 10 * 60_000;
/** Times of the last repairs, by data directory. */
const repairedAtMs = new Map<string, number>();

/**
 * Indexes for a short time. Replaces a damaged file first. Rejects with `unavailable` if it is damaged again soon after
 * a repair.
 */
async function work(index: Index, dataDir: string, onRepair = () => {}): Promise<WorkDone> {
  for (;;) {
    const done = await index.work(budgetMs);
    if (done !== null) return done;
    const lastMs = repairedAtMs.get(dataDir);
    if (lastMs !== undefined && performance.now() - lastMs < repairPauseMs) {
      throw new AppError('unavailable', 'The product index is damaged again after a repair.', {
        advice: 'Check the disk. The next repair starts ten minutes after the last one.',
      });
    }
    await index.replaceDamaged();
    repairedAtMs.set(dataDir, performance.now());
    onRepair();
  }
}

/**
 * Indexes new notifications until stopped. Logs a failure once, and retries. Intake of the same process has priority.
 * While there is nothing to do, the thread ends.
 */
export function startIndexing(
  options: DataPlace & { log: Logger; store: Pick<Store, 'activity' | 'lastPosition' | 'pruning'> },
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const { activity, pruning, lastPosition } = options.store;
  const report = createReport(options.log);
  const stateOf = async () => {
    const file = currentProductFile(options.dataDir);
    const horizon = await pruning.pruneHorizon();
    const fileState = file && `${inodeOf(file)} ${isReportedDamaged(file)}`;
    return `${await lastPosition()} ${horizon?.position} ${fileState}`;
  };
  const follow = async (index: Index) => {
    let done: WorkDone | undefined;
    let deliveries = activity.deliveries;
    const yields = createBurstCheck(activity);
    while (!signal.aborted) {
      const arrived = activity.deliveries - deliveries;
      if (done !== undefined && yields(done.lastPosition - done.indexedPosition + arrived)) {
        await pause(burst.pollMs, signal);
        continue;
      }
      deliveries = activity.deliveries;
      // Read before the work: a change during the work causes another round.
      let since = activity.changes;
      const state = await stateOf();
      done = await work(index, options.dataDir, report.repaired);
      report.skipped(done);
      const pruned = await index.prune();
      if (pruned === null) throw damagedIndex();
      report.skipped(pruned);
      report.done();
      if (done.indexed + pruned.events > 0) continue;
      while (activity.deliveries === deliveries && !signal.aborted) {
        await activity.next(pollMs, signal, { since });
        since = activity.changes;
        if ((await stateOf()) !== state) break;
      }
      await pause(collectMs, signal);
    }
  };
  const run = async () => {
    while (!signal.aborted) {
      try {
        await withIndex({ ...options, idleSeconds }, follow);
      } catch (error) {
        report.failed(error);
        await pause(retryMs, signal);
      }
    }
  };
  const ended = run();
  return {
    stop: async () => {
      stopping.abort();
      await ended;
    },
  };
}

/** Returns a function that decides whether indexing pauses, from its lag. */
function createBurstCheck(intake: IntakeActivity): (lag: number) => boolean {
  let sinceMs: number | null = null;
  return (lag) => {
    if (intake.perSecond() < burst.perSecondMin) sinceMs = null;
    else sinceMs ??= performance.now();
    if (sinceMs === null || lag >= burst.lagMax) return false;
    return performance.now() - sinceMs < burst.pauseMaxMs;
  };
}

/** Logs each failure once. */
function createReport(log: Logger) {
  let failure: string | null = null;
  return {
    repaired: (): void => log.warn({}, 'replaced the damaged product index'),
    skipped: ({ skipped }: Pick<WorkDone, 'skipped'>): void => {
      for (const position of skipped) log.warn({ position }, 'skipped an unreadable notification');
    },
    done: (): void => {
      if (failure !== null) log.info({}, 'indexing resumed');
      failure = null;
    },
    failed: (error: unknown): void => {
      const reason = isAppError(error) ? errorText(error) : String(error);
      if (reason !== failure) log.error({ reason, err: error }, 'failed to index products');
      failure = reason;
    },
  };
}

/**
 * Indexes all notifications that are not indexed yet. May be interrupted by the signal. Rejects with
 * `configuration` if there is no log, and `unavailable` if the index cannot be written.
 */
export async function catchUpIndex({
  onProgress,
  signal,
  ...place
}: DataPlace & {
  /** Called several times a second. */
  onProgress?: ((done: WorkDone) => void) | undefined;
  signal?: AbortSignal | undefined;
}): Promise<WorkDone> {
  return withIndex(place, async (index) => {
    for (;;) {
      const done = await work(index, place.dataDir);
      onProgress?.(done);
      if (done.indexed === 0 || signal?.aborted) return done;
    }
  });
}

/** Removes from the index the events that were pruned from the log; a receiver does so automatically. */
export const afterPruning: AfterPruning = async ({ signal, onProgress, ...place }) => {
  if (currentProductFile(place.dataDir) === null) return;
  await withIndex(place, async (index) => {
    let pruned = 0;
    while (!signal.aborted) {
      const done = await index.prune();
      // A damaged index is rebuilt from the pruned log.
      if (done === null || done.events === 0) return;
      pruned += done.events;
      onProgress(`Product index: deleted the entries of ${counted(pruned, 'notification')}`);
    }
  });
};
