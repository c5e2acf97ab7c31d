/** Compacts the log step by step on its own thread, while others read and write it. */

import { moduleFile } from '../../core/host/rpc.ts';
import { requireDatabase } from '../engine/database.ts';
import type { DataPlace } from '../engine/disk-limit.ts';
import { withThread } from '../engine/thread.ts';
import type { CompactOperations, CompactStep } from './compact-thread.ts';

/** Share of the file that may stay free for the notifications of the next day, so that fewer pages move. */
export const freeShare = 0.05;

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
export async function compactLog(options: CompactOptions): Promise<Omit<CompactStep, 'isDone'>> {
  const { dataDir, freeShare, rest, signal } = options;
  requireDatabase(dataDir);
  const file = moduleFile('./compact-thread', import.meta.url);
  return withThread<CompactOperations, Omit<CompactStep, 'isDone'>>(
    file,
    options,
    async (thread) => {
      const total = { bodies: 0, unreadable: 0, givenBackBytes: 0 };
      while (!signal.aborted) {
        const beganMs = performance.now();
        const { bodies, unreadable, givenBackBytes, isDone } = await thread.step(freeShare);
        total.bodies += bodies;
        total.unreadable += unreadable;
        total.givenBackBytes += givenBackBytes;
        if (isDone) break;
        await rest(performance.now() - beganMs);
      }
      return total;
    },
  );
}
