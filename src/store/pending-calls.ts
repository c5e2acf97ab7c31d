/** Calls that wait for a thread's answer, each for a bounded time. */
import { AppError } from '../domain/app-error.ts';
import type { Settled } from './messages.ts';
import { receivedError } from './sent-error.ts';

/** A call without an answer after this long is given up; what it asked for may still happen. */
const callTimeoutSeconds = 30;

interface PendingCall {
  sentAtSecond: number;
  resolve(value: unknown): void;
  reject(error: AppError): void;
}

export class PendingCalls {
  readonly #calls = new Map<number, PendingCall>();
  #lastId = 0;
  // Seconds are counted instead of read from a clock: all that matters is that time goes by.
  #second = 0;
  readonly #ticker: NodeJS.Timeout;

  constructor() {
    this.#ticker = setInterval(() => this.#giveUpOld(), 1000);
    this.#ticker.unref();
  }

  /** A new id, and the promise of its answer. */
  add<Value>(): { id: number; answer: Promise<Value> } {
    this.#lastId += 1;
    const id = this.#lastId;
    const answer = new Promise<Value>((resolve, reject) => {
      // The thread answers each request with the value that its message type promises.
      this.#calls.set(id, {
        sentAtSecond: this.#second,
        resolve: resolve as (value: unknown) => void,
        reject,
      });
    });
    return { id, answer };
  }

  settle(settled: readonly Settled[]): void {
    for (const one of settled) {
      const call = this.#calls.get(one.id);
      this.#calls.delete(one.id);
      if ('error' in one) call?.reject(receivedError(one.error));
      else call?.resolve(one.value);
    }
  }

  failAll(error: AppError): void {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) call.reject(error);
  }

  stop(): void {
    clearInterval(this.#ticker);
    this.failAll(new AppError('unavailable', 'The store is closed.'));
  }

  #giveUpOld(): void {
    this.#second += 1;
    for (const [id, call] of this.#calls) {
      if (this.#second - call.sentAtSecond < callTimeoutSeconds) return;
      this.#calls.delete(id);
      call.reject(new AppError('unavailable', 'The store did not answer in time.'));
    }
  }
}
