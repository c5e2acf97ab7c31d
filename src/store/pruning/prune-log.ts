/** Prunes the log step by step, while other processes read and write it. */
import type { PruneRequest, Pruning } from './terms.ts';

/** Removed rows by phase; for `space`, freed bytes. */
export type Pruned = Readonly<
  Record<string, number> & Record<'notifications' | 'quarantine' | 'space', number>
>;

export interface PruneContext {
  pruning: Pick<Pruning, 'prunePhases' | 'pruneStep' | 'checkpoint' | 'logSize'>;
  /** Resolves after the delay, or when the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  signal: AbortSignal;
  /** Called after each step with the totals so far. */
  onStep?: ((phase: string, pruned: Pruned) => void) | undefined;
  /** For tests. */
  walBytesMax?: number;
}

/** Pause after each step, so that intake gets the lock: this factor times the step's duration, within the limits. */
const pauseFactor = 2;
const pauseMsMin = 20;
const pauseMsMax = 1_000;

/**
 * Size of the write-ahead log above which pruning waits. It grows while an older snapshot is read, for example by a
 * backup, and pruning may run to free disk space.
 */
const walBytesMaxDefault = 64 * 2 ** 20;

/**
 * Runs all phases. May be interrupted by the signal; the next call continues. Rejects with `unavailable` when the
 * store cannot be written.
 */
export async function pruneLog(request: PruneRequest, context: PruneContext): Promise<Pruned> {
  const { pruning, pause, signal, onStep, walBytesMax = walBytesMaxDefault } = context;
  const phases = await pruning.prunePhases();
  const pruned: Record<string, number> & { -readonly [Phase in keyof Pruned]: number } = {
    ...Object.fromEntries(phases.map((phase) => [phase, 0])),
    ...{ notifications: 0, quarantine: 0, space: 0 },
  };
  for (const phase of phases) {
    for (let after: number | null = 0; after !== null && !signal.aborted; ) {
      if ((await pruning.logSize()).walBytes > walBytesMax) {
        await pruning.checkpoint();
        await pause(pauseMsMax, signal);
        continue;
      }
      const beganMs = performance.now();
      const { removed, next } = await pruning.pruneStep({ phase, request, after });
      const tookMs = performance.now() - beganMs;
      pruned[phase] = (pruned[phase] ?? 0) + removed;
      onStep?.(phase, pruned);
      after = next;
      await pause(Math.min(Math.max(pauseFactor * tookMs, pauseMsMin), pauseMsMax), signal);
    }
  }
  await pruning.checkpoint();
  return pruned;
}
