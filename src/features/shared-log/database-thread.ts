/** The thread of the connections to the database of the shared log: the only importer of `pg` in this folder. */
import pg from 'pg';
import { serveThread } from '../../core/host/serve-thread.ts';
import { AppError, errorCodeOf } from '../../core/terms/app-error.ts';
import { knownFault } from '../../core/terms/faults.ts';
import { ownError } from './connection.ts';

/** Connections of one process. */
const connectionsMax = 4;

const connectTimeoutMs = 2_000;

type Statement = [sql: string, values: readonly unknown[], timeoutMs: number];

/** Opens connections on demand. Of several servers, uses one until it fails or accepts no writes, and then the next. */
function openDatabase(urls: readonly string[]) {
  let server = 0;
  let pool: pg.Pool | undefined;
  const closing = new Set<Promise<unknown>>();
  /** Leaves the server of a pool, which another call may have left already. */
  const leave = (failed: pg.Pool) => {
    if (failed !== pool || urls.length === 1) return;
    server = (server + 1) % urls.length;
    pool = undefined;
    const ended = failed.end().finally(() => closing.delete(ended));
    closing.add(ended);
  };
  return {
    query: async (...statement: Statement) => {
      pool ??= createPool(urls[server] ?? '');
      const used = pool;
      const isBusy = used.totalCount === connectionsMax && used.idleCount === 0;
      try {
        return await runOn(used, statement);
      } catch (error) {
        // Without a free connection, the failure says nothing about the server.
        if (isServerFailure(error) && (!isBusy || error instanceof UnknownResult)) leave(used);
        throw connectionError(error);
      }
    },
    close: () => Promise.all([pool?.end(), ...closing]),
  };
}

function createPool(connectionString: string): pg.Pool {
  const pool = new pg.Pool({
    ...{ connectionString, max: connectionsMax, idleTimeoutMillis: 30_000 },
    ...{ application_name: 'earshot', connectionTimeoutMillis: connectTimeoutMs, keepAlive: true },
  });
  // A lost connection is reported by its statement, or replaced by the next one.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool.on('error', () => undefined);
}

/** A failure of a statement that was sent, so that it may have been executed. */
class UnknownResult extends Error {}

/** PostgreSQL reports a cancelled wait for the standby as a success with a warning. */
class NotReplicated extends UnknownResult {}

/** Function of PostgreSQL that waits for the standby. */
const standbyRoutine = 'SyncRepWaitForLSN';

async function runOn(
  pool: pg.Pool,
  [text, values, timeoutMs]: Statement,
): Promise<Record<string, unknown>[]> {
  const client = await pool.connect();
  let cancelled: string | undefined;
  const note = ({ message, routine }: { message: string | undefined; routine?: unknown }) => {
    if (routine === standbyRoutine) cancelled = message ?? '';
  };
  client.on('notice', note);
  let failure: Error | undefined;
  try {
    const query = { text, values: [...values], query_timeout: timeoutMs };
    const { rows } = await client.query<Record<string, unknown>>(query);
    if (cancelled !== undefined) throw new NotReplicated(cancelled);
    return rows;
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
    // An answer of the server is a result; anything else leaves it open.
    const isResult = failure instanceof pg.DatabaseError && !isShutdown(failure);
    if (isResult || failure instanceof NotReplicated) throw failure;
    throw new UnknownResult(failure.message, { cause: failure });
  } finally {
    client.off('notice', note);
    // After a failure the connection may still be busy.
    client.release(failure !== undefined);
  }
}

/** Class 57P: the server shuts down, perhaps after the commit. */
function isShutdown({ code }: pg.DatabaseError): boolean {
  return code?.startsWith('57P') === true;
}

const sqlState = (error: unknown): string =>
  error instanceof pg.DatabaseError ? (error.code ?? '') : '';

/** True if another server may work: no connection or answer, read-only (a standby), shutdown or start. */
function isServerFailure(error: unknown): boolean {
  if (error instanceof NotReplicated) return false;
  const state = sqlState(error);
  return !(error instanceof pg.DatabaseError) || state === '25006' || state.startsWith('57P');
}

/** Advice by SQLSTATE, or its class. */
const advices: Record<string, string> = {
  '28': 'Check the user and the password in EARSHOT_LOG_URL.',
  '3D000': 'Create the database, or correct its name in EARSHOT_LOG_URL.',
  '42501':
    'Use the user that owns the schema earshot or, in a new database, grant the user of EARSHOT_LOG_URL the right CREATE on the database.',
  '53100': 'Free some space on the disk of the database: intake resumes automatically.',
  '53300':
    'Raise max_connections of the database, or use a pooler: each receiver needs four connections.',
  '25006': 'The server is a standby. Set EARSHOT_LOG_URL to the primary, or to both.',
  '55P03': 'Another session holds a lock for too long.',
};

/** Returns the error for callers. Messages of the server may contain values, so they are only the cause. */
function connectionError(cause: unknown): AppError {
  const state = sqlState(cause);
  const own = ownError(state, cause);
  if (own !== undefined) return own;
  const unknown = cause instanceof UnknownResult;
  const reason = state === '' ? faultOf(unknown ? (cause.cause ?? cause) : cause) : state;
  const advice = advices[state] ?? advices[state.slice(0, 2)] ?? knownFault(reason)?.nextStep;
  // Syntax errors, missing objects and violated constraints are bugs, or a changed schema.
  const isBug = /^(22|23|42)/.test(state) && state !== '42501';
  const message = isBug
    ? 'The database refused a statement of the shared log.'
    : unknown
      ? 'The database of the shared log did not confirm a statement.'
      : 'The database of the shared log cannot be used.';
  const note = `(${reason})`;
  return new AppError(isBug ? 'internal' : 'unavailable', message, {
    advice: advice === undefined ? note : `${advice} ${note}`,
    facts: { unknown, sqlState: state },
    cause,
  });
}

/** Returns the reason of a failure without a state. */
function faultOf(error: unknown): string {
  if (error instanceof NotReplicated) return 'the wait for the standby was cancelled';
  const code = errorCodeOf(error);
  return code === 'unknown' ? 'no connection' : code;
}

const operations = {
  query: ({ query }: ReturnType<typeof openDatabase>, ...statement: Statement) =>
    query(...statement),
};
export type DatabaseOperations = typeof operations;

export default serveThread((urls: readonly string[]) => {
  // Entries, positions and times in microseconds are below 2^53.
  pg.types.setTypeParser(pg.types.builtins.INT8, Number);
  const database = openDatabase(urls);
  return { operations, context: () => database, close: database.close };
});
