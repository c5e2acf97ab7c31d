/** Delivers items to tables of PostgreSQL: products in their newest state and, if configured, notifications. */
import type pg from 'pg';
import { z } from 'zod';
import { networkFault } from '../../../core/http/bounded-fetch.ts';
import { databaseUrls, isLocalDatabase } from '../../../core/http/network-address.ts';
import { foreignText, hintCharactersMax } from '../../../core/http/service-error.ts';
import { contextTrusting } from '../../../core/http/tls-settings.ts';
import { evaluation, ok } from '../../../core/terms/evaluation.ts';
import { type NotificationDocument, sampleDocument } from '../../messages/document.ts';
import {
  aborted,
  certificatesForm,
  defineThreadKind,
  nameField,
  secretForm,
  type Target,
  type TargetAnswer,
  type TargetFailure,
  unavailable,
  unusable,
} from '../target.ts';
import {
  prepareTables,
  type Rows,
  rowsOf,
  type Statements,
  type TableSettings,
  writeRows,
} from './postgres-rows.ts';

/** Settings of a PostgreSQL sink. */
export interface PostgresSettings extends TableSettings {
  /** URLs of the servers. The first one that works is used. */
  urls: readonly string[];
  /** In addition to one in the URLs. */
  password: string | null;
  /** PEM. */
  ca: string | null;
}

const tableForm =
  'must be a table of letters, digits and _, such as products or gis.products, of at most 50 characters';
/** Leaves space for the suffixes of other names, which have at most 63 characters. */
const tableName = z.string(tableForm).regex(/^([A-Za-z_]\w{0,49}\.)?[A-Za-z_]\w{0,49}$/, tableForm);

const postgresForm =
  "must be an object, such as { url: 'postgres://earshot@127.0.0.1/gis', passwordFile: 'gis-password' }";

const postgresSchema = z
  .strictObject(
    {
      /** Database: `postgres://user@host:5432/database`. */
      url: z.string('must be a URL, such as postgres://earshot@127.0.0.1/gis').pipe(databaseUrls),
      /** File with the password of the user; must not be readable by everyone. */
      passwordFile: nameField('gis-password').optional(),
      /** PEM file with the certificate authorities of the servers. */
      ca: nameField('authority.pem').optional(),
      /** Table of the products. */
      products: tableName.default('earshot_products'),
      /** Table of the notifications; by default none. */
      notifications: tableName.optional(),
    },
    postgresForm,
  )
  .superRefine(({ url, passwordFile, ca, products, notifications }, context) => {
    const urls = url.map((one) => new URL(one));
    if (products === notifications) context.addIssue('notifications must be a table of its own');
    if (passwordFile !== undefined && urls.some(({ username }) => username === '')) {
      context.addIssue('passwordFile requires a user in the URL');
    }
    if (passwordFile !== undefined && urls.some(({ password }) => password !== '')) {
      context.addIssue('passwordFile and a password in the URL must not be set together');
    }
    const modes = urls.map(({ searchParams }) => searchParams.get('sslmode'));
    if (ca !== undefined && modes.some((mode) => mode === 'disable' || mode === 'no-verify')) {
      context.addIssue('ca requires verified TLS: remove sslmode from the URL');
    }
  });

/** Default number of deliveries at a time, each with a connection; with more, they wait for one. */
const connectionsMax = 16;

