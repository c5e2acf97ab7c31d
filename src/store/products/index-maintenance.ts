/** Keeps the index up to date with the log: beside the receiver, for a command, or built anew. */

import { setTimeout as delay } from 'node:timers/promises';
import { errorText, isAppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import { requireDatabase } from '../engine/database.ts';
import type { DataPlace } from '../engine/disk-limit.ts';
import { createTakeLock } from '../engine/locks.ts';
import { type Remote, remote } from '../engine/rpc.ts';
import { StoreThread, threadFile } from '../engine/thread.ts';
import { removeLeftovers } from '../leftovers.ts';
import type { IndexOperations, IndexTarget, WorkDone } from './index-thread.ts';
import { currentProductFile } from './product-file.ts';

/** How long the thread works before it says how far it is. */
const budgetMs = 100;
/**
 * Beside a receiver no more are indexed in a second: intake comes first, and a burst of the catalogue
 * brings some 50 a second (facts, catalogue 7).
 */
const besideIntakeMax = 2_400;
/** So many behind the log are told of: what is not indexed is not found, and reconciliation waits for it. */
const behindMax = 1_000;
/** How often the end of the log is looked at. */
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

/**
 * Indexes what arrives until it is stopped. What fails is logged, once, and tried again. `besideIntake` spares
 * a receiver in this process.
 */
export function startIndexing(options: DataPlace & { log: Logger; besideIntake: boolean }): {
  stop(): Promise<void>;
} {
  const { log } = options;
  const perSecondMax = options.besideIntake ? besideIntakeMax : Number.POSITIVE_INFINITY;
  const stopping = new AbortController();
  const thread = openThread(options);
  const ended = follow(remote<IndexOperations>(thread), {
    log,
    perSecondMax,
    signal: stopping.signal,
  });
  return {
    stop: async () => {
      stopping.abort();
      await ended;
      await thread.close();
    },
  };
}

/**
 * Indexes what the log has beyond the index, and tells how far that is. Ends early, without harm, when
 * the signal is aborted. Rejects with `configuration` where there is no log, `unavailable` where the
 * index cannot be written.
 */
export async function catchUpIndex(options: IndexingOptions): Promise<IndexProgress> {
  return withThread(options, (index) => fill(index, 'current', options));
}

/**
 * Builds the index anew from the log; it replaces the old one when it is complete. Until then, and when
 * the signal is aborted, all goes on with the old one. Rejects as `catchUpIndex` does, and with `conflict`
 * while another program rebuilds.
 */
export async function rebuildIndex(options: IndexingOptions): Promise<IndexProgress> {
  requireDatabase(options.dataDir);
  await removeLeftovers(options.dataDir);
  const release = await createTakeLock(options.dataDir)('index', { waitMs: 0 });
  try {
    return await withThread(options, (index) => rebuild(index, options));
  } finally {
    release();
  }
}

/**
 * Takes out of the index what was pruned from the log; a receiver does so by itself. Resolves with how many events
 * went. Ends early, without harm, when the signal is aborted.
 */
export async function pruneIndex({
  signal,
  onPruned,
  ...place
}: DataPlace & { signal: AbortSignal; onPruned?: (events: number) => void }): Promise<number> {
  if (currentProductFile(place.dataDir) === null) return 0;
  return withThread(place, async (index) => {
    let pruned = 0;
    for (;;) {
      const events = await index.prune();
      pruned += events;
      onPruned?.(pruned);
      if (events === 0 || signal.aborted) return pruned;
    }
  });
}

async function rebuild(index: Index, options: IndexingOptions): Promise<IndexProgress> {
  try {
    const progress = await fill(index, 'building', options);
    await (options.signal?.aborted ? index.discard() : index.install());
    return progress;
  } catch (error) {
    await index.discard().catch(() => undefined);
    throw error;
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

async function follow(
  index: Index,
  { log, perSecondMax, signal }: { log: Logger; perSecondMax: number; signal: AbortSignal },
): Promise<void> {
  let failed: string | null = null;
  const tellLag = createLagReport(log);
  while (!signal.aborted) {
    let waitMs = pollMs;
    try {
      const beganMs = performance.now();
      const done = await index.work('current', budgetMs);
      const changed = done.indexed + (await index.prune());
      tellLag(done);
      if (failed !== null) log.info({}, 'indexing goes on');
      failed = null;
      const dueMs = beganMs + (1000 * changed) / perSecondMax;
      if (changed > 0) waitMs = Math.max(0, dueMs - performance.now());
    } catch (error) {
      const reason = isAppError(error) ? errorText(error) : String(error);
      if (reason !== failed) log.error({ reason, err: error }, 'products cannot be indexed');
      failed = reason;
      waitMs = retryMs;
    }
    if (waitMs > 0) await delay(waitMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Tells when the index has fallen behind, as one that is made anew has, and when it is complete again. */
function createLagReport(log: Logger): (done: WorkDone) => void {
  let behind = false;
  return ({ indexed, indexedPosition, lastPosition }) => {
    const left = lastPosition - indexedPosition;
    if (!behind && left + indexed > behindMax) {
      behind = true;
      log.info({ indexedPosition, lastPosition }, 'the product index is behind and catches up');
    }
    if (behind && left === 0) {
      behind = false;
      log.info({ indexedPosition }, 'the product index is complete');
    }
  };
}

async function withThread<T>(place: DataPlace, use: (index: Index) => Promise<T>): Promise<T> {
  const thread = openThread(place);
  try {
    await thread.start();
    return await use(remote<IndexOperations>(thread));
  } finally {
    await thread.close();
  }
}

function openThread({ dataDir, diskReserveBytes }: DataPlace): StoreThread {
  // A batch waits for the lock of another program that indexes, 5 s at most; the rest takes no time.
  return new StoreThread(threadFile('products/index-thread'), {
    dataDir,
    diskReserveBytes,
    callTimeoutSeconds: Number.POSITIVE_INFINITY,
  });
}
