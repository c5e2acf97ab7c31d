/** The main thread's side of a thread: starts it, calls it, ends it when idle, restarts it after a failure. */
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { AppError, errorCodeOf, isAppError } from '../terms/app-error.ts';
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

/** Delay before a failed thread may be restarted. */
const restartDelayMs = 1_000;

/** A contained thread counts as blocked after this time without a message; the first one may take longer. */
const silentSecondsMax = 10;
const startSecondsMax = 30;

/** How a thread failed: `fact` of the error of its calls. */
type ThreadFault = keyof typeof threadFaults;

/** Effects of a server's answers on the client library in a contained thread. */
const threadFaults = {
  failed: 'made the client library fail',
  memory: 'used too much memory',
  silent: 'blocked the client library',
};

/** Returns what the answers of a server did, for the error of a call; undefined if the thread did not fail. */
export function threadFault(error: unknown): string | undefined {
  return isAppError(error) ? threadFaults[error.facts.thread as ThreadFault] : undefined;
}

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
  /** Called when the thread reports a change. */
  onChanged?: () => void;
  /** True if only a call, of which there is one at a time, keeps the process alive. */
  isUnreferenced?: boolean;
  /**
   * Contains a library that may block or use any memory: ends the thread when it does not respond, or when its buffers,
   * which the heap does not include, are larger than this.
   */
  containedBufferBytes?: number;
}

export function startThread(file: URL, options: WorkerOptions): Worker {
  const worker = new Worker(file, options);
  if (options.stdout === true) worker.stdout.resume();
  return worker;
}

/** Tests replace the function, to run what a thread does without its start, which takes most of their time. */
export const threads = { start: startThread };

interface PendingCall {
  sentAtSecond: number;
  timeoutSeconds: number;
  resolve(value: unknown): void;
  reject(error: AppError): void;
}

export class Thread implements Caller {
  readonly #file: URL;
  readonly #options: ThreadOptions;
  #worker: Worker | undefined;
  readonly #calls = new Map<number, PendingCall>();
  #lastId = 0;
  /** Ends of threads that were idle and finish closing. */
  readonly #ending = new Set<Promise<void>>();
  /** The error of the failed thread; cleared when it may be restarted. */
  #failure: AppError | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #onStarted: () => void = () => undefined;
  #closed = false;
  // Counted seconds in which this thread ran, not clock time: the system clock may be changed, the process paused.
  #second = 0;
  #usedAtSecond = 0;
  /** Second until which a contained thread must send a message. */
  #silentUntilSecond = 0;
  /** Undefined while nothing is counted, so that an idle process sleeps. */
  #ticker: NodeJS.Timeout | undefined;

  constructor(file: URL, options: ThreadOptions) {
    this.#file = file;
    this.#options = options;
  }

  /** Resolves when the thread has started; rejects with the error when it cannot. */
  async start(): Promise<void> {
    const { id, answer } = this.#expect(this.#options.callTimeoutSeconds);
    this.#onStarted = () => this.#settle({ id, value: undefined });
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
    timeoutSeconds = this.#options.callTimeoutSeconds,
  ): Promise<unknown> {
    if (signal?.aborted) throw cancelled();
    const worker = this.#running();
    const { id, answer } = this.#expect(timeoutSeconds);
    try {
      worker.postMessage({ id, op, args } satisfies ThreadRequest, moved);
    } catch (error) {
      this.#calls.delete(id);
      throw error;
    }
    if (this.#options.isUnreferenced === true) {
      worker.ref();
      return answer.finally(() => worker.unref());
    }
    if (signal === undefined) return answer;
    const cancel = () => {
      this.#calls.get(id)?.reject(cancelled());
      worker.postMessage({ id, op: 'cancel', args: [] } satisfies ThreadRequest);
    };
    signal.addEventListener('abort', cancel, { once: true });
    return answer.finally(() => signal.removeEventListener('abort', cancel));
  }