/** Upserts the product of each item in a transaction of its own. Connects with the first item. */
export const postgres = defineThreadKind({
  load: loadPg,
  fields: {
    /** Tables of a PostgreSQL database. */
    postgres: postgresSchema.optional(),
  },
  format: 'document',
  concurrency: connectionsMax,
  settings: ({ postgres }, readFile): PostgresSettings => {
    if (postgres === undefined) throw new Error('The schema requires a target.');
    const { url, passwordFile, ca, products, notifications = null } = postgres;
    return {
      urls: url,
      password: readFile('postgres.passwordFile', passwordFile, secretForm),
      ca: readFile('postgres.ca', ca, certificatesForm),
      ...{ products, notifications },
    };
  },
  open: openPostgres,
  check: async (settings, { sink, signal }) => {
    const servers = settings.urls.map((text) => new URL(text));
    const hosts = servers.map(
      ({ host, searchParams }) => host || searchParams.get('host') || 'localhost',
    );
    const where = `PostgreSQL at ${hosts.join(', ')}`;
    const target = openPostgres(settings, sink);
    const answer = await target.deliver({ document: sample, text: '' }, signal);
    await target.close();
    if (answer.kind === 'unavailable') return unusable(where, answer.reason);
    if (answer.kind !== 'acknowledged') {
      const nextStep =
        'Correct the login or the tables, or grant the permissions: see "PostgreSQL and PostGIS" in docs/sinks.md. Until then, notifications are queued.';
      return evaluation('critical', `${where} cannot be written: ${answer.reason}.`, nextStep);
    }
    const message = `${where} accepts the login, and rows in ${settings.products}.`;
    const exposure = exposureOf(servers, settings);
    if (exposure === null) return ok(message);
    const nextStep =
      'Remove sslmode from the URL, so that TLS with a verified certificate is used. For an authority of your own, set `ca`.';
    return evaluation('warning', `${message} ${exposure}`, nextStep);
  },
});

/** Written by the doctor, and rolled back: a deletion without a record, which needs the fewest columns. */
const sample: NotificationDocument = { ...sampleDocument, event: 'deleted', value: null };

/** Returns how the login is exposed on the way to another machine; null if it is not. */
function exposureOf(servers: readonly URL[], { ca }: PostgresSettings): string | null {
  if (ca !== null) return null;
  const modes = servers
    .filter((url) => !isLocalDatabase(url))
    .map(({ searchParams }) => searchParams.get('sslmode'));
  if (modes.includes('disable')) return 'The login and the notifications are sent unencrypted.';
  return modes.includes('no-verify') ? 'The identity of the server is not verified.' : null;
}

/** Imports the client library with the first item, so that other commands start without it. */
async function loadPg() {
  return (await import('pg')).default;
}

/** Writes to the server that worked last. If it fails, the others are tried in turn. */
function openPostgres(
  settings: PostgresSettings,
  sink: { name: string; timeoutMs: number },
): Target {
  const servers = settings.urls.map((url) => openServer(url, settings, sink));
  let preferred = 0;
  return {
    deliver: async ({ document }, signal) => {
      const rows = rowsOf(document);
      let answer: TargetAnswer = unavailable('no server is configured');
      for (const server of [...servers.slice(preferred), ...servers.slice(0, preferred)]) {
        if (signal.aborted) break;
        try {
          const write = document.test ? server.tryWrite : server.write;
          await Promise.race([write(rows, signal), aborted(signal)]);
          preferred = servers.indexOf(server);
          return { kind: 'acknowledged' };
        } catch (error) {
          answer = postgresFault(error, settings);
          if (answer.kind === 'refused') return answer;
          server.reset();
        }
      }
      return answer;
    },
    close: async () => {
      for (const server of servers) server.close();
    },
  };
}

const connectTimeoutMs = 10_000;

/** Idle time after which the system probes a connection, so that a dead one is noticed. */
const keepAliveMs = 15_000;

/** A fault of the tables, which concerns every item. */
class TableFault extends Error {}

