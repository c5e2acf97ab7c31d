/** Lets a few queries run at a time, the others wait in line, and none take longer than they may. */
import { setImmediate as othersTurn } from 'node:timers/promises';
import { AppError } from '../domain/app-error.ts';

export interface QueryLineOptions {
  /** Queries that run at the same time, and how many more may wait. */
  atOnceMax: number;
  waitingMax: number;
  /** Waiting and running together. */
  timeoutMs: number;
}

/**
 * Runs the work, which must end soon after its signal is aborted: the time is up, or `gone` is, as
 * nobody waits for the answer any more. Then it rejects at once, with `unavailable` or `cancelled`; the
 * place is free when the work has ended. Rejects with `unavailable` when the line is full.
 */
export type QueryLine = <Result>(
  work: (signal: AbortSignal) => Promise<Result>,
  gone: AbortSignal,
) => Promise<Result>;

/** A page of 1,000 records takes some 10 MB while it is answered: few at a time are enough. */
export const queryLineDefaults: QueryLineOptions = {
  atOnceMax: 4,
  waitingMax: 100,
  timeoutMs: 30_000,
};

export function createQueryLine({ atOnceMax, waitingMax, timeoutMs }: QueryLineOptions): QueryLine {
  let running = 0;
  const waiting = new Set<() => void>();
  let turn: Promise<void> = Promise.resolve();

  async function enter(signal: AbortSignal): Promise<void> {
    if (running < atOnceMax) {
      running += 1;
      return;
    }
    if (waiting.size >= waitingMax) throw unavailable('Too many queries wait already.');
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.add(resolve);
    try {
      await Promise.race([promise, aborted(signal)]);
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

  /** Work begins with a filter that is checked on this thread: no two in one turn of its loop. */
  function nextTurn(): Promise<void> {
    turn = turn.then(() => othersTurn());
    return turn;
  }

  return async (work, gone) => {
    const timeUp = AbortSignal.timeout(timeoutMs);
    const signal = AbortSignal.any([gone, timeUp]);
    const run = async () => {
      await nextTurn();
      signal.throwIfAborted();
      return work(signal);
    };
    try {
      await enter(signal);
      return await Promise.race([run().finally(leave), aborted(signal)]);
    } catch (error) {
      if (gone.aborted) throw new AppError('cancelled', 'Nobody waits for the answer any more.');
      throw timeUp.aborted ? unavailable('The query took too long.') : error;
    }
  };
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const refuse = () => reject(signal.reason);
    if (signal.aborted) refuse();
    else signal.addEventListener('abort', refuse, { once: true });
  });
}

function unavailable(message: string): AppError {
  return new AppError('unavailable', message);
}
