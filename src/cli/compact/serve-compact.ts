/** Compacting by itself, inside a receiver that serves: every hour, a step at a time, while nothing waits to be stored. */
import type { DataConfig } from '../../config/read-config.ts';
import { errorText, isAppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import { doRounds, type RoundTimes } from '../../domain/rounds.ts';
import { compactLog } from '../../store/bodies/compact-log.ts';
import { createTakeLock } from '../../store/engine/locks.ts';
import type { Store } from '../../store/store.ts';
import type { Io } from '../io.ts';
import { pause } from '../until-aborted.ts';

const minuteMs = 60_000;
const usual: RoundTimes = { firstMs: 5 * minuteMs, intervalMs: 60 * minuteMs };

/** After each step it rests so many times as long as the step took. */
const restFactor = 4;
/** How often it looks whether something still waits to be stored. */
const busyPollMs = 1_000;

/** Of the file, what may stay free: what comes next goes there, and no page is moved in vain. */
const freeShare = 0.05;

export interface CompactParts {
  store: Pick<Store, 'queue'>;
  log: Logger;
}

/** Starts the loop. Whatever fails is logged, and tried again later. Tests make the times shorter. */
export function startCompacting(
  { store, log }: CompactParts,
  place: DataConfig,
  { random }: Pick<Io, 'random'>,
  times: Partial<RoundTimes> = {},
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const { dataDir } = place;
  const takeLock = createTakeLock(dataDir);
  const round = async (): Promise<boolean> => {
    let release: () => void = () => undefined;
    try {
      release = await takeLock('compact', { waitMs: 0 });
      /** A command that waits for the lock gets it, and does the rest. */
      const rest = async (tookMs: number) => {
        release();
        await pause(restFactor * tookMs, signal);
        while (store.queue().bytes > 0 && !signal.aborted) await pause(busyPollMs, signal);
        release = await takeLock('compact', { waitMs: 0 });
      };
      const done = await compactLog({ ...place, besideIntake: true, freeShare, rest, signal });
      if (done.unreadable > 0) log.error({ rows: done.unreadable }, 'bodies cannot be read');
      log.debug(done, 'the log was compacted');
      return true;
    } catch (error) {
      if (isAppError(error, 'conflict')) return true;
      const reason = isAppError(error) ? errorText(error) : String(error);
      log.error({ reason, err: error }, 'the log could not be compacted; tried again later');
      return false;
    } finally {
      release();
    }
  };
  const running = doRounds(round, { ...usual, ...times }, { pause, random, signal });
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}
