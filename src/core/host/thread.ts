/** The main thread's side of a thread: starts it, calls it, ends it when idle, restarts it after a failure. */
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { AppError, errorCodeOf } from '../terms/app-error.ts';
import {
  type Caller,
  deserializeError,
  type Settled,
  type ThreadMessage,
  type ThreadRequest,
} from './rpc.ts';
import type { ThreadData } from './serve-thread.ts';

/** A larger young generation uses more memory and makes a thread no faster. */
const maxYoungGenerationSizeMb = 16;

/** Maximum time for a closed thread to finish the work in progress. */
const closeTimeoutMs = 10_000;

/** Time without a call after which a thread that does not end returns unused memory. */
const collectSeconds = 10;

/** First delay before a failed thread is restarted. Doubles with each failure, up to the maximum of the thread. */
const restartDelayMs = 1_000;

/** A thread that ran for this time is restarted after the first delay again. */
const stableMs = 60_000;

/** A contained thread counts as blocked after this time without a message; the first one may take longer. */
const silentSecondsMax = 10;
const startSecondsMax = 30;

/** How a thread failed: `fact` of the error of its calls. */
export type ThreadFault = 'failed' | 'memory' | 'silent';

interface ThreadOptions {
  /** In messages, such as `the store`. */
  owner: string;
  /** Sent to the thread. */
  data: unknown;
  /** Limit of its heap. */
  heapMb: number;
  /** By default none. */
  callTimeoutSeconds?: number;
  /** Ends the thread after this time without a call, to save memory; the next call starts it. By default never. */
  idleSeconds?: number;
  /** True if only a call, of which there is one at a time, keeps the process alive. */
  isUnreferenced?: boolean;
  /** Maximum delay before a restart; by default the first one. */
  restartDelayMaxMs?: number;
  /**
   * Contains a library that may block or use any memory: ends the thread when it does not respond, or when its buffers,
   * which the heap does not include, are larger than this.
   */
  containedBufferBytes?: number;
  /** Called with each event of the thread; must not throw. */
  onEvent?: (event: never) => void;
  /** Called when the thread has failed; must not throw. */
  onFailure?: () => void;
}

export function startThread(file: URL, options: WorkerOptions): Worker {
  const worker = new Worker(file, options);
  if (options.stdout === true) worker.stdout.resume();
  return worker;
}

/** Tests replace the function, to run what a thread does without its start, which takes most of their time. */
export const threads = { start: startThread };

export class Thread implements Caller {
  readonly #file: URL;
  readonly #options: ThreadOptions;
  readonly #calls: PendingCalls;
  #worker: Worker | undefined;
  /** Ends of threads that were idle and finish closing. */
  readonly #ending = new Set<Promise<void>>();
  /** The error of the failed thread; cleared when it may be restarted. */
  #failure: AppError | undefined;
  #startedAtMs = 0;
  #restartDelayMs = restartDelayMs;
  #retryTimer: NodeJS.Timeout | undefined;
  #onStarted: () => void = () => undefined;
  #closed = false;

