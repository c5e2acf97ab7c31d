/** Connections to the database of the shared log: the only importer of `pg`. */
import pg from 'pg';
import { AppError, errorCodeOf } from '../domain/app-error.ts';

/** Error codes of our own functions. The class `ES` is not used by PostgreSQL. */
export const sqlErrors = {
  notOpen: 'ES001',
  leaseLost: 'ES002',
  receivedSince: 'ES003',
  reused: 'ES004',
  noStandby: 'ES005',
} as const;

/** Connections of one process, without the one that listens. */
const connectionsMax = 4;

const connectTimeoutMs = 2_000;

/** Timeout of reading and upkeep. */
const queryTimeoutMs = 10_000;

/** Time in which the database waits for a lock. */
export const lockTimeoutMs = 3_000;

/** Timeout of short statements, which somebody waits for: longer than the wait for a lock. */
export const answerMs = 3_500;

export interface Connections {
  /**
   * Runs one statement. Rejects with `unavailable`; `facts.unknown` is true when it may have been executed. A warning
   * counts as a failure: PostgreSQL reports a cancelled wait for the standby as a success with a warning.
   */
  query<Row extends pg.QueryResultRow>(
    sql: string,
    values?: readonly unknown[],
    timeoutMs?: number,
  ): Promise<Row[]>;
  /** Opens a connection of its own, for LISTEN. */
  open(): Promise<pg.Client>;
  close(): Promise<void>;
}

/**
 * Opens connections on demand. Of several servers, uses one until it fails or accepts no writes, and then the next.
 */
export function openConnections(urls: readonly string[]): Connections {
  let server = 0;
  let pool: pg.Pool | undefined;
  const closing = new Set<Promise<unknown>>();

  const current = () => {
    pool ??= createPool(urls[server] ?? '');
    return pool;
  };
  /** Leaves the server of a pool, which another call may have left already. */
  const leave = (failed: pg.Pool) => {
    if (failed !== pool || urls.length === 1) return;
    server = (server + 1) % urls.length;
    pool = undefined;
    const ended = failed.end().finally(() => closing.delete(ended));
    closing.add(ended);
  };
  return {
    query: async (sql, values = [], timeoutMs = queryTimeoutMs) => {
      const used = current();
      const isBusy = used.totalCount === connectionsMax && used.idleCount === 0;
      try {
        return await runOn(used, { sql, values, timeoutMs });
      } catch (error) {
        // Without a free connection, the failure says nothing about the server.
        if (isServerFailure(error) && (!isBusy || error instanceof UnknownResult)) leave(used);
        throw connectionError(error);
      }
    },
    open: async () => {
      const client = new pg.Client(clientOptions(urls[server] ?? ''));
      client.on('error', () => undefined);
      await client.connect();
      return client;
    },
    close: async () => {
      const last = pool;
      pool = undefined;
      await Promise.all([last?.end(), ...closing]);
    },
  };
}

function clientOptions(connectionString: string): pg.ClientConfig {
  return {
    connectionString,
    application_name: 'earshot',
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
  };
}

function createPool(connectionString: string): pg.Pool {
  const pool = new pg.Pool({
    ...clientOptions(connectionString),
    max: connectionsMax,
    idleTimeoutMillis: 30_000,
  });
  // The failure of an idle connection is reported by the next query, and that of another one by its own query.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
  });
  return pool;
}

/** A failure of a statement that was sent, so that it may have been executed. */
class UnknownResult extends Error {}

async function runOn<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  { sql, values, timeoutMs }: { sql: string; values: readonly unknown[]; timeoutMs: number },
): Promise<Row[]> {
  const client = await pool.connect();
  let warning: string | undefined;
  const note = ({ code, message }: { code?: string | undefined; message?: string | undefined }) => {
    // Class 42: a notice that an object already exists.
    if (code !== '00000' && code?.startsWith('42') !== true) warning = `${message} (${code})`;
  };
  client.on('notice', note);
  let failure: Error | undefined;
  try {
    const { rows } = await limited(client.query<Row>(sql, [...values]), timeoutMs);
    if (warning !== undefined) throw new UnknownResult(warning);
    return rows;
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
    // An answer of the server is a result; anything else leaves it open.
    throw failure instanceof pg.DatabaseError && !isShutdown(failure)
      ? failure
      : new UnknownResult(failure.message, { cause: failure });
  } finally {
    client.off('notice', note);
    // After a failure the connection may still be busy.
    client.release(failure !== undefined);
  }
}

