/** Keeps the index up to date with the log: for a receiver, for a command, or by a rebuild. */
import { setTimeout as delay } from 'node:timers/promises';
import { errorText, isAppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import { requireDatabase } from '../engine/database.ts';
import type { DataPlace } from '../engine/disk-limit.ts';
import { createAcquireLock } from '../engine/locks.ts';
import type { Remote } from '../engine/rpc.ts';
import { withThread } from '../engine/thread.ts';
import { removeLeftovers } from '../leftovers.ts';
import type { IndexOperations, IndexTarget, WorkDone } from './index-thread.ts';
import { currentProductFile } from './product-file.ts';

/** Duration of work of the thread between two reports. */
const budgetMs = 100;
/**
 * Limit in a second next to a receiver: intake comes first, and a burst of the catalogue brings some 50 a second
 * (facts, catalogue 7).
 */
const duringIntakeMax = 2_400;
/** A lag above this is logged: what is not indexed is not found, and reconciliation waits for it. */
const lagMax = 1_000;
/** How often the end of the log is read. */
const pollMs = 200;
/** After a failure: the disk may be full, or the index locked. */
const retryMs = 5_000;

/** How far the index has got; both are positions of the log. */
export type IndexProgress = Pick<WorkDone, 'indexedPosition' | 'lastPosition'>;

export interface IndexingOptions extends DataPlace {
  /** Called several times a second. */
  onProgress?: ((progress: IndexProgress) => void) | undefined;
  signal?: AbortSignal | undefined;
}

type Index = Remote<IndexOperations>;

/** A batch waits for the lock of another program that indexes, 5 s at most; the rest takes no time. */
function withIndex<T>(place: DataPlace, work: (index: Index) => Promise<T>): Promise<T> {
  return withThread<IndexOperations, T>('products/index-thread', place, work);
}

/**
 * Indexes what arrives until it is stopped. A failure is logged, once, and retried. `duringIntake` spares
 * a receiver in this process.
 */
export function startIndexing(options: DataPlace & { log: Logger; duringIntake: boolean }): {
  stop(): Promise<void>;
} {
  const stopping = new AbortController();
  const { signal } = stopping;
  const report = createReport(options.log);
  const perSecondMax = options.duringIntake ? duringIntakeMax : Number.POSITIVE_INFINITY;
  const pause = (ms: number) => delay(ms, undefined, { signal }).catch(() => undefined);
  const follow = async (index: Index) => {
    while (!signal.aborted) {
      const beganMs = performance.now();
      const done = await index.work('current', budgetMs);
      const changed = done.indexed + (await index.prune());
      report.done(done);
      const dueMs = beganMs + (1000 * changed) / perSecondMax;
      const waitMs = changed === 0 ? pollMs : dueMs - performance.now();
      if (waitMs > 0) await pause(waitMs);
    }
  };
  const run = async () => {
    while (!signal.aborted) {
      try {
        await withIndex(options, follow);
      } catch (error) {
        report.failed(error);
        await pause(retryMs);
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

/** Logs failures, once each, and a large lag, as that of a new index, with its end. */
function createReport(log: Logger) {
  let failure: string | null = null;
  let lags = false;
  return {
    done: ({ indexed, indexedPosition, lastPosition }: WorkDone): void => {
      if (failure !== null) log.info({}, 'indexing goes on');
      failure = null;
      const left = lastPosition - indexedPosition;
      if (!lags && left + indexed > lagMax) {
        lags = true;
        log.info({ indexedPosition, lastPosition }, 'the product index is behind and catches up');
      }
      if (!lags || left > 0) return;
      lags = false;
      log.info({ indexedPosition }, 'the product index is complete');
    },
    failed: (error: unknown): void => {
      const reason = isAppError(error) ? errorText(error) : String(error);
      if (reason !== failure) log.error({ reason, err: error }, 'products cannot be indexed');
      failure = reason;
    },
  };
}

/**
 * Indexes what the log has beyond the index, and returns how far that is. Ends early, without harm, when
 * the signal is aborted. Rejects with `configuration` where there is no log, `unavailable` where the
 * index cannot be written.
 */
export async function catchUpIndex(options: IndexingOptions): Promise<IndexProgress> {
  return withIndex(options, (index) => fill(index, 'current', options));
}

/**
 * Builds the index again from the log; it replaces the old one when it is complete. Until then, and when
 * the signal is aborted, the old one stays. Rejects as `catchUpIndex` does, and with `conflict`
 * while another program rebuilds.
 */
export async function rebuildIndex(options: IndexingOptions): Promise<IndexProgress> {
  requireDatabase(options.dataDir);
  await removeLeftovers(options.dataDir);
  const release = await createAcquireLock(options.dataDir)('index', { waitMs: 0 });
  try {
    return await withIndex(options, async (index) => {
      try {
        const progress = await fill(index, 'building', options);
        await (options.signal?.aborted ? index.discard() : index.install());
        return progress;
      } catch (error) {
        await index.discard().catch(() => undefined);
        throw error;
      }
    });
  } finally {
    release();
  }
}

async function fill(
  index: Index,
  target: IndexTarget,
  { onProgress, signal }: IndexingOptions,
): Promise<IndexProgress> {
  for (;;) {
    const done = await index.work(target, budgetMs);
    onProgress?.(done);
    if (done.indexed === 0 || signal?.aborted) return done;
  }
}

/**
 * Removes from the index what was pruned from the log; a receiver does so automatically. Resolves with the number of
 * events. Ends early, without harm, when the signal is aborted.
 */
export async function pruneIndex({
  signal,
  onPruned,
  ...place
}: DataPlace & { signal: AbortSignal; onPruned?: (events: number) => void }): Promise<number> {
  if (currentProductFile(place.dataDir) === null) return 0;
  return withIndex(place, async (index) => {
    let pruned = 0;
    for (;;) {
      const events = await index.prune();
      pruned += events;
      onPruned?.(pruned);
      if (events === 0 || signal.aborted) return pruned;
    }
  });
}
