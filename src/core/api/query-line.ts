/** Limits queries: a few run at a time, others wait in a queue, and all have a timeout. */

import type { IncomingMessage } from 'node:http';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { filterDepthMax } from '../../filter/cursor.ts';
import { within } from '../cli/io.ts';
import { createBodyReceiver } from '../http/request-body.ts';
import { AppError } from '../terms/app-error.ts';
import { isTooDeep } from '../terms/notification.ts';
import { jsonOf } from '../terms/text.ts';
import type { Address } from './app.ts';

export interface QueryLineOptions {
  /** Maximum number of concurrent queries, and of queries that wait. */
  atOnceMax: number;
  waitingMax: number;
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

export function createQueryLine(options: QueryLineOptions): QueryLine {
  const { atOnceMax, waitingMax, timeoutMs, sendMsMax = 5_000 } = options;
  let running = 0;
  const waiting = new Set<() => void>();

  async function enter(signal: AbortSignal): Promise<void> {
    if (running < atOnceMax) {
      running += 1;
      return;
    }
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

  return async (work, gone, sent) => {
    const { signal, end } = startTime(timeoutMs, gone);
    try {
      await enter(signal);
      const answer = inTurn(() => {
        signal.throwIfAborted();
        return work(signal);
      });
      answer.then(() => sent && within(sendMsMax, sent, nothing), nothing).finally(leave);
      return await Promise.race([answer, aborted(signal)]);
    } catch (error) {
      if (gone.aborted) throw new AppError('cancelled', 'The client closed the connection.');
      if (!signal.aborted) throw error;
      const advice = 'Use a more specific query, or retry later.';
      throw new AppError('unavailable', 'The query took too long.', { advice });
    } finally {
      end();
    }
  };
}

const nothing = () => undefined;

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

/** Maximum memory of all bodies that are being received or wait for their turn. */
const allBytesMax = 2 ** 20;

/**
 * Creates a reader that resolves with what `parse` returns for the text of a body. Rejects as `createBodyReceiver` and
 * `parse` do. The bodies share one memory limit; at most one is parsed per turn of the event loop.
 */
export function createQueryBodyReader(bytesMax: number) {
  const receive = createBodyReceiver({ bytesMax, allBytesMax });
  return async <Result>(
    incoming: IncomingMessage,
    parse: (text: string) => Result,
  ): Promise<Result> => {
    if (incoming.headers['content-encoding'] !== undefined) {
      throw new AppError('unsupported', 'Send the body without Content-Encoding.');
    }
    const { bytes, release } = await receive(incoming);
    try {
      return await inTurn(() => {
        const text = new TextDecoder().decode(bytes);
        if (!isTooDeep(jsonOf(text), filterDepthMax)) return parse(text);
        const message = `The body is nested deeper than ${filterDepthMax} levels.`;
        throw new AppError('invalid', message);
      });
    } finally {
      release();
    }
  };
}