async function limited<Result>(query: Promise<Result>, timeoutMs: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no answer within ${timeoutMs / 1_000} s`)),
      timeoutMs,
    );
  });
  // After the timeout, the connection is closed, and the query fails.
  query.catch(() => undefined);
  return Promise.race([query, timeout]).finally(() => clearTimeout(timer));
}

/** Class 57P: the server shuts down, perhaps after the commit. */
function isShutdown({ code }: pg.DatabaseError): boolean {
  return code?.startsWith('57P') === true;
}

const sqlState = (error: unknown): string =>
  error instanceof pg.DatabaseError ? (error.code ?? '') : '';

/** True if another server may work: no connection or answer, read-only (a standby), shutdown or start. */
function isServerFailure(error: unknown): boolean {
  // A warning has no cause.
  if (error instanceof UnknownResult && error.cause === undefined) return false;
  const state = sqlState(error);
  return !(error instanceof pg.DatabaseError) || state === '25006' || state.startsWith('57P');
}

/** Advice by SQLSTATE, its class, or the code of a failed connection. */
const advices: Record<string, string> = {
  '28': 'Check the user and the password in EARSHOT_LOG_URL.',
  '3D000': 'Create the database, or correct its name in EARSHOT_LOG_URL.',
  '42501':
    'Use the user that owns the schema earshot or, in a new database, grant the user of EARSHOT_LOG_URL the right CREATE on the database.',
  '53100': 'Free some space on the disk of the database: intake resumes automatically.',
  '53300':
    'Raise max_connections of the database, or use a pooler: each receiver needs five connections.',
  '25006': 'The server is a standby. Set EARSHOT_LOG_URL to the primary, or to both.',
  '55P03': 'Another session holds a lock for too long.',
  ECONNREFUSED: 'Start the database, or correct the host and the port in EARSHOT_LOG_URL.',
  ENOTFOUND: 'Correct the host in EARSHOT_LOG_URL.',
};

/** Messages for the errors of our own functions. */
const ownErrors: Record<string, ConstructorParameters<typeof AppError>> = {
  [sqlErrors.notOpen]: [
    'unavailable',
    'The shared log is closed.',
    {
      advice: 'Stop this receiver, or see "Back to one" in docs/several-receivers.md.',
      facts: { reason: 'not-open' },
    },
  ],
  [sqlErrors.leaseLost]: [
    'conflict',
    'Another receiver has taken over this job.',
    { facts: { reason: 'lease-lost' } },
  ],
  [sqlErrors.receivedSince]: [
    'conflict',
    'A product was received in the meantime.',
    { facts: { reason: 'received-since' } },
  ],
  [sqlErrors.reused]: [
    'conflict',
    'The AckId was already used with different content.',
    { facts: { reason: 'reused' } },
  ],
  [sqlErrors.noStandby]: [
    'unavailable',
    'The database has no synchronous standby, but EARSHOT_LOG_SYNC is standby.',
    { advice: 'Set synchronous_standby_names on the database, or EARSHOT_LOG_SYNC to any.' },
  ],
};

export function closedLog(): AppError {
  return new AppError(...(ownErrors[sqlErrors.notOpen] as ConstructorParameters<typeof AppError>));
}

/** Returns the error for callers. Messages of the server may contain values, so they are only the cause. */
function connectionError(cause: unknown): AppError {
  const state = sqlState(cause);
  const own = ownErrors[state];
  if (own !== undefined) {
    const [code, message, options] = own;
    return new AppError(code, message, { ...options, cause });
  }
  const unknown = cause instanceof UnknownResult;
  const reason = state === '' ? errorCodeOf(unknown ? (cause.cause ?? cause) : cause) : state;
  const advice = advices[state] ?? advices[state.slice(0, 2)] ?? advices[reason];
  // Syntax errors, missing objects and violated constraints are bugs, or a changed schema.
  const isBug = /^(22|23|42)/.test(state) && state !== '42501';
  const message = isBug
    ? 'The database refused a statement of the shared log.'
    : unknown
      ? 'The database of the shared log did not confirm a statement.'
      : 'The database of the shared log cannot be used.';
  const note = `(${reason === 'unknown' ? 'no connection' : reason})`;
  return new AppError(isBug ? 'internal' : 'unavailable', message, {
    advice: advice === undefined ? note : `${advice} ${note}`,
    facts: { unknown, sqlState: state },
    cause,
  });
}
