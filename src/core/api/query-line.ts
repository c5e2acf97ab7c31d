/** Limits queries: a few run at a time, one of them for long; others wait in a queue, and all have a timeout. */

import type { IncomingMessage } from 'node:http';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { filterDepthMax } from '../../filter/cursor.ts';
import { createBodyReceiver } from '../http/request-body.ts';
import { AppError } from '../terms/app-error.ts';
import { isTooDeep } from '../terms/notification.ts';
import type { Address } from './app.ts';

export interface QueryLineOptions {
  /** Maximum number of concurrent queries, and of queries that wait. */
  atOnceMax: number;
  waitingMax: number;
  /** Time after which a query is slow: a second, in which four queries use some 200 ms of the thread each. */
  quickMs: number;
  /** Timeout of a slow query, while it runs. */
  slowMs: number;
  /** Timeout for waiting and running together. */
  timeoutMs: number;
  /** Maximum time for which a client that reads slowly keeps the slot of its query; 5 s by default. */
  sendMsMax?: number;
}

/**
 * Runs a query, which must end soon after its signal is aborted: by the timeout, or by `gone` when the client has
 * closed the connection. Then this rejects immediately, with `unavailable` or `cancelled`; the slot is free when the
 * query has ended. Otherwise it is free when the answer is sent, so that few answers are in memory. Rejects with
 * `unavailable` when the queue is full.
 *
 * A slow query gives its slot to others, and continues in the slow lane; if that is taken, it starts again there later.
 */
export type QueryLine = <Result>(
  work: (signal: AbortSignal) => Promise<Result>,
  gone: AbortSignal,
  /** Resolves when the answer is sent, or the connection is closed. */
  sent?: Promise<unknown>,
) => Promise<Result>;

export const queryLineDefaults: QueryLineOptions = {
  atOnceMax: 4,
  waitingMax: 100,
  quickMs: 1_000,
  slowMs: 10_000,
  timeoutMs: 30_000,
};

/** After a turn that took longer, queries wait for twice its time, up to a maximum. */
const longTurnMs = 5;
const waitMsMax = 100;

let turn: Promise<void> = Promise.resolve();

/**
 * Runs the part of a query that this thread does: parsing a body, checking a filter. One per turn of the event loop, and
 * long ones use at most a third of the time, so that notifications are received in between. An asynchronous rest of the
 * work is not waited for before the next turn.
 */
export async function inTurn<Result>(work: () => Result | Promise<Result>): Promise<Result> {
  const before = turn;
  const { promise, resolve } = Promise.withResolvers<void>();
  turn = promise;
  await before;
  await yieldToOthers();
  const startMs = performance.now();
  let result: Result | Promise<Result>;
  try {
    result = work();
  } finally {
    const tookMs = performance.now() - startMs;
    if (tookMs > longTurnMs) setTimeout(resolve, Math.min(2 * tookMs, waitMsMax));
    else resolve();
  }
  return await result;
}

/** Slots of queries that run at the same time. */
interface Lane {
  /** Waits for a slot. Rejects when the queue is full, and when the signal is aborted. */
  enter(signal: AbortSignal): Promise<void>;
  /** Takes a slot if one is free. */
  enterNow(): boolean;
  leave(): void;
}

