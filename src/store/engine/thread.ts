/** The main thread's side of a store thread: starts it, calls it, ends it when idle, restarts it after a failure. */
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
 * A larger young generation uses more memory and makes a thread no faster. No thread comes near the limit
 * of the old generation; a lower limit makes V8 collect garbage earlier.
 */
const resourceLimits = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 256 };

/** Maximum time for a closed thread to finish the work in progress. */
const closeTimeoutMs = 10_000;

/** Time without a call after which a thread that does not end returns unused memory. */
const collectSeconds = 10;

/** Minimum delay before a failed thread is restarted. */
const restartDelayMs = 1_000;

interface StoreThreadOptions extends DataPlace {
  callTimeoutSeconds: number;
  /** Ends the thread after this time without a call, to save memory; the next call starts it. By default never. */
  idleSeconds?: number;
  /** Called after each commit of deliveries; must not throw. */
  onCommit?: ((commit: CommitFacts) => void) | undefined;
}

export class StoreThread implements Caller {
  readonly #file: URL;
  readonly #place: DataPlace;
  readonly #calls: PendingCalls;
  readonly #onCommit: ((commit: CommitFacts) => void) | undefined;
  #worker: Worker | undefined;
  /** Ends of threads that were idle and finish closing. */
  readonly #ending = new Set<Promise<void>>();
  /** The error of the failed thread; cleared when it may be restarted. */
  #failure: AppError | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #onStarted: () => void = () => undefined;
  #closed = false;

  constructor(file: URL, options: StoreThreadOptions) {
    this.#file = file;
    const { dataDir, diskReserveBytes } = options;
    this.#place = { dataDir, diskReserveBytes };
    this.#onCommit = options.onCommit;
    const { callTimeoutSeconds, idleSeconds } = options;
    const whenIdle = () => (idleSeconds === undefined ? this.#collect() : this.#endIdle());
    this.#calls = new PendingCalls(callTimeoutSeconds, idleSeconds ?? collectSeconds, whenIdle);
  }

  /** Resolves when the thread has opened its file; rejects with the error when it cannot. */
  async start(): Promise<void> {
    const { id, answer } = this.#calls.add<void>();
    this.#onStarted = () => this.#calls.settle([{ id, value: undefined }]);
    this.#running();
    await answer;
  }

  /**
   * Sends a call and returns its answer. Rejects with `cancelled` when the signal is aborted; the thread
   * stops the work at its next pause.
   */
  async call(op: string, args: readonly unknown[], signal?: AbortSignal): Promise<unknown> {
    if (signal?.aborted) throw cancelled();
    const worker = this.#running();
    const { id, answer } = this.#calls.add<unknown>();
    try {
      worker.postMessage({ id, op, args } satisfies ThreadRequest);
    } catch (error) {
      this.#calls.remove(id);
      throw error;
    }
    if (signal === undefined) return answer;
    const cancel = () => {
      this.#calls.cancel(id, cancelled());
      worker.postMessage({ id, op: 'cancel', args: [] } satisfies ThreadRequest);
    };
    signal.addEventListener('abort', cancel, { once: true });
    return answer.finally(() => signal.removeEventListener('abort', cancel));
  }

  /** Returns a new id and the promise of its answer, for a request with several ids. */
  expect<Value>(onDone: () => void): { id: number; answer: Promise<Value> } {
    this.#running();
    return this.#calls.add<Value>(onDone);
  }

  /** Sends a request with ids from `expect`. Without a running thread, those calls have already failed. */
  send(op: string, args: readonly unknown[], transfer: ArrayBuffer[]): void {
    this.#worker?.postMessage({ id: 0, op, args } satisfies ThreadRequest, transfer);
  }

  /** False after the thread has ended or failed, until it is restarted. */
  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  /** Ends the thread after it has finished the work in progress. */
  async close(): Promise<void> {
    if (this.#closed) return;
    const worker = this.#worker;
    if (worker !== undefined) {
      const ended = endOf(worker);
      await this.call('close', []).catch(() => worker.terminate());
      await ended;
    }
    await Promise.all(this.#ending);
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
    // The message has no id: all pending calls fail at once instead of at their timeout.
    worker.on('messageerror', (cause) =>
      failed('An answer of a store thread could not be read.', cause),
    );
    worker.on('error', (cause) => failed('A store thread failed.', cause));
    worker.on('exit', (code) => failed('A store thread ended unexpectedly.', `exit code ${code}`));
    return worker;
  }

  /** Makes the idle thread return unused memory. */
  #collect(): void {
    this.#worker?.postMessage({ id: 0, op: 'collect', args: [] } satisfies ThreadRequest);
  }

  /** Without pending calls, nobody waits for the thread; its messages and its exit are ignored. */
  #endIdle(): void {
    const worker = this.#worker;
    if (worker === undefined) return;
    this.#worker = undefined;
    worker.postMessage({ id: 0, op: 'close', args: [] } satisfies ThreadRequest);
    const ended = endOf(worker).finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
  }

  #fail(worker: Worker, failure: AppError): void {
    if (worker !== this.#worker) return;
    this.#worker = undefined;
    void worker.terminate();
    this.#failure = failure;
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => {
      this.#failure = undefined;
    }, restartDelayMs);
    this.#retryTimer.unref();
    this.#calls.failAll(failure);
  }
}

