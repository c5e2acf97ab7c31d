/** Calls that wait for a thread's answer, each for a bounded time. */
import { AppError } from '../domain/app-error.ts';
import type { Settled } from './messages.ts';
import { receivedError } from './sent-error.ts';

interface PendingCall {
  sentAtSecond: number;
  resolve(value: unknown): void;
  reject(error: AppError): void;
  /** Called when the thread has done with the request, also after the call was given up. */
  onDone(): void;
  givenUp: boolean;
}

export class PendingCalls {
  readonly #calls = new Map<number, PendingCall>();
  #lastId = 0;
  // Seconds are counted instead of read from a clock: all that matters is that time goes by.
  #second = 0;
  readonly #ticker: NodeJS.Timeout;
  readonly #timeoutSeconds: number;

  /** A call without an answer after the time is given up; what it asked for may still happen. */
  constructor(timeoutSeconds: number) {
    this.#timeoutSeconds = timeoutSeconds;
    this.#ticker = setInterval(() => this.#giveUpOld(), 1000);
    this.#ticker.unref();
  }

  /** A new id, and the promise of its answer. */
  add<Value>(onDone: () => void = () => undefined): { id: number; answer: Promise<Value> } {
    this.#lastId += 1;
    const id = this.#lastId;
    const answer = new Promise<Value>((resolve, reject) => {
      // The thread answers each request with the value that its message type promises.
      this.#calls.set(id, {
        sentAtSecond: this.#second,
        resolve: resolve as (value: unknown) => void,
        reject,
        onDone,
        givenUp: false,
      });
    });
    return { id, answer };
  }

  settle(settled: readonly Settled[]): void {
    for (const one of settled) {
      const call = this.#calls.get(one.id);
      this.#calls.delete(one.id);
      call?.onDone();
      if ('error' in one) call?.reject(receivedError(one.error));
      else call?.resolve(one.value);
    }
  }

  failAll(error: AppError): void {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) {
      call.onDone();
      call.reject(error);
    }
  }

  stop(): void {
    clearInterval(this.#ticker);
    this.failAll(new AppError('unavailable', 'The store is closed.'));
  }

  #giveUpOld(): void {
    this.#second += 1;
    for (const call of this.#calls.values()) {
      if (this.#second - call.sentAtSecond < this.#timeoutSeconds) return;
      if (call.givenUp) continue;
      call.givenUp = true;
      call.reject(new AppError('unavailable', 'The store did not answer in time.'));
    }
  }
}
