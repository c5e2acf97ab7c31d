/** The main thread's end of one of the store's threads: it starts, is asked, fails, starts again. */
import { Worker } from 'node:worker_threads';
import { AppError } from '../domain/app-error.ts';
import type { CommitFacts } from '../domain/ports.ts';
import type { DataPlace } from './disk-limit.ts';
import type { ThreadMessage } from './messages.ts';
import { PendingCalls } from './pending-calls.ts';
import { receivedError } from './sent-error.ts';

/**
 * More room for short-lived objects makes a thread no faster, but its memory larger. None comes near the
 * limit of the others; V8 cleans up the sooner, the lower that is.
 */
const resourceLimits = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 256 };

/** How long a thread may take to finish what it has when it is closed. */
const closeTimeoutMs = 10_000;
/** A thread that failed is not started anew more often than this. */
const restartPauseMs = 1_000;

export interface StoreThreadOptions extends DataPlace {
  callTimeoutSeconds: number;
  /** Called after each commit of deliveries; must not throw. */
  onCommit?: ((commit: CommitFacts) => void) | undefined;
}

export class StoreThread<Request> {
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

  /** Makes a request for a new id, sends it, and promises the answer. */
  async call<Value>(request: (id: number) => Request): Promise<Value> {
    const worker = this.#running();
    const { id, answer } = this.#calls.add<Value>();
    worker.postMessage(request(id));
    return answer;
  }

  /** A new id and the promise of its answer, for a request that carries several ids. */
  expect<Value>(onDone: () => void): { id: number; answer: Promise<Value> } {
    this.#running();
    return this.#calls.add<Value>(onDone);
  }

  /** Sends a request with ids from `expect`; when it cannot, all that is expected fails. */
  send(request: Request, transfer: ArrayBuffer[]): void {
    this.#worker?.postMessage(request, transfer);
  }

  /** False after the thread has ended or failed, until it is started anew. */
  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  async close(request: (id: number) => Request): Promise<void> {
    if (this.#closed) return;
    const worker = this.#worker;
    if (worker !== undefined) {
      const ended = new Promise((resolve) => worker.once('exit', resolve));
      const timer = setTimeout(() => void worker.terminate(), closeTimeoutMs);
      await this.call<void>(request).catch(() => worker.terminate());
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
      else this.#fail(worker, receivedError(message.error));
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

/** The file beside this module that a thread runs: `.ts` from the sources, `.js` from a build. */
export function threadFile(name: string): URL {
  return new URL(`./${name}${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
}
