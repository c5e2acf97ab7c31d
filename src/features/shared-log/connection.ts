/**
 * Connections to the database of the shared log, in a thread of their own: a server can make the client library throw,
 * block or use any memory.
 */

import { moduleFile, type Remote, remote } from '../../core/host/rpc.ts';
import { Thread, type ThreadFault } from '../../core/host/thread.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { type DatabaseEvent, type DatabaseOperations, queryTimeoutMs } from './database.ts';
import type { DatabaseWarning } from './terms.ts';

/** Limits of the thread: an entry is read as text of twice its size. */
const heapMb = 256;
const containedBufferBytes = 256 * 2 ** 20;

const restartDelayMaxMs = 10_000;

/** A warning that was not repeated for this time no longer applies. */
const warningMs = 10 * 60_000;

/** Interval of log lines about the same warning. */
const logIntervalMs = 60 * 60_000;

export interface Connections {
  /**
   * Runs one statement. Rejects with `unavailable`; `facts.unknown` is true when it may have been executed, also if
   * PostgreSQL cancelled the wait for the standby, which it reports as a success with a warning.
   */
  query<Row extends object>(
    sql: string,
    values?: readonly unknown[],
    timeoutMs?: number,
  ): Promise<Row[]>;
  /**
   * Receives the messages of a channel on a connection of its own, until `onEnd`. Resolves with false behind a pooler,
   * which passes no messages on. Replaces an earlier call.
   */
  listen(channel: string, on: Listener): Promise<boolean>;
  /** Warnings of the last minutes, the oldest first. */
  warnings(): DatabaseWarning[];
  close(): Promise<void>;
}

interface Listener {
  onMessage: () => void;
  onEnd: () => void;
}

const faults: Record<ThreadFault, string> = {
  failed: 'the answers of the server made the client library fail',
  memory: 'the answers of the server used too much memory',
  silent: 'the answers of the server blocked the client library',
};

/** Opens connections on demand. */
export function openConnections(urls: readonly string[], log: Logger): Connections {
  let listener: Listener | undefined;
  const warnings = createWarnings(log);
  const endListening = () => {
    const ended = listener;
    listener = undefined;
    ended?.onEnd();
  };
  const thread = new Thread(moduleFile('./database-thread', import.meta.url), {
    ...{ owner: 'the shared log', data: urls, heapMb, containedBufferBytes, restartDelayMaxMs },
    onEvent: (event: DatabaseEvent) => {
      if (event.kind === 'warning') warnings.add(event);
      else if (event.kind === 'message') listener?.onMessage();
      else endListening();
    },
    onFailure: endListening,
  });
  const calls: Remote<DatabaseOperations> = remote<DatabaseOperations>(thread);
  return {
    query: async <Row extends object>(
      sql: string,
      values: readonly unknown[] = [],
      timeoutMs = queryTimeoutMs,
    ) => {
      // Copied, because a failed statement is sent again; the copy is moved.
      const sent = values.map((one) => (one instanceof Uint8Array ? new Uint8Array(one) : one));
      const moved = sent.filter(isBytes).map(({ buffer }) => buffer);
      try {
        return (await thread.call('query', [sql, sent, timeoutMs], undefined, moved)) as Row[];
      } catch (error) {
        throw threadError(error);
      }
    },
    listen: async (channel, on) => {
      listener = undefined;
      const isListening = await calls.listen(channel);
      if (isListening) listener = on;
      return isListening;
    },
    warnings: warnings.recent,
    close: () => thread.close(),
  };
}

const isBytes = (value: unknown): value is Uint8Array<ArrayBuffer> => value instanceof Uint8Array;

/** Returns the error for callers when the thread failed: the statement may have been executed. */
function threadError(error: unknown): unknown {
  const fault = isAppError(error) ? faults[error.facts.thread as ThreadFault] : undefined;
  if (fault === undefined) return error;
  return new AppError('unavailable', 'The connection to the database of the shared log failed.', {
    ...{ advice: `(${fault})`, facts: { unknown: true, sqlState: '' }, cause: error },
  });
}

/** Remembers the warnings of the database by code, and logs them. */
function createWarnings(log: Logger) {
  const known = new Map<string, { text: string; atMs: number; loggedAtMs: number }>();
  return {
    add: ({ code, text }: DatabaseWarning) => {
      const atMs = performance.now();
      const before = known.get(code)?.loggedAtMs ?? Number.NEGATIVE_INFINITY;
      const isLogged = atMs - before < logIntervalMs;
      if (!isLogged) log.warn({ code, text }, 'the database of the shared log warns');
      known.set(code, { text, atMs, loggedAtMs: isLogged ? before : atMs });
    },
    recent: () =>
      [...known]
        .filter(([, { atMs }]) => performance.now() - atMs < warningMs)
        .map(([code, { text }]) => ({ code, text })),
  };
}