  #expect(timeoutSeconds = Number.POSITIVE_INFINITY): { id: number; answer: Promise<unknown> } {
    this.#running();
    this.#lastId += 1;
    const { promise: answer, resolve, reject } = Promise.withResolvers<unknown>();
    this.#calls.set(this.#lastId, { sentAtSecond: this.#second, timeoutSeconds, resolve, reject });
    this.#count();
    return { id: this.#lastId, answer };
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
    this.#failAll(this.#unavailable('is closed'));
  }

  #unavailable(problem: string, thread?: ThreadFault, cause?: unknown): AppError {
    const facts = thread === undefined ? {} : { thread };
    const message = `The thread of ${this.#options.owner} ${problem}.`;
    return new AppError('unavailable', message, { cause, facts });
  }

  #running(): Worker {
    if (this.#closed) throw this.#unavailable('is closed');
    if (this.#failure !== undefined) throw this.#failure;
    this.#worker ??= this.#spawn();
    return this.#worker;
  }

  #spawn(): Worker {
    const { data, heapMb, containedBufferBytes, isUnreferenced } = this.#options;
    const isContained = containedBufferBytes !== undefined;
    const worker = threads.start(this.#file, {
      workerData: { data, isContained } satisfies ThreadData,
      // Libraries print what they cannot read; their errors are reported by the calls. Reading it keeps the process alive.
      stdout: isContained && !isUnreferenced,
      resourceLimits: { maxYoungGenerationSizeMb, maxOldGenerationSizeMb: heapMb },
    });
    this.#silentUntilSecond = this.#second + startSecondsMax;
    const failed = (thread: ThreadFault, problem: string, cause?: unknown) =>
      this.#fail(worker, this.#unavailable(problem, thread, cause));
    worker.on('message', (message: ThreadMessage) => {
      if (worker === this.#worker) this.#silentUntilSecond = this.#second + silentSecondsMax;
      if (message.kind === 'settled') this.#settle(message);
      else if (message.kind === 'started') this.#onStarted();
      else if (message.kind === 'changed') this.#options.onChanged?.();
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

  #settle(settled: Settled): void {
    const call = this.#calls.get(settled.id);
    this.#calls.delete(settled.id);
    if ('error' in settled) call?.reject(deserializeError(settled.error));
    else call?.resolve(settled.value);
  }

  #fail(worker: Worker, failure: AppError): void {
    if (worker !== this.#worker) return;
    this.#worker = undefined;
    void worker.terminate();
    this.#failure = failure;
    this.#retryTimer = setTimeout(() => {
      this.#failure = undefined;
    }, restartDelayMs).unref();
    this.#failAll(failure);
  }

  #failAll(error: AppError): void {
    this.#stopCounting();
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const { reject } of calls) reject(error);
  }

  #count(): void {
    this.#usedAtSecond = this.#second;
    this.#ticker ??= setInterval(() => this.#tick(), 1_000).unref();
  }

  #stopCounting(): void {
    clearInterval(this.#ticker);
    this.#ticker = undefined;
  }

  /** Ends a contained thread without messages, rejects calls without an answer, and ends the idle thread. */
  #tick(): void {
    this.#second += 1;
    const { containedBufferBytes } = this.#options;
    const isContained = containedBufferBytes !== undefined;
    const worker = this.#worker;
    if (isContained && worker !== undefined && this.#second > this.#silentUntilSecond) {
      this.#fail(worker, this.#unavailable('does not respond', 'silent'));
      return;
    }
    for (const { sentAtSecond, timeoutSeconds, reject } of this.#calls.values()) {
      // Rejecting a call again has no effect.
      if (this.#second - sentAtSecond >= timeoutSeconds)
        reject(this.#unavailable('did not answer in time'));
    }
    const { idleSeconds } = this.#options;
    if (this.#calls.size > 0) this.#usedAtSecond = this.#second;
    if (this.#second - this.#usedAtSecond < (idleSeconds ?? collectSeconds)) return;
    this.#usedAtSecond = this.#second;
    if (idleSeconds === undefined)
      this.#worker?.postMessage({ id: 0, op: 'collect', args: [] } satisfies ThreadRequest);
    else this.#endIdle();
    if (!isContained || this.#worker === undefined) this.#stopCounting();
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
