/** The thread's side of the typed calls: opens what it needs, answers, closes. */
import { constants, setPriority } from 'node:os';
import {
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  workerData,
} from 'node:worker_threads';
import { AppError } from '../../domain/app-error.ts';
import type { DataPlace } from './disk-limit.ts';
import {
  type Operations,
  operationsByName,
  serializeError,
  type ThreadMessage,
  type ThreadRequest,
} from './rpc.ts';

/** One call while it is answered. */
export interface Call {
  /** Lets other calls be answered. Rejects with `cancelled` once the caller has given this one up. */
  pause(): Promise<void>;
}

export interface Service<Context> {
  operations: Operations<Context>;
  /** Called for each call; what it throws is the call's failure. */
  context(call: Call): Context;
  /** Called before requests are answered; they wait for the promise, if there is one. */
  prepare?(requests: readonly ThreadRequest[]): Promise<void> | undefined;
  /** Answers some of the requests that have arrived together, in its own way; returns the others. */
  take?(requests: readonly ThreadRequest[]): readonly ThreadRequest[];
  /** Called with each error; returns what the caller gets. */
  failure?(error: unknown): unknown;
  /** Called once, when nothing is being answered. */
  close(): void;
}

/** Runs this thread: `begin` opens what the operations need, and may throw. */
export function serveThread<Context>(
  begin: (place: DataPlace, post: (message: ThreadMessage) => void) => Service<Context>,
): void {
  if (parentPort === null) throw new Error('This file runs as a thread of the store.');
  const port = parentPort;
  const post = (message: ThreadMessage) => port.postMessage(message);
  try {
    // Given by the store's own code, on the other side of the thread.
    answerCalls(port, begin(workerData as DataPlace, post), post);
    post({ kind: 'started' });
  } catch (error) {
    post({ kind: 'failed', error: serializeError(error) });
  }
}

/** Linux gives each thread a priority of its own; elsewhere the process keeps its own. */
export function lowerPriority(): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A system that forbids it gives all threads the same.
  }
}

function answerCalls<Context>(
  port: MessagePort,
  service: Service<Context>,
  post: (message: ThreadMessage) => void,
): void {
  const operations = operationsByName(service.operations);
  const { failure = (error: unknown) => error } = service;
  /** Calls that are being answered, and were not given up. */
  const open = new Set<number>();
  const answers = new Set<Promise<void>>();

  const pauseOf = (id: number) => async () => {
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (!open.has(id)) throw new AppError('cancelled', 'The question was given up.');
  };
  const succeed = (id: number, value: unknown) =>
    post({ kind: 'settled', settled: [{ id, value }] });
  const fail = (id: number, error: unknown) =>
    post({ kind: 'settled', settled: [{ id, error: serializeError(failure(error)) }] });

  function answer({ id, op, args }: ThreadRequest): void {
    try {
      const operation = operations.get(op);
      if (operation === undefined) throw new Error(`This thread has no operation "${op}".`);
      // The arguments are those of the operation: the caller's types are derived from it.
      const value = operation(service.context({ pause: pauseOf(id) }), ...(args as never[]));
      if (value instanceof Promise) wait(id, value);
      else succeed(id, value);
    } catch (error) {
      fail(id, error);
    }
  }

  function wait(id: number, value: Promise<unknown>): void {
    open.add(id);
    const answered = value
      .then(
        (result) => succeed(id, result),
        (error) => fail(id, error),
      )
      .finally(() => {
        open.delete(id);
        answers.delete(answered);
      });
    answers.add(answered);
  }

  async function close(id: number): Promise<void> {
    open.clear();
    // No connection is closed while a statement of it still runs.
    await Promise.all(answers);
    try {
      service.close();
      succeed(id, undefined);
    } catch (error) {
      fail(id, error);
    }
    port.close();
  }

  function answerAll(requests: readonly ThreadRequest[]): void {
    for (const request of service.take?.(requests) ?? requests) {
      if (request.op === 'close') void close(request.id);
      else if (request.op === 'cancel') open.delete(request.id);
      else answer(request);
    }
  }

  port.on('message', inOrder(port, service, answerAll));
}

/** Requests wait, in their order, while something is prepared. */
function inOrder(
  port: MessagePort,
  { prepare }: Pick<Service<never>, 'prepare'>,
  answerAll: (requests: readonly ThreadRequest[]) => void,
): (first: ThreadRequest) => void {
  let waiting: ThreadRequest[] | undefined;
  return (first) => {
    const requests = [first, ...arrived(port)];
    if (waiting !== undefined) return void waiting.push(...requests);
    const preparing = prepare?.(requests);
    if (preparing === undefined) return answerAll(requests);
    waiting = requests;
    const resume = () => {
      const all = waiting ?? [];
      waiting = undefined;
      answerAll(all);
    };
    // What could not be prepared fails when it is used.
    void preparing.then(resume, resume);
  };
}

/** Everything that has been sent meanwhile. */
function arrived(port: MessagePort): ThreadRequest[] {
  const requests: ThreadRequest[] = [];
  for (;;) {
    const received = receiveMessageOnPort(port);
    if (received === undefined) return requests;
    requests.push(received.message);
  }
}
