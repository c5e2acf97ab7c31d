/** Comparing by itself, inside a receiver that serves: what is due, every few minutes, and never in its way. */
import type { ReconcileConfig } from '../../config/completeness-config.ts';
import { errorText, isAppError } from '../../domain/app-error.ts';
import { doRounds } from '../../domain/rounds.ts';
import { createTakeLock } from '../../store/engine/locks.ts';
import type { Io } from '../io.ts';
import { pause } from '../until-aborted.ts';
import {
  compareDue,
  type DueComparison,
  type ReconcileParts,
  type RoundOutcome,
  tellFailure,
} from './compare-due.ts';
import { openListing } from './open-listing.ts';

/** What tests make shorter. All times are jittered by a tenth. */
export interface ReconcileTiming {
  /** After the start; then pushes arrive again. */
  firstMs: number;
  intervalMs: number;
  /** After a round in which nothing could be compared, doubling up to an hour. */
  retryMs: number;
}

const usual: ReconcileTiming = { firstMs: 30_000, intervalMs: 300_000, retryMs: 60_000 };
const retryMsMax = 3_600_000;

/** Starts the loop. Whatever fails is logged, and tried again later; what was compared stays. */
export function startReconcile(
  parts: ReconcileParts,
  config: ReconcileConfig,
  io: Pick<Io, 'nowUs' | 'random' | 'fetch' | 'signal'>,
  timing: Partial<ReconcileTiming> = {},
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const round = createReconcileRounds(parts, config, io, signal);
  const running = doRounds(
    // Where something could be compared, the rest is no more urgent than usual.
    async () => (await round()) !== 'none',
    { ...usual, ...timing, retryMsMax },
    { pause, random: io.random, signal },
  );
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

/**
 * What the loop does, once for each call: resolves with how much of what is due was compared; with `busy` while
 * another program compares, such as a command of the user's. Never rejects.
 */
export function createReconcileRounds(
  parts: ReconcileParts,
  config: ReconcileConfig,
  io: Pick<Io, 'nowUs' | 'random' | 'fetch' | 'signal'>,
  signal: AbortSignal,
): () => Promise<RoundOutcome | 'busy'> {
  const opened = openListing(
    config,
    { ...io, signal: AbortSignal.any([io.signal, signal]) },
    ({ cause, waitMs }) =>
      parts.log.debug({ reason: cause, waitMs }, 'the catalogue is asked again'),
  );
  const how: DueComparison = { ...opened, ownNowUs: io.nowUs, looked: { atUs: null }, signal };
  const takeLock = createTakeLock(config.dataDir);
  return async () => {
    try {
      const release = await takeLock('reconcile', { waitMs: 0 });
      try {
        return await compareDue(parts, how);
      } finally {
        release();
      }
    } catch (error) {
      if (signal.aborted) return 'all';
      if (isAppError(error, 'conflict')) {
        parts.log.debug({ reason: errorText(error) }, 'nothing is compared');
        return 'busy';
      }
      tellFailure(error, {}, parts.log);
      return 'none';
    }
  };
}