  constructor(file: URL, options: ThreadOptions) {
    this.#file = file;
    this.#options = options;
    const { callTimeoutSeconds = Number.POSITIVE_INFINITY, idleSeconds } = options;
    const whenIdle = () => (idleSeconds === undefined ? this.#collect() : this.#endIdle());
    this.#calls = new PendingCalls({
      ...{ owner: options.owner, timeoutSeconds: callTimeoutSeconds },
      ...{ idleSeconds: idleSeconds ?? collectSeconds, onIdle: whenIdle },
    });
  }

  /** Resolves when the thread has started; rejects with the error when it cannot. */
  async start(): Promise<void> {
    const { id, answer } = this.#calls.add<void>();
    this.#onStarted = () => this.#calls.settle([{ id, value: undefined }]);
    this.#running();
    await answer;
  }

  /**
   * Sends a call and returns its answer. Rejects with `cancelled` when the signal is aborted; the thread stops the work
   * at its next pause. Rejects with `unavailable` when the thread fails, with the fact `thread`.
   */
  async call(
    op: string,
    args: readonly unknown[],
    signal?: AbortSignal,
    moved: ArrayBuffer[] = [],
  ): Promise<unknown> {
    if (signal?.aborted) throw cancelled();
    const worker = this.#running();
    const { id, answer } = this.#calls.add<unknown>();
    try {
      worker.postMessage({ id, op, args } satisfies ThreadRequest, moved);
    } catch (error) {
      this.#calls.remove(id);
      throw error;
    }
    if (this.#options.isUnreferenced === true) {
      worker.ref();
      return answer.finally(() => worker.unref());
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
    if (this.#closed)
      throw new AppError('unavailable', `The thread of ${this.#options.owner} is closed.`);
    if (this.#failure !== undefined) throw this.#failure;
    this.#worker ??= this.#spawn();
    return this.#worker;
  }

  #spawn(): Worker {
    const { owner, data, heapMb, containedBufferBytes, isUnreferenced, onEvent } = this.#options;
    const isContained = containedBufferBytes !== undefined;
    const worker = threads.start(this.#file, {
      workerData: { data, isContained } satisfies ThreadData,
      // Libraries print what they cannot read; their errors are reported by the calls. Reading it keeps the process alive.
      stdout: isContained && !isUnreferenced,
      resourceLimits: { maxYoungGenerationSizeMb, maxOldGenerationSizeMb: heapMb },
    });
    this.#startedAtMs = performance.now();
    const failed = (thread: ThreadFault, problem: string, cause?: unknown) => {
      const message = `The thread of ${owner} ${problem}.`;
      this.#fail(worker, new AppError('unavailable', message, { cause, facts: { thread } }));
    };
    const noteAlive = isContained ? watch(worker, failed) : () => undefined;
    worker.on('message', (message: ThreadMessage) => {
      noteAlive();
      if (message.kind === 'settled') {
        this.#calls.settle(message.settled);
        if (message.event !== undefined) onEvent?.(message.event as never);
      } else if (message.kind === 'started') this.#onStarted();
      else if (message.kind === 'failed') this.#fail(worker, deserializeError(message.error));
      else if (message.bufferBytes > (containedBufferBytes ?? Number.POSITIVE_INFINITY)) {
        failed('memory', 'used too much memory');
      }
    });
    // The message has no id: all pending calls fail at once instead of at their timeout.
    worker.on('messageerror', (cause) => failed('failed', 'sent an unreadable answer', cause));
    worker.on('error', (cause) => {
      const isMemory = errorCodeOf(cause) === 'ERR_WORKER_OUT_OF_MEMORY';
      failed(isMemory ? 'memory' : 'failed', 'failed', cause);
    });
    worker.on('exit', (code) => failed('failed', 'ended unexpectedly', `exit code ${code}`));
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
    const { restartDelayMaxMs = restartDelayMs, onFailure } = this.#options;
    const isStable = performance.now() - this.#startedAtMs > stableMs;
    const delayMs = isStable ? restartDelayMs : this.#restartDelayMs;
    this.#restartDelayMs = Math.min(2 * delayMs, restartDelayMaxMs);
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => {
      this.#failure = undefined;
    }, delayMs);
    this.#retryTimer.unref();
    this.#calls.failAll(failure);
    onFailure?.();
  }
}

/**
 * Reports a thread without messages as blocked. Counts seconds in which this thread ran, so that neither a pause of the
 * process nor its own delays count. Returns a function that notes a message.
 */
function watch(worker: Worker, failed: (thread: ThreadFault, problem: string) => void): () => void {
  let secondsMax = startSecondsMax;
  let seconds = 0;
  const timer = setInterval(() => {
    seconds += 1;
    if (seconds > secondsMax) failed('silent', 'does not respond');
  }, 1_000).unref();
  worker.on('exit', () => clearInterval(timer));
  return () => {
    secondsMax = silentSecondsMax;
    seconds = 0;
  };
}

/** Resolves when a thread that was asked to close has ended; terminates it after a timeout. */
async function endOf(worker: Worker): Promise<void> {
  const timer = setTimeout(() => void worker.terminate(), closeTimeoutMs);
  await new Promise((resolve) => worker.once('exit', resolve));
  clearTimeout(timer);
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

interface CallOptions {
  owner: string;
  /** A call without an answer is rejected after this time; its operation may still run. */
  timeoutSeconds: number;
  idleSeconds: number;
  /** Called after `idleSeconds` without a pending call. */
  onIdle: () => void;
}

class PendingCalls {
  readonly #calls = new Map<number, PendingCall>();
  #lastId = 0;
  // Counted seconds, not clock time: the system clock may be changed.
  #second = 0;
  #usedAtSecond = 0;
  /** Undefined while nothing is counted, so that an idle process sleeps. */
  #ticker: NodeJS.Timeout | undefined;
  readonly #options: CallOptions;

  constructor(options: CallOptions) {
    this.#options = options;
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
    this.failAll(new AppError('unavailable', `The thread of ${this.#options.owner} is closed.`));
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
    } else if (this.#second - this.#usedAtSecond >= this.#options.idleSeconds) {
      this.#stopCounting();
      this.#options.onIdle();
    }
  }

  #rejectTimedOut(): void {
    for (const call of this.#calls.values()) {
      if (this.#second - call.sentAtSecond < this.#options.timeoutSeconds) return;
      if (call.isTimedOut) continue;
      call.isTimedOut = true;
      call.reject(
        new AppError('unavailable', `The thread of ${this.#options.owner} did not answer in time.`),
      );
    }
  }
}
