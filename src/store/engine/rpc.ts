/**
 * Typed calls between the main thread and the store's threads. A thread runs *operations*: plain functions whose first
 * parameter is the thread's context, such as a database. `Remote` is what the main thread calls.
 */
import { AppError, type ErrorCode } from '../../domain/app-error.ts';
import type { CommitFacts } from '../../domain/ports.ts';
import { storeError } from './sqlite-error.ts';

/** Operations of a thread by name, alone or in groups. */
export type Operations<Context = never> = Readonly<
  Record<string, Operation<Context> | Readonly<Record<string, Operation<Context>>>>
>;
export type Operation<Context> = (context: Context, ...args: never[]) => unknown;

/** Operations as the main thread calls them. */
export type Remote<Ops> = {
  [Name in keyof Ops]: Ops[Name] extends (context: never, ...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : Remote<Ops[Name]>;
};

/** Names of operations as they are sent: `group.name`, or `name` alone. */
export type OperationName<Ops> = {
  [Name in keyof Ops & string]: Ops[Name] extends (...args: never[]) => unknown
    ? Name
    : `${Name}.${keyof Ops[Name] & string}`;
}[keyof Ops & string];

/** Operations by the names under which they are sent. */
export function operationsByName<Context>(
  operations: Operations<Context>,
): Map<string, Operation<Context>> {
  const entries = Object.entries(operations).flatMap(([group, one]) =>
    typeof one === 'function'
      ? ([[group, one]] as const)
      : Object.entries(one).map(([name, operation]) => [`${group}.${name}`, operation] as const),
  );
  return new Map(entries);
}

/** Sends one call, such as a `StoreThread`. */
export interface Caller {
  call(op: string, args: readonly unknown[], signal?: AbortSignal): Promise<unknown>;
}

/**
 * The operations of a thread, to be called from the main thread. A call rejects with `cancelled` when the signal is
 * aborted; the thread gives the work up at its next pause.
 */
export function remote<Ops>(caller: Caller, signal?: AbortSignal): Remote<Ops> {
  return member(caller, signal, '') as Remote<Ops>;
}

/** Any name is an operation or a group of them; only the types say which there are. */
function member(caller: Caller, signal: AbortSignal | undefined, path: string): unknown {
  return new Proxy(() => undefined, {
    // `then` would make it look like a promise.
    get: (_, name) =>
      typeof name === 'symbol' || name === 'then'
        ? undefined
        : member(caller, signal, path === '' ? name : `${path}.${name}`),
    apply: (_, _this, args: unknown[]) => caller.call(path, args, signal),
  });
}

/** The calls of these names as plain functions in an object, which can be spread and checked against a port. */
export function pick<Source extends object, const Name extends keyof Source>(
  source: Source,
  names: readonly Name[],
): Pick<Source, Name> {
  const calls = names.map((name) => {
    const call = source[name] as (...args: unknown[]) => unknown;
    return [name, (...args: unknown[]) => call(...args)];
  });
  return Object.fromEntries(calls) as Pick<Source, Name>;
}

/** One call. The operations `close` and `cancel`, with the id of a call, are the engine's own. */
export interface ThreadRequest {
  id: number;
  op: string;
  args: readonly unknown[];
}

export type Settled = { id: number; value: unknown } | { id: number; error: SerializedError };

/** The first message of a thread is `started` or `failed`; all others are `settled`. */
export type ThreadMessage =
  | { kind: 'started' }
  | { kind: 'failed'; error: SerializedError }
  | { kind: 'settled'; settled: Settled[]; commit?: CommitFacts | undefined };

/** An error as it crosses a thread; of the cause, its text. */
export interface SerializedError {
  code: ErrorCode;
  message: string;
  advice: string | undefined;
  details: readonly string[];
  facts: Readonly<Record<string, unknown>>;
  cause: string;
}

export function serializeError(error: unknown): SerializedError {
  const { code, message, advice, details, facts } = storeError(error);
  const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code, message, advice, details, facts, cause };
}

export function deserializeError({ code, message, ...options }: SerializedError): AppError {
  return new AppError(code, message, options);
}
