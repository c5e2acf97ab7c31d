/**
 * Connections to the database of the shared log, in a thread of their own: a server can make the client library throw,
 * block or use any memory.
 */
import { moduleFile, remote } from '../../core/host/rpc.ts';
import { Thread, threadFault } from '../../core/host/thread.ts';
import { AppError } from '../../core/terms/app-error.ts';
import type { DatabaseOperations } from './database-thread.ts';

/** Limits of the thread: an entry is read as text of twice its size. */
const heapMb = 256;
const containedBufferBytes = 256 * 2 ** 20;

/** Timeout of reading and upkeep. */
const queryTimeoutMs = 10_000;

/** Time in which the database waits for a lock. */
export const lockTimeoutMs = 3_000;

/** Timeout of short statements, which somebody waits for: longer than the wait for a lock. */
export const answerMs = 3_500;

/** Error codes of our own functions. The class `ES` is not used by PostgreSQL. */
export const sqlErrors = {
  notOpen: 'ES001',
  leaseLost: 'ES002',
  receivedSince: 'ES003',
  reused: 'ES004',
  noStandby: 'ES005',
} as const;

/** Errors of our own functions. */
const ownErrors: Record<string, ConstructorParameters<typeof AppError>> = {
  [sqlErrors.notOpen]: [
    'unavailable',
    'The shared log is closed.',
    { advice: 'Stop this receiver, or see "Back to one" in docs/several-receivers.md.' },
  ],
  [sqlErrors.leaseLost]: ['conflict', 'Another receiver has taken over this job.'],
  [sqlErrors.receivedSince]: [
    'conflict',
    'A product was received in the meantime.',
    { facts: { reason: 'received-since' } },
  ],
  [sqlErrors.reused]: ['conflict', 'The AckId was already used with different content.'],
  [sqlErrors.noStandby]: [
    'unavailable',
    'The database has no synchronous standby, but EARSHOT_LOG_SYNC is standby.',
    { advice: 'Set synchronous_standby_names on the database, or EARSHOT_LOG_SYNC to any.' },
  ],
};

/** Returns the error of one of our own functions by its code; undefined for any other code. */
export function ownError(state: string, cause?: unknown): AppError | undefined {
  const known = ownErrors[state];
  if (known === undefined) return undefined;
  const [code, message, options] = known;
  return new AppError(code, message, { ...options, cause });
}

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
  /** Runs one statement, and returns the only column of the first row; undefined without a row. */
  value<Value>(
    sql: string,
    values?: readonly unknown[],
    timeoutMs?: number,
  ): Promise<Value | undefined>;
  close(): Promise<void>;
}

/** Opens connections on demand. */
export function openConnections(urls: readonly string[]): Connections {
  const thread = new Thread(moduleFile('./database-thread', import.meta.url), {
    ...{ owner: 'the shared log', data: urls, heapMb, containedBufferBytes },
  });
  const calls = remote<DatabaseOperations>(thread);
  const query = async <Row extends object>(
    sql: string,
    values: readonly unknown[] = [],
    timeoutMs = queryTimeoutMs,
  ) => {
    try {
      return (await calls.query(sql, values, timeoutMs)) as Row[];
    } catch (error) {
      throw threadError(error);
    }
  };
  return {
    query,
    value: async <Value>(...statement: Parameters<typeof query>) => {
      const [row] = await query<Record<string, Value>>(...statement);
      return row && Object.values(row)[0];
    },
    close: () => thread.close(),
  };
}

/** Returns the error for callers when the thread failed: the statement may have been executed. */
function threadError(error: unknown): unknown {
  const fault = threadFault(error);
  if (fault === undefined) return error;
  const message = 'The connection to the database of the shared log failed.';
  const advice = `(the answers of the server ${fault})`;
  const facts = { unknown: true, sqlState: '' };
  return new AppError('unavailable', message, { advice, facts, cause: error });
}