/** The connections to a server, one for each delivery. */
function openServer(
  url: string,
  settings: PostgresSettings,
  { name, timeoutMs }: { name: string; timeoutMs: number },
) {
  let pool: Promise<pg.Pool> | null = null;
  let statements: Promise<Statements> | null = null;

  const openPool = async () => {
    const { Pool } = await loadPg();
    const options = { ...connectionOf(url, settings), application_name: `earshot ${name}` };
    const opened = new Pool({ ...options, max: connectionsMax });
    // A lost connection is reported by its statement, or replaced by the next one.
    opened.on('connect', (client) => client.on('error', () => undefined));
    return opened.on('error', () => undefined);
  };
  /**
   * Runs a transaction whose commit waits for the disk. Settings are local to it, because a pooler may use another
   * session for the next one. The time for locks is shorter, so that the error names the lock. A connection that failed
   * is closed; the signal ends it at once, because the server may hang.
   */
  const transact = async <Result>(
    end: 'COMMIT' | 'ROLLBACK',
    signal: AbortSignal,
    work: (client: pg.PoolClient) => Promise<Result>,
  ): Promise<Result> => {
    pool ??= openPool();
    const client = await (await pool).connect();
    const cancel = () => void client.connection.stream.destroy();
    signal.addEventListener('abort', cancel);
    let hasFailed = true;
    try {
      signal.throwIfAborted();
      await client.query(`BEGIN;
        SET LOCAL TimeZone = 'UTC';
        SET LOCAL statement_timeout = ${timeoutMs};
        SET LOCAL lock_timeout = ${Math.ceil(timeoutMs / 2)};
        SELECT set_config('synchronous_commit', 'on', true)
        WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')`);
      const result = await work(client);
      await client.query(end);
      hasFailed = false;
      return result;
    } finally {
      signal.removeEventListener('abort', cancel);
      client.release(hasFailed);
    }
  };
  const prepare = async (signal: AbortSignal): Promise<Statements> => {
    try {
      statements ??= transact('COMMIT', signal, (client) => prepareTables(client, settings));
      return await statements;
    } catch (cause) {
      throw new TableFault('The tables cannot be prepared.', { cause });
    }
  };
  return {
    write: async (rows: Rows, signal: AbortSignal): Promise<void> => {
      const prepared = await prepare(signal);
      await transact('COMMIT', signal, (client) => writeRows(client, prepared, rows));
    },
    /** Leaves no trace: for a test delivery. */
    tryWrite: (rows: Rows, signal: AbortSignal): Promise<void> =>
      transact('ROLLBACK', signal, async (client) =>
        writeRows(client, await prepareTables(client, settings), rows),
      ),
    /** The next item checks the tables again. */
    reset: () => {
      statements = null;
    },
    /** Not awaited: a server that hangs does not end its connections. */
    close: () => void pool?.then((opened) => opened.end()).catch(() => undefined),
  };
}

function connectionOf(text: string, { password, ca }: PostgresSettings): pg.PoolConfig {
  const url = new URL(text);
  if (password !== null) url.password = encodeURIComponent(password);
  // In a URL, the mode would replace the authority.
  if (ca !== null) url.searchParams.delete('sslmode');
  return {
    connectionString: url.href,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    ...(ca !== null && { ssl: { secureContext: contextTrusting([ca]) } }),
  };
}

/** SQLSTATE of an error of the server; empty for other errors. */
function sqlStateOf(error: unknown): string {
  if (!(error instanceof Error) || !('severity' in error)) return '';
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/**
 * Codes of errors that values may cause: data exceptions, violated constraints, limits of a value, errors of triggers,
 * and geometries (PostGIS reports them as internal errors).
 */
const valueErrors = /^(?:22|23|44|54|P0|38|39|2F)|^XX000$/;

/** A column of the user that has no default: it refuses every item. */
const notNullViolation = '23502';

/** Errors that remain until the user changes the database or the settings. */
const lastingErrors = /^(?:0A|0L|0P|25006|28|3D|3F|42)/;

/** Classifies an error. Removes the password from the server's text. */
function postgresFault(failure: unknown, settings: PostgresSettings): TargetFailure {
  const ofTables = failure instanceof TableFault;
  const error = ofTables ? failure.cause : failure;
  const state = sqlStateOf(error);
  const passwords = settings.urls.map((url) => decodeURIComponent(new URL(url).password));
  const secrets = [settings.password ?? '', ...passwords].filter((one) => one !== '');
  const message = error instanceof Error ? error.message : String(error);
  const text = foreignText(message, { secrets, charactersMax: hintCharactersMax });
  if (state === '') {
    // Errors of the library have no code: a server without TLS, a missing password, a lost connection.
    const isOwn = error instanceof Error && error.name === 'Error' && !('code' in error);
    return unavailable(isOwn ? text : networkFault(error));
  }
  const reason = `the database answered ${state}: ${text}`;
  if (valueErrors.test(state)) {
    const isLasting = ofTables || state === notNullViolation;
    return { kind: isLasting ? 'misconfigured' : 'refused', reason };
  }
  return lastingErrors.test(state) ? { kind: 'misconfigured', reason } : unavailable(reason);
}
