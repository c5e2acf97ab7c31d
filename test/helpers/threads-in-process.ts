/**
 * Runs the code of threads in the test's process: starting a thread takes 0.1 s, more than most tests. Messages are
 * copied as between threads. Tests of blocked, failed or limited threads call `useRealThreads`.
 */
import { EventEmitter } from 'node:events';
import {
  MessageChannel,
  type MessagePort,
  type Worker,
  type WorkerOptions,
} from 'node:worker_threads';
import type { ServeCalls } from '../../src/core/host/serve-thread.ts';
import { startThread, threads } from '../../src/core/host/thread.ts';

/** Starts real threads in this test file. */
export function useRealThreads(): void {
  threads.start = startThread;
}

/** Instances of each file: state of its module belongs to one thread, and is as new after a close. */
const idle = new Map<string, Promise<{ default: ServeCalls }>[]>();
let instances = 0;

function instanceOf(file: string): Promise<{ default: ServeCalls }> {
  const ready = idle.get(file)?.pop();
  if (ready !== undefined) return ready;
  instances += 1;
  return import(/* @vite-ignore */ `${file}?thread=${instances}`);
}

/** The part of a `Worker` that `Thread` uses. */
class ThreadInProcess extends EventEmitter {
  readonly #port: MessagePort;
  #isEnded = false;

  constructor(file: URL, { workerData }: WorkerOptions) {
    super();
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.on('message', (message) => this.emit('message', message));
    port1.on('messageerror', (error) => this.emit('messageerror', error));
    const instance = instanceOf(file.pathname);
    const serving = instance.then(({ default: serve }) =>
      serve(port2, structuredClone(workerData)),
    );
    serving.catch((error: unknown) => this.emit('error', error));
    port1.on('close', () => {
      idle.set(file.pathname, [...(idle.get(file.pathname) ?? []), instance]);
      this.#end(0);
    });
  }

  postMessage(message: unknown, moved?: ArrayBuffer[]): void {
    this.#port.postMessage(message, moved);
  }

  async terminate(): Promise<number> {
    this.#port.close();
    this.#end(1);
    return 1;
  }

  ref(): void {
    this.#port.ref();
  }

  unref(): void {
    this.#port.unref();
  }

  #end(code: number): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.emit('exit', code);
  }
}

threads.start = (file, options) => new ThreadInProcess(file, options) as unknown as Worker;
