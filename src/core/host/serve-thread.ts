/** The thread's side of the typed calls: starts the service, answers calls, closes it. */
import { memoryUsage } from 'node:process';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { AppError } from '../terms/app-error.ts';
import {
  type Operations,
  operationsByName,
  serializeError,
  type ThreadMessage,
  type ThreadRequest,
} from './rpc.ts';

/** A call in progress. */
export interface Call {
  /** Aborted when the caller has cancelled this call. */
  signal: AbortSignal;
  /** Lets other calls run. Rejects with `cancelled` after the caller has cancelled this one. */
  pause(): Promise<void>;
}

export interface Service<Context> {
  operations: Operations<Context>;
  /** Returns the context of one call. When it throws, the call fails with that error. */
  context(call: Call): Context;
  /** Maps each error to the one that the caller gets. Without a context when `context` threw. */
  failure?(error: unknown, context?: Context): unknown;
  /** Returns the buffers of a result that are moved to the caller instead of copied. */
  moved?(result: unknown): ArrayBuffer[];
  /** Called once, when no call is in progress. */
  close(): unknown;
}

/** Data of a new thread. */
export interface ThreadData {
  data: unknown;
  isContained: boolean;
}

/** Interval of the messages by which a contained thread shows that it is not blocked. */
const aliveMs = 1_000;

/** Answers the calls that arrive at the port. */
export type ServeCalls = (port: MessagePort, data: ThreadData) => void;

/**
 * Runs this thread. `begin` opens what the operations need, and may throw; calls wait for it. It gets a function that
 * reports a change to the main thread. `Data` is set by the main thread. On the main thread, it only returns the
 * function, which serves the same calls there.
 */
export function serveThread<Data, Context>(
  begin: (data: Data, changed: () => void) => Service<Context> | Promise<Service<Context>>,
): ServeCalls {
  const serve: ServeCalls = (port, { data, isContained }) => {
    const post = (message: ThreadMessage, moved?: ArrayBuffer[]) =>
      port.postMessage(message, moved);
    const start = async () => {
      const changed = () => post({ kind: 'changed' });
      answerCalls(port, await begin(data as Data, changed), post);
      post({ kind: 'started' });
      if (!isContained) return;
      const report = () => post({ kind: 'alive', bufferBytes: memoryUsage().arrayBuffers });
      setInterval(report, aliveMs).unref();
    };
    start().catch((error: unknown) => post({ kind: 'failed', error: serializeError(error) }));
  };
  if (parentPort !== null) serve(parentPort, workerData);
  return serve;
}

function answerCalls<Context>(
  port: MessagePort,
  service: Service<Context>,
  post: (message: ThreadMessage, moved?: ArrayBuffer[]) => void,
): void {
  const operations = operationsByName(service.operations);
  const { failure = (error) => error } = service;
  const collect = createCollector();
  /** Asynchronous calls in progress that were not cancelled. */
  const open = new Map<number, AbortController>();
  const answers = new Set<Promise<void>>();

  const cancel = (id: number) => {
    open.get(id)?.abort();
    open.delete(id);
  };
  const succeed = (id: number, value: unknown) =>
    post({ kind: 'settled', id, value }, service.moved?.(value));
  const fail = (id: number, error: unknown, context?: Context) =>
    post({ kind: 'settled', id, error: serializeError(failure(error, context)) });

  function answer({ id, op, args }: ThreadRequest): void {
    let context: Context | undefined;
    try {
      const operation = operations.get(op);
      if (operation === undefined) throw new Error(`This thread has no operation "${op}".`);
      const cancelling = new AbortController();
      context = service.context(callOf(cancelling));
      // The arguments match: the caller's types are derived from the operation.
      const value = operation(context, ...(args as never[]));
      if (value instanceof Promise) wait({ id, context }, value, cancelling);
      else succeed(id, value);
    } catch (error) {
      fail(id, error, context);
    }
  }

  function wait(
    { id, context }: { id: number; context: Context },
    value: Promise<unknown>,
    cancelling: AbortController,
  ): void {
    open.set(id, cancelling);
    const answered = value
      .then(
        (result) => succeed(id, result),
        (error) => fail(id, error, context),
      )
      .finally(() => {
        open.delete(id);
        answers.delete(answered);
      });
    answers.add(answered);
  }

  async function close(id: number): Promise<void> {
    for (const one of open.keys()) cancel(one);
    // A connection is not closed while one of its statements runs.
    await Promise.all(answers);
    try {
      await service.close();
      succeed(id, undefined);
    } catch (error) {
      fail(id, error);
    }
    port.close();
  }

  port.on('message', (request: ThreadRequest) => {
    if (request.op === 'close') void close(request.id);
    else if (request.op === 'cancel') cancel(request.id);
    else if (request.op === 'collect') collect();
    else answer(request);
  });
}

function callOf({ signal }: AbortController): Call {
  return {
    signal,
    pause: async () => {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (signal.aborted) throw new AppError('cancelled', 'The call was cancelled.');
    },
  };
}

/** Growth of the heap since the last collection, above which another one is useful. */
const growthBytesMin = 2_000_000;

/** Returns a function that collects the garbage of this thread, in 10 to 80 ms, if the heap has grown or if forced. */
export function createCollector(): (isForced?: boolean) => void {
  let usedBytes = 0;
  return (isForced = false) => {
    const { used_heap_size: nowBytes } = getHeapStatistics();
    if (!isForced && nowBytes - usedBytes < growthBytesMin) return;
    // Node has no function for this without a flag.
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    collect();
    usedBytes = getHeapStatistics().used_heap_size;
  };
}

/** Interval at which idleness is checked: garbage of background jobs, such as pages of the catalogue, is collected. */
const intervalMs = 5_000;
/** Number of idle intervals after which garbage is also collected without growth: data may have been released. */
const forcedAfter = 12;

/** Collects garbage when `note` was not called for an interval, until closed. */
export function startIdleCollection(closers: { add(close: () => void): void }): { note(): void } {
  const collect = createCollector();
  let isIdle = true;
  let idleIntervals = 0;
  const timer = setInterval(() => {
    if (isIdle) {
      idleIntervals += 1;
      collect(idleIntervals % forcedAfter === 0);
    }
    isIdle = true;
  }, intervalMs).unref();
  closers.add(() => clearInterval(timer));
  return {
    note: () => {
      isIdle = false;
    },
  };
}
