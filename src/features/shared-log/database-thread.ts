/** The thread of the connections to the database of the shared log: the only importer of `pg` in this folder. */
import pg from 'pg';
import { serveThread } from '../../core/host/serve-thread.ts';
import { UnusableAnswer } from '../../core/http/bounded-fetch.ts';
import { boundPostgres } from '../../core/http/bounded-messages.ts';
import { foreignText, hintCharactersMax } from '../../core/http/foreign-text.ts';
import { AppError, errorCodeOf } from '../../core/terms/app-error.ts';
import { knownFault } from '../../core/terms/faults.ts';
import { type DatabaseEvent, type DatabaseOperations, ownErrors } from './database.ts';

/** Connections of one process, without the one that listens. */
const connectionsMax = 4;

const connectTimeoutMs = 2_000;

/** Maximum size of the rows of one statement. They are text: bytes have twice their size. */
const rowsBytesMax = 64 * 2 ** 20;

/** Messages of a channel within this time are one event. */
const messageMs = 10;

/** Interval of events about the same warning, and maximum number of different ones. */
const warningMs = 60_000;
const warningsMax = 100;

/** Opens connections on demand. Of several servers, uses one until it fails or accepts no writes, and then the next. */
function openDatabase(urls: readonly string[], post: (event: DatabaseEvent) => void) {
  let server = 0;
  let pool: pg.Pool | undefined;
  let listening: pg.Client | undefined;
  const closing = new Set<Promise<unknown>>();
  const Client = clientClass(createNotice(urls, post));

  const current = () => {
    pool ??= createPool(urls[server] ?? '', Client);
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
  const endListening = async () => {
    const ended = listening;
    listening = undefined;
    await ended?.end().catch(() => undefined);
  };
  const operations = {
    query: async (_: unknown, sql: string, values: readonly unknown[], timeoutMs: number) => {
      const used = current();
      const isBusy = used.totalCount === connectionsMax && used.idleCount === 0;
      try {
        return ownedBytes(await runOn(used, { sql, values, timeoutMs }));
      } catch (error) {
        // Without a free connection, the failure says nothing about the server.
        if (isServerFailure(error) && (!isBusy || error instanceof UnknownResult)) leave(used);
        throw connectionError(error);
      }
    },
    listen: async (_: unknown, channel: string) => {
      await endListening();
      const client = new Client(clientOptions(urls[server] ?? ''));
      listening = client;
      client.on('end', () => {
        if (listening !== client) return;
        listening = undefined;
        post({ kind: 'end' });
      });
      try {
        await client.connect();
        if (await isPooled(client)) {
          await endListening();
          return false;
        }
        client.on(
          'notification',
          inIntervals(messageMs, () => post({ kind: 'message' })),
        );
        await client.query(`LISTEN ${channel}`);
        return true;
      } catch (error) {
        await endListening();
        throw connectionError(error);
      }
    },
  } satisfies DatabaseOperations;
  return {
    operations,
    close: () => Promise.all([endListening(), pool?.end(), ...closing]),
  };
}

/** True behind a pooler, which gives its clients process ids of its own: LISTEN would stay on a connection of others. */
async function isPooled(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid !== Reflect.get(client, 'processID');
}

/** Returns a function that calls another one after the time, once for all calls until then. */
function inIntervals(ms: number, call: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  return () => {
    if (timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      call();
    }, ms);
  };
}

/** Copies byte arrays that share their memory, so that all can be moved to the main thread. */
function ownedBytes(rows: Record<string, unknown>[]): Record<string, unknown>[] {
  for (const row of rows) {
    for (const [name, value] of Object.entries(row)) {
      if (!(value instanceof Uint8Array)) continue;
      if (value.byteLength < value.buffer.byteLength) row[name] = new Uint8Array(value);
    }
  }
  return rows;
}

type Notice = Partial<Record<'code' | 'message' | 'routine', string | undefined>>;

/** Creates the function that reports the warnings of the server. */
function createNotice(urls: readonly string[], post: (event: DatabaseEvent) => void) {
  const secrets = urls.map((url) => decodeURIComponent(new URL(url).password));
  const postedMs = new Map<string, number>();
  return ({ code = '', message = '' }: Notice) => {
    // Class 42: a notice that an object already exists.
    if (code === '00000' || code.startsWith('42')) return;
    const known = postedMs.get(code);
    const nowMs = performance.now();
    if (known === undefined ? postedMs.size >= warningsMax : nowMs - known < warningMs) return;
    postedMs.set(code, nowMs);
    const text = (foreign: string, charactersMax: number) =>
      foreignText(foreign, { secrets, charactersMax });
    post({ kind: 'warning', code: text(code, 5), text: text(message, hintCharactersMax) });
  };
}

/** Returns the class of clients that report warnings, and whose servers cannot make the library fail. */
function clientClass(onNotice: (notice: Notice) => void) {
  return class extends pg.Client {
    constructor(options?: pg.ClientConfig) {
      super(options);
      boundPostgres(this, rowsBytesMax);
      // A failure is reported by the statement, and that of an idle connection by the next one.
      this.on('error', () => undefined);
      this.on('notice', onNotice);
    }
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

function createPool(
  connectionString: string,
  Client: new (options?: pg.ClientConfig) => pg.Client,
): pg.Pool {
  const pool = new pg.Pool({
    ...clientOptions(connectionString),
    Client,
    max: connectionsMax,
    idleTimeoutMillis: 30_000,
  });
  pool.on('error', () => undefined);
  return pool;
}

/** A failure of a statement that was sent, so that it may have been executed. */
class UnknownResult extends Error {}

/** PostgreSQL reports a cancelled wait for the standby as a success with a warning. */
class NotReplicated extends UnknownResult {}

/** Function of PostgreSQL that waits for the standby. */
const standbyRoutine = 'SyncRepWaitForLSN';

async function runOn(
  pool: pg.Pool,
  { sql, values, timeoutMs }: { sql: string; values: readonly unknown[]; timeoutMs: number },
): Promise<Record<string, unknown>[]> {
  const client = await pool.connect();
  let cancelled: string | undefined;
  const note = ({ message, routine }: Notice) => {
    if (routine === standbyRoutine) cancelled = message ?? '';
  };
  client.on('notice', note);
  let failure: Error | undefined;
  try {
    const { rows } = await limited(client.query(sql, [...values]), timeoutMs);
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
    'Raise max_connections of the database, or use a pooler: each receiver needs five connections.',
  '25006': 'The server is a standby. Set EARSHOT_LOG_URL to the primary, or to both.',
  '55P03': 'Another session holds a lock for too long.',
};

/** Returns the error for callers. Messages of the server may contain values, so they are only the cause. */
function connectionError(cause: unknown): AppError {
  const state = sqlState(cause);
  const own = ownErrors[state];
  if (own !== undefined) {
    const [code, message, options] = own;
    return new AppError(code, message, { ...options, cause });
  }
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
  if (error instanceof UnusableAnswer) return error.message;
  const code = errorCodeOf(error);
  return code === 'unknown' ? 'no connection' : code;
}

export default serveThread((urls: readonly string[], post) => {
  const database = openDatabase(urls, (event) => post({ kind: 'settled', settled: [], event }));
  return {
    ...database,
    context: () => undefined,
    moved: (result) => (Array.isArray(result) ? result.flatMap(buffersOf) : []),
  };
});

const buffersOf = (row: object): ArrayBuffer[] =>
  Object.values(row).flatMap((value) =>
    value instanceof Uint8Array && value.buffer instanceof ArrayBuffer ? [value.buffer] : [],
  );