export function createLane(atOnceMax: number, waitingMax: number): Lane {
  let running = 0;
  const waiting = new Set<() => void>();

  function enterNow(): boolean {
    if (running >= atOnceMax) return false;
    running += 1;
    return true;
  }

  async function enter(signal: AbortSignal): Promise<void> {
    if (enterNow()) return;
    if (waiting.size >= waitingMax) {
      const message = `Too many queries are waiting (maximum: ${waitingMax}).`;
      throw new AppError('unavailable', message, { advice: 'Retry later.', facts: { waitingMax } });
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.add(resolve);
    try {
      await Promise.race([promise, aborted(signal)]);
    } catch (error) {
      // No longer waiting: it got its slot at the same time, and passes it on.
      if (!waiting.delete(resolve)) leave();
      throw error;
    }
  }

  /** Passes the slot to the first waiting query; `running` stays the same. */
  function leave(): void {
    const [next] = waiting;
    if (next === undefined) {
      running -= 1;
      return;
    }
    waiting.delete(next);
    next();
  }

  return { enter, enterNow, leave };
}

/** Several lines can share the slow lane: then one of all their queries is slow at a time. */
export function createQueryLine(
  options: QueryLineOptions,
  slow: Lane = createLane(1, options.waitingMax),
): QueryLine {
  const { atOnceMax, waitingMax, quickMs, slowMs, timeoutMs, sendMsMax = 5_000 } = options;
  const quick = createLane(atOnceMax, waitingMax);

  return async (work, gone, sent) => {
    const time = startTime(timeoutMs, gone);
    const { signal } = time;
    /** Rejects with `tookTooLong` for a query that must continue in the slow lane, or has to end. */
    const runIn = async (first: Lane) => {
      await first.enter(signal);
      let lane = first;
      const ending = new AbortController();
      const end = () => ending.abort(tookTooLong);
      const slowDown = () => {
        if (!slow.enterNow()) return end();
        lane.leave();
        lane = slow;
        timer = setTimeout(end, slowMs);
      };
      let timer = first === slow ? setTimeout(end, slowMs) : setTimeout(slowDown, quickMs);
      const within = AbortSignal.any([signal, ending.signal]);
      const run = () => {
        within.throwIfAborted();
        return work(within);
      };
      const answer = inTurn(run).finally(() => clearTimeout(timer));
      answer.then(() => isSent(sent, sendMsMax), noAnswer).finally(() => lane.leave());
      try {
        return await Promise.race([answer, aborted(within)]);
      } catch (error) {
        if (!ending.signal.aborted) throw error;
        throw lane === slow ? slowQueryEnded() : tookTooLong;
      }
    };
    try {
      return await runIn(quick).catch((error) => {
        if (error !== tookTooLong || signal.aborted) throw error;
        return runIn(slow);
      });
    } catch (error) {
      if (gone.aborted) throw new AppError('cancelled', 'The client closed the connection.');
      if (signal.aborted) throw slowQueryEnded();
      throw error;
    } finally {
      time.end();
    }
  };
}

/** Reason of a query that leaves its lane. */
const tookTooLong = Symbol('took too long');

function slowQueryEnded(): AppError {
  const advice = 'Use a more specific query, or retry later.';
  return new AppError('unavailable', 'The query took too long.', { advice });
}

const noAnswer = () => undefined;

/**
 * Starts the time of a query. Unlike `AbortSignal.timeout`, its end releases everything that waits for the signal:
 * otherwise each answer would stay in memory until the timeout.
 */
function startTime(timeoutMs: number, gone: AbortSignal): { signal: AbortSignal; end(): void } {
  const ending = new AbortController();
  const abort = () => ending.abort();
  const timer = setTimeout(abort, timeoutMs);
  gone.addEventListener('abort', abort);
  if (gone.aborted) abort();
  return {
    signal: ending.signal,
    end: () => {
      clearTimeout(timer);
      gone.removeEventListener('abort', abort);
    },
  };
}

/** Resolves when the answer is sent, at the latest after a time. */
async function isSent(sent: Promise<unknown> | undefined, msMax: number): Promise<void> {
  if (sent === undefined) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, msMax);
  await Promise.race([sent, promise]);
  clearTimeout(timer);
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const refuse = () => reject(signal.reason);
    if (signal.aborted) refuse();
    else signal.addEventListener('abort', refuse, { once: true });
  });
}

/** The private listener's app runs on Node. */
export type Environment = { Bindings: HttpBindings; Variables: { address: Address } };

/** Resolves when the answer is sent, or the connection is closed. */
export function sent({ env }: Context<Environment>): Promise<void> {
  return new Promise((resolve) => env.outgoing.once('close', resolve));
}

/** Maximum memory of all bodies that are being received or wait to be parsed. */
const allBytesMax = 2 ** 20;

const tooDeep = () =>
  new AppError('invalid', `The body is nested deeper than ${filterDepthMax} levels.`);

/** Resolves with what `parse` returns for the text of a body. Rejects as `createBodyReceiver` and `parse` do. */
type ReadQueryBody = <Result>(
  incoming: IncomingMessage,
  parse: (text: string) => Result,
) => Promise<Result>;

/** Creates a reader whose bodies share one memory limit. At most one is parsed per turn of the event loop. */
export function createQueryBodyReader(bytesMax: number): ReadQueryBody {
  const receive = createBodyReceiver({ bytesMax, allBytesMax });
  return async (incoming, parse) => {
    if (incoming.headers['content-encoding'] !== undefined) {
      throw new AppError('unsupported', 'Send the body without Content-Encoding.');
    }
    const { bytes, release } = await receive(incoming);
    try {
      return await inTurn(() => {
        if (isTooDeep(bytes, filterDepthMax)) throw tooDeep();
        return parse(new TextDecoder().decode(bytes));
      });
    } finally {
      release();
    }
  };
}
