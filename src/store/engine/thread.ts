/** The main thread's end of one of the store's threads: it starts, is asked, fails, starts again. */
import { Worker } from 'node:worker_threads';
import { AppError } from '../../domain/app-error.ts';
import type { CommitFacts } from '../../domain/ports.ts';
import type { DataPlace } from './disk-limit.ts';
import {
  type Caller,
  deserializeError,
  type Remote,
  remote,
  type Settled,
  type ThreadMessage,
  type ThreadRequest,
} from './rpc.ts';

/**
 * More room for short-lived objects makes a thread no faster, but its memory larger. None comes near the
 * limit of the others; V8 cleans up the sooner, the lower that is.
 */
const resourceLimits = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 256 };

/** How long a thread may take to finish what it has when it is closed. */
const closeTimeoutMs = 10_000;

/** A thread that failed is not started anew more often than this. */
const restartPauseMs = 1_000;

interface StoreThreadOptions extends DataPlace {
  callTimeoutSeconds: number;
  /** Called after each commit of deliveries; must not throw. */
  onCommit?: ((commit: CommitFacts) => void) | undefined;
}

export class StoreThread implements Caller {
  readonly #file: URL;
  readonly #place: DataPlace;
  readonly #calls: PendingCalls;
  readonly #onCommit: ((commit: CommitFacts) => void) | undefined;
  #worker: Worker | undefined;
  /** Why there is no thread at the moment; cleared when it is time to try again. */
  #failure: AppError | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #onStarted: () => void = () => undefined;
  #closed = false;

  constructor(file: URL, options: StoreThreadOptions) {
    this.#file = file;
    const { dataDir, diskReserveBytes } = options;
    this.#place = { dataDir, diskReserveBytes };
    this.#onCommit = options.onCommit;
    this.#calls = new PendingCalls(options.callTimeoutSeconds);
  }

  /** Resolves when the thread has opened its file; rejects with the reason why it cannot. */
  async start(): Promise<void> {
    const { id, answer } = this.#calls.add<void>();
    this.#onStarted = () => this.#calls.settle([{ id, value: undefined }]);
    this.#running();
    await answer;
  }

  /**
   * Sends a call and promises its answer. Rejects with `cancelled` when the signal is aborted; the thread gives up
   * at its next pause.
   */
  async call(op: string, args: readonly unknown[], signal?: AbortSignal): Promise<unknown> {
    if (signal?.aborted) throw givenUp();
    const worker = this.#running();
    const { id, answer } = this.#calls.add<unknown>();
    try {
      worker.postMessage({ id, op, args } satisfies ThreadRequest);
    } catch (error) {
      this.#calls.forget(id);
      throw error;
    }
    if (signal === undefined) return answer;
    const giveUp = () => {
      this.#calls.giveUp(id, givenUp());
      worker.postMessage({ id, op: 'cancel', args: [] } satisfies ThreadRequest);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    return answer.finally(() => signal.removeEventListener('abort', giveUp));
  }

  /** A new id and the promise of its answer, for a request that carries several ids. */
  expect<Value>(onDone: () => void): { id: number; answer: Promise<Value> } {
    this.#running();
    return this.#calls.add<Value>(onDone);
  }

  /** Sends a request that is answered with ids from `expect`; when it cannot be sent, those calls have failed. */
  send(op: string, args: readonly unknown[], transfer: ArrayBuffer[]): void {
    this.#worker?.postMessage({ id: 0, op, args } satisfies ThreadRequest, transfer);
  }

  /** False after the thread has ended or failed, until it is started anew. */
  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  /** Lets the thread finish what it has, and ends it. */
  async close(): Promise<void> {
    if (this.#closed) return;
    const worker = this.#worker;
    if (worker !== undefined) {
      const ended = new Promise((resolve) => worker.once('exit', resolve));
      const timer = setTimeout(() => void worker.terminate(), closeTimeoutMs);
      await this.call('close', []).catch(() => worker.terminate());
      await ended;
      clearTimeout(timer);
    }
    this.#closed = true;
    clearTimeout(this.#retryTimer);
    this.#calls.stop();
  }

  #running(): Worker {
    if (this.#closed) throw new AppError('unavailable', 'The store is closed.');
    if (this.#failure !== undefined) throw this.#failure;
    this.#worker ??= this.#spawn();
    return this.#worker;
  }

  #spawn(): Worker {
    const worker = new Worker(this.#file, {
      workerData: this.#place,
      resourceLimits,
    });
    const failed = (message: string, cause: unknown) =>
      this.#fail(worker, new AppError('unavailable', message, { cause }));
    worker.on('message', (message: ThreadMessage) => {
      if (message.kind === 'settled') {
        this.#calls.settle(message.settled);
        if (message.commit !== undefined) this.#onCommit?.(message.commit);
      } else if (message.kind === 'started') this.#onStarted();
      else this.#fail(worker, deserializeError(message.error));
    });
    // It carries no id: all that wait fail at once instead of at their time limit.
    worker.on('messageerror', (cause) =>
      failed('An answer of a thread of the store could not be read.', cause),
    );
    worker.on('error', (cause) => failed('A thread of the store has failed.', cause));
    worker.on('exit', (code) => failed('A thread of the store has ended.', `exit code ${code}`));
    return worker;
  }

  #fail(worker: Worker, failure: AppError): void {
    if (worker !== this.#worker) return;
    this.#worker = undefined;
    void worker.terminate();
    this.#failure = failure;
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => {
      this.#failure = undefined;
    }, restartPauseMs);
    this.#retryTimer.unref();
    this.#calls.failAll(failure);
  }
}

/** Runs work on a thread of its own, without a time limit, and ends the thread. */
export async function withThread<Ops, Result>(
  name: string,
  { dataDir, diskReserveBytes }: DataPlace,
  work: (thread: Remote<Ops>) => Promise<Result>,
): Promise<Result> {
  const callTimeoutSeconds = Number.POSITIVE_INFINITY;
  const options = { dataDir, diskReserveBytes, callTimeoutSeconds };
  const thread = new StoreThread(threadFile(name), options);
  try {
    await thread.start();
    return await work(remote<Ops>(thread));
  } finally {
    await thread.close();
  }
}

/** The file that a thread runs, by its path in the store: `.ts` from the sources, `.js` from a build. */
export function threadFile(name: string): URL {
  return new URL(`../${name}${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
}

function givenUp(): AppError {
  return new AppError('cancelled', 'The question was given up before it was answered.');
}

interface PendingCall {
  sentAtSecond: number;
  resolve(value: unknown): void;
  reject(error: AppError): void;
  /** Called when the thread has done with the request, also after the call was given up. */
  onDone(): void;
  givenUp: boolean;
}

class PendingCalls {
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
      if ('error' in one) call?.reject(deserializeError(one.error));
      else call?.resolve(one.value);
    }
  }

  forget(id: number): void {
    this.#calls.delete(id);
  }

  /** The answer, which may still come, is ignored. */
  giveUp(id: number, error: AppError): void {
    this.#calls.get(id)?.reject(error);
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
