/**
 * Typed calls between the main thread and other threads. A thread runs *operations*: plain functions whose first
 * parameter is the thread's context, such as a database. The main thread calls them through `Remote`.
 */
import { AppError, type ErrorCode, isAppError } from '../terms/app-error.ts';

/** Operations of a thread by name; a value is an operation or a group of them. */
export type Operations<Context = never> = Readonly<
  Record<string, Operation<Context> | Readonly<Record<string, Operation<Context>>>>
>;
export type Operation<Context> = (context: Context, ...args: never[]) => unknown;

/** The operations as the main thread calls them. */
export type Remote<Ops> = {
  [Name in keyof Ops]: Ops[Name] extends (context: never, ...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : Remote<Ops[Name]>;
};

/** Operation names in messages: `group.name`, or `name` without a group. */
export type OperationName<Ops> = {
  [Name in keyof Ops & string]: Ops[Name] extends (...args: never[]) => unknown
    ? Name
    : `${Name}.${keyof Ops[Name] & string}`;
}[keyof Ops & string];

/** Returns the operations by their names in messages. */
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

/** Sends one call, such as a `Thread`. */
export interface Caller {
  call(op: string, args: readonly unknown[], signal?: AbortSignal): Promise<unknown>;
}

/**
 * Returns the operations of a thread as functions for the main thread. A call rejects with `cancelled`
 * when the signal is aborted; the thread stops the work at its next pause.
 */
export function remote<Ops>(caller: Caller, signal?: AbortSignal): Remote<Ops> {
  return member(caller, signal, '') as Remote<Ops>;
}

/** Accepts any name as an operation or a group; only the types define which exist. */
function member(caller: Caller, signal: AbortSignal | undefined, path: string): unknown {
  return new Proxy(() => undefined, {
    // With `then` it would be treated as a promise.
    get: (_, name) =>
      typeof name === 'symbol' || name === 'then'
        ? undefined
        : member(caller, signal, path === '' ? name : `${path}.${name}`),
    apply: (_, _this, args: unknown[]) => caller.call(path, args, signal),
  });
}

/** Returns the calls with these names as plain functions, so that the object can be spread and type-checked. */
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

/** A call. `serveThread` itself handles the operations `close`, `collect` and `cancel` (with the id of the call). */
export interface ThreadRequest {
  id: number;
  op: string;
  args: readonly unknown[];
}

export type Settled = { id: number; value: unknown } | { id: number; error: SerializedError };

/** The first message of a thread is `started` or `failed`. */
export type ThreadMessage =
  | { kind: 'started' }
  | { kind: 'failed'; error: SerializedError }
  | ({ kind: 'settled' } & Settled)
  /** Something changed that the owner of the thread must know. */
  | { kind: 'changed' }
  /** Sent every second by a contained thread. */
  | { kind: 'alive'; bufferBytes: number };

/** An error in a message between threads; the cause is its text. */
export interface SerializedError {
  code: ErrorCode;
  message: string;
  advice: string | undefined;
  details: readonly string[];
  facts: Readonly<Record<string, unknown>>;
  cause: string;
}

/** Any error that is not an `AppError` counts as `internal`. */
export function serializeError(error: unknown): SerializedError {
  const known = isAppError(error) ? error : new AppError('internal', 'Internal error in a thread.');
  const { code, message, advice, details, facts } = known;
  const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code, message, advice, details, facts, cause };
}

export function deserializeError({ code, message, ...options }: SerializedError): AppError {
  return new AppError(code, message, options);
}

/** Returns the file of a module next to another one, in a checkout and in a build. */
export function moduleFile(name: string, nextTo: string): URL {
  return new URL(`${name}${nextTo.endsWith('.ts') ? '.ts' : '.js'}`, nextTo);
}
