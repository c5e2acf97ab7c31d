/** Reads large answers of services on a thread with limited memory: they can neither delay nor end this one. */
import { parentPort, Worker } from 'node:worker_threads';
import { AppError } from '../domain/app-error.ts';

/** Functions that read bytes, by name. Options and results are small, as they are copied between threads. */
export type Readers = Readonly<Record<string, (bytes: Uint8Array, options: never) => unknown>>;

/** A result, and the bytes, which the reading takes from its caller. */
export interface Reading<Result> {
  result: Result;
  bytes: Uint8Array;
}

export type ReadBytes<Known extends Readers> = <Name extends keyof Known & string>(
  name: Name,
  bytes: Uint8Array,
  options: Parameters<Known[Name]>[1],
) => Promise<Reading<ReturnType<Known[Name]>>>;

/** Smaller bytes are read at once, in a few milliseconds. */
const ownThreadBytesMax = 2 ** 18;

const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

const timeoutMs = 30_000;

/** Time without work after which the thread ends. */
const idleMs = 10_000;

interface Request {
  name: string;
  bytes: Uint8Array;
  options: unknown;
}

type Answer = Reading<unknown> | { error: string };

/**
 * Returns the function that reads bytes. `file` serves the same readers. The function rejects with `unavailable` for
 * bytes that need too much memory or time. The thread starts with the first large answer, and does not keep the process
 * alive.
 */
export function createReadBytes<Known extends Readers>(
  file: URL,
  readers: Known,
): ReadBytes<Known> {
  let worker: Worker | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  /** The reading in progress. */
  let pending = Promise.withResolvers<Answer>();

  const end = () => {
    void worker?.terminate();
    worker = undefined;
  };
  const fail = (cause: unknown) => {
    end();
    pending.reject(unreadable(cause));
  };
  const start = (): Worker => {
    const started = new Worker(file, { resourceLimits });
    const failed = (cause: unknown) => started === worker && fail(cause);
    return started
      .on('message', (answer: Answer) => pending.resolve(answer))
      .on('error', failed)
      .on('exit', failed);
  };
  /** Called for one reading at a time. */
  const readThere = async (request: Request): Promise<Answer> => {
    worker ??= start();
    const running = worker;
    running.ref();
    pending = Promise.withResolvers<Answer>();
    clearTimeout(timer);
    timer = setTimeout(fail, timeoutMs, `no result within ${timeoutMs} ms`);
    running.postMessage(request, [request.bytes.buffer as ArrayBuffer]);
    try {
      return await pending.promise;
    } finally {
      running.unref();
      clearTimeout(timer);
      timer = setTimeout(end, idleMs).unref();
    }
  };

  return async (name, bytes, options) => {
    if (bytes.byteLength <= ownThreadBytesMax) {
      const result = readers[name]?.(bytes, options as never) as never;
      return { result, bytes };
    }
    const request = { name, bytes: withOwnBuffer(bytes), options };
    const answer = turn.then(() => readThere(request));
    turn = answer.catch(() => undefined);
    const reading = await answer;
    if ('error' in reading) throw new Error(reading.error);
    return reading as never;
  };
}

function withOwnBuffer(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : Uint8Array.from(bytes);
}

function unreadable(cause: unknown): AppError {
  return new AppError('unavailable', 'The answer needs too much memory or time to be read.', {
    cause,
  });
}

/** Answers the readings of `createReadBytes` on this thread. */
export function serveReaders(readers: Readers): void {
  const port = parentPort;
  port?.on('message', ({ name, bytes, options }: Request) => {
    let answer: Answer;
    try {
      answer = { result: readers[name]?.(bytes, options as never), bytes };
    } catch (error) {
      answer = { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    }
    port.postMessage(answer, 'bytes' in answer ? [bytes.buffer as ArrayBuffer] : []);
  });
}
