/** Compacts the log step by step on its own thread, while others read and write it. */

import { moduleFile, type Remote } from '../../core/host/rpc.ts';
import { requireDatabase } from '../engine/database.ts';
import type { DataPlace } from '../engine/disk-limit.ts';
import { withThread } from '../engine/thread.ts';
import type { CompactStep } from './compact-step.ts';
import type { CompactOperations } from './compact-thread.ts';

/** Share of the file that may stay free for the notifications of the next day, so that fewer pages move. */
export const freeShare = 0.05;

/** The totals of a run. */
export interface Compacted extends Omit<CompactStep, 'isDone'> {
  /** Bytes by which the file became smaller. */
  givenBackBytes: number;
}

export interface CompactOptions extends DataPlace {
  /** Share of the file that may stay free for new data, 0 to 1. */
  freeShare: number;
  /** Called between two steps with the duration of the first. A rejection ends the run. */
  rest: (tookMs: number) => Promise<void>;
  signal: AbortSignal;
}

/**
 * Compacts the log. Can be aborted with the signal; the next call then resumes. Rejects with `configuration` when
 * there is no log, `unavailable` when it is not writable or the free disk space is needed for intake.
 */
export async function compactLog(options: CompactOptions): Promise<Compacted> {
  requireDatabase(options.dataDir);
  return withThread<CompactOperations, Compacted>(
    moduleFile('./compact-thread', import.meta.url),
    options,
    (compact) => compactOn(compact, options),
  );
}

async function compactOn(
  compact: Remote<CompactOperations>,
  { freeShare, rest, signal }: CompactOptions,
): Promise<Compacted> {
  const compacted = { bodies: 0, unreadable: 0, givenBackBytes: 0 };
  const repeat = async <Step>(doStep: () => Promise<Step>, isLast: (step: Step) => boolean) => {
    while (!signal.aborted) {
      const beganMs = performance.now();
      const step = await doStep();
      const tookMs = performance.now() - beganMs;
      if (isLast(step)) return;
      await rest(tookMs);
    }
  };
  await repeat(
    async () => {
      const step = await compact.step();
      compacted.bodies += step.bodies;
      compacted.unreadable += step.unreadable;
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
