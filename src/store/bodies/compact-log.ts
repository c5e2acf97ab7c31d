/** Compacts the log step by step on its own thread, while others read and write it. */

import type { Remote } from '../../host/rpc.ts';
import { requireDatabase } from '../engine/database.ts';
import type { DataPlace } from '../engine/disk-limit.ts';
import { withThread } from '../engine/thread.ts';
import type { CompactStep } from './compact-step.ts';
import type { CompactOperations } from './compact-thread.ts';

/** The totals of a run. */
export interface Compacted extends Omit<CompactStep, 'isDone'> {
  /** Bytes by which the file became smaller. */
  givenBackBytes: number;
}

export interface CompactOptions extends DataPlace {
  /** Rejects with `unavailable` while the free disk space is needed for intake. */
  duringIntake?: boolean;
  /** Share of the file that may stay free for new data, 0 to 1. */
  freeShare: number;
  /** Called between two steps with the duration of the first. A rejection ends the run. */
  rest: (tookMs: number) => Promise<void>;
  signal: AbortSignal;
  /** Called after each step with the totals so far. */
  onStep?: ((compacted: Readonly<Compacted>) => void) | undefined;
}

/**
 * Compacts the log. Can be aborted with the signal; the next call then resumes. Rejects with `configuration` when
 * there is no log, `unavailable` when it is not writable.
 */
export async function compactLog(options: CompactOptions): Promise<Compacted> {
  requireDatabase(options.dataDir);
  return withThread<CompactOperations, Compacted>('bodies/compact-thread', options, (compact) =>
    compactOn(compact, options),
  );
}

async function compactOn(
  compact: Remote<CompactOperations>,
  { duringIntake = false, freeShare, rest, signal, onStep }: CompactOptions,
): Promise<Compacted> {
  const compacted = { bodies: 0, unreadable: 0, nextId: 0, lastId: 0, givenBackBytes: 0 };
  const repeat = async <Step>(doStep: () => Promise<Step>, isLast: (step: Step) => boolean) => {
    while (!signal.aborted) {
      const beganMs = performance.now();
      const step = await doStep();
      const tookMs = performance.now() - beganMs;
      onStep?.(compacted);
      if (isLast(step)) return;
      await rest(tookMs);
    }
  };
  await repeat(
    async () => {
      const step = await compact.step(duringIntake);
      compacted.bodies += step.bodies;
      compacted.unreadable += step.unreadable;
      compacted.nextId = step.nextId;
      compacted.lastId = step.lastId;
      return step;
    },
    ({ isDone }) => isDone,
  );
  await repeat(
    async () => {
      const step = await compact.releaseFreePages(freeShare);
      compacted.givenBackBytes += step.removed;
      return step;
    },
    ({ next }) => next === null,
  );
  await compact.checkpoint();
  return compacted;
}
