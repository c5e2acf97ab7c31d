/** Prunes the log step by step, while others read and write it. */
import {
  type PrunePhase,
  type PruneRequest,
  type Pruning,
  prunePhases,
} from '../../domain/pruning.ts';

/** Rows that went, by phase; of `space`, bytes. */
export type Pruned = Record<PrunePhase, number>;

export interface PruneContext {
  pruning: Pick<Pruning, 'pruneStep' | 'checkpoint' | 'logSize'>;
  /** Resolves after a time, or at once when the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  signal: AbortSignal;
  /** Called after each step with what has gone so far. */
  onStep?: ((phase: PrunePhase, pruned: Readonly<Pruned>) => void) | undefined;
  /** What tests make smaller. */
  walBytesMax?: number;
}

/** After each step as many times as long as it took, and at least so long: intake has the lock meanwhile. */
const pauseFactor = 2;
const pauseMsMin = 20;
const pauseMsMax = 1_000;

/**
 * The write-ahead log grows as long as somebody reads from before, such as a backup. Beyond this, it is waited for:
 * the disk may be what is to be freed.
 */
const walBytesMaxUsual = 64 * 2 ** 20;

/**
 * Ends early, without harm, when the signal is aborted, and goes on where it was when it is called again. Rejects
 * with `unavailable` when the store cannot be written.
 */
export async function pruneLog(request: PruneRequest, context: PruneContext): Promise<Pruned> {
  const { pruning, pause, signal, onStep, walBytesMax = walBytesMaxUsual } = context;
  const pruned: Pruned = {
    notifications: 0,
    quarantine: 0,
    'summary-jobs': 0,
    'summary-texts': 0,
    space: 0,
  };
  for (const phase of prunePhases) {
    for (let after: number | null = 0; after !== null && !signal.aborted; ) {
      if ((await pruning.logSize()).walBytes > walBytesMax) {
        await pruning.checkpoint();
        await pause(pauseMsMax, signal);
        continue;
      }
      const beganMs = performance.now();
      const { removed, next } = await pruning.pruneStep({ phase, request, after });
      const tookMs = performance.now() - beganMs;
      pruned[phase] += removed;
      onStep?.(phase, pruned);
      after = next;
      await pause(Math.min(Math.max(pauseFactor * tookMs, pauseMsMin), pauseMsMax), signal);
    }
  }
  await pruning.checkpoint();
  return pruned;
}
