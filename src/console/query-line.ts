/** Lets a few queries run at a time, the others wait in line, and none take longer than they may. */
import { AppError } from '../domain/app-error.ts';

export interface QueryLineOptions {
  /** Queries that run at the same time, and how many more may wait. */
  atOnceMax: number;
  waitingMax: number;
  /** Waiting and running together. */
  timeoutMs: number;
}

/**
 * Runs the work, which should stop when the signal is aborted. Rejects with `unavailable` when
 * the line is full or the time is up; work that goes on regardless keeps its place until it ends.
 */
export type QueryLine = <Result>(work: (signal: AbortSignal) => Promise<Result>) => Promise<Result>;

/** A page of 1,000 records takes some 10 MB while it is answered: few at a time are enough. */
export const queryLineDefaults: QueryLineOptions = {
  atOnceMax: 4,
  waitingMax: 100,
  timeoutMs: 30_000,
};

export function createQueryLine({ atOnceMax, waitingMax, timeoutMs }: QueryLineOptions): QueryLine {
  let running = 0;
  const waiting = new Set<() => void>();

  async function enter(signal: AbortSignal): Promise<void> {
    if (running < atOnceMax) {
      running += 1;
      return;
    }
    if (waiting.size >= waitingMax) throw unavailable('Too many queries wait already.');
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.add(resolve);
    try {
      await Promise.race([promise, timeUp(signal)]);
    } catch (error) {
      // Not in the line any more: its turn came in the same moment, and goes to the next.
      if (!waiting.delete(resolve)) leave();
      throw error;
    }
  }

  /** The place of one that leaves goes to the first in line, so `running` stays as it is. */
  function leave(): void {
    const [next] = waiting;
    if (next === undefined) {
      running -= 1;
      return;
    }
    waiting.delete(next);
    next();
  }

  return async (work) => {
    const signal = AbortSignal.timeout(timeoutMs);
    await enter(signal);
    const working = work(signal).finally(leave);
    return await Promise.race([working, timeUp(signal)]);
  };
}

function timeUp(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const refuse = () => reject(unavailable('The query took too long.'));
    if (signal.aborted) refuse();
    else signal.addEventListener('abort', refuse, { once: true });
  });
}

function unavailable(message: string): AppError {
  return new AppError('unavailable', message);
}