/** Resolves when a thread that was asked to close has ended; terminates it after a timeout. */
async function endOf(worker: Worker): Promise<void> {
  const timer = setTimeout(() => void worker.terminate(), closeTimeoutMs);
  await new Promise((resolve) => worker.once('exit', resolve));
  clearTimeout(timer);
}

/** Runs work on its own thread, without a timeout, and ends the thread. */
export async function withThread<Ops, Result>(
  name: string,
  { dataDir, diskReserveBytes, idleSeconds }: DataPlace & { idleSeconds?: number },
  work: (thread: Remote<Ops>) => Promise<Result>,
): Promise<Result> {
  const callTimeoutSeconds = Number.POSITIVE_INFINITY;
  const idle = idleSeconds === undefined ? {} : { idleSeconds };
  const options = { dataDir, diskReserveBytes, callTimeoutSeconds, ...idle };
  const thread = new StoreThread(threadFile(name), options);
  try {
    await thread.start();
    return await work(remote<Ops>(thread));
  } finally {
    await thread.close();
  }
}

/** Returns the file of a thread, by its path in the store: `.ts` in the sources, `.js` in a build. */
export function threadFile(name: string): URL {
  return new URL(`../${name}${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
}

function cancelled(): AppError {
  return new AppError('cancelled', 'The call was cancelled before an answer.');
}

interface PendingCall {
  sentAtSecond: number;
  resolve(value: unknown): void;
  reject(error: AppError): void;
  /** Called when the thread has answered the request, also after the call was rejected. */
  onDone(): void;
  isTimedOut: boolean;
}

class PendingCalls {
  readonly #calls = new Map<number, PendingCall>();
  #lastId = 0;
  // Counted seconds, not clock time: the system clock may be changed.
  #second = 0;
  #usedAtSecond = 0;
  /** Undefined while nothing is counted, so that an idle process sleeps. */
  #ticker: NodeJS.Timeout | undefined;
  readonly #timeoutSeconds: number;
  readonly #idleSeconds: number;
  readonly #onIdle: () => void;

  /**
   * A call without an answer is rejected after the timeout; its operation may still run. `onIdle` is called after
   * `idleSeconds` without a pending call.
   */
  constructor(timeoutSeconds: number, idleSeconds: number, onIdle: () => void) {
    this.#timeoutSeconds = timeoutSeconds;
    this.#idleSeconds = idleSeconds;
    this.#onIdle = onIdle;
  }

  /** Returns a new id and the promise of its answer. */
  add<Value>(onDone: () => void = () => undefined): { id: number; answer: Promise<Value> } {
    this.#lastId += 1;
    const id = this.#lastId;
    this.#count();
    const answer = new Promise<Value>((resolve, reject) => {
      // The thread answers each request with a value of the type of its operation.
      this.#calls.set(id, {
        sentAtSecond: this.#second,
        resolve: resolve as (value: unknown) => void,
        reject,
        onDone,
        isTimedOut: false,
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

  remove(id: number): void {
    this.#calls.delete(id);
  }

  /** Rejects a call. Its answer, if any, is ignored. */
  cancel(id: number, error: AppError): void {
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
    this.#stopCounting();
    this.failAll(new AppError('unavailable', 'The store is closed.'));
  }

  #count(): void {
    this.#usedAtSecond = this.#second;
    this.#ticker ??= setInterval(() => this.#tick(), 1000).unref();
  }

  #stopCounting(): void {
    clearInterval(this.#ticker);
    this.#ticker = undefined;
  }

  #tick(): void {
    this.#second += 1;
    if (this.#calls.size > 0) {
      this.#usedAtSecond = this.#second;
      this.#rejectTimedOut();
    } else if (this.#second - this.#usedAtSecond >= this.#idleSeconds) {
      this.#stopCounting();
      this.#onIdle();
    }
  }

  #rejectTimedOut(): void {
    for (const call of this.#calls.values()) {
      if (this.#second - call.sentAtSecond < this.#timeoutSeconds) return;
      if (call.isTimedOut) continue;
      call.isTimedOut = true;
      call.reject(new AppError('unavailable', 'The store did not answer in time.'));
    }
  }
}
