/** Connections of PostgreSQL sinks, and the meaning of their errors. */
import type pg from 'pg';
import { networkFault } from '../../../core/http/bounded-fetch.ts';
import { boundPostgres } from '../../../core/http/bounded-messages.ts';
import { foreignText, hintCharactersMax } from '../../../core/http/foreign-text.ts';
import { isLocalDatabase } from '../../../core/http/network-address.ts';
import { contextTrusting } from '../../../core/http/tls-settings.ts';
import { type TargetFailure, unavailable } from '../target.ts';
import {
  creatingSql,
  type FoundTables,
  findTables,
  type Query,
  sinkTables,
  type TableSettings,
  tableFaults,
} from './postgres-tables.ts';

/** Settings of a PostgreSQL sink. */
export interface PostgresSettings extends TableSettings {
  /** URLs of the servers. The first one that works is used. */
  urls: readonly string[];
  /** In addition to one in the URLs. */
  password: string | null;
  /** PEM. */
  ca: string | null;
}

const connectTimeoutMs = 10_000;

/** Maximum size of the answer to a statement: columns and keys of the tables. */
const rowsBytesMax = 16 * 2 ** 20;

/** Idle time after which the system probes a connection, so that a dead one is noticed. */
const keepAliveMs = 15_000;

/** The settings of the sink do not fit the database. */
export class Misconfigured extends Error {}

/** Imports the client library with the first item, so that other commands start without it. */
export async function loadPg(): Promise<typeof pg> {
  return (await import('pg')).default;
}

/**
 * Connects to the first server that works and accepts writes. Rejects with the error of the last one. `name` is the
 * sink's.
 */
export async function connect(settings: PostgresSettings, name: string): Promise<pg.Client> {
  const { Client } = await loadPg();
  let failure: unknown = new Misconfigured('no server is configured');
  for (const url of settings.urls) {
    const client = new Client(clientOptions(url, settings, name));
    boundPostgres(client, rowsBytesMax);
    // A lost connection is reported by its query, or by the next one.
    client.on('error', () => undefined);
    try {
      await client.connect();
      if (settings.urls.length === 1 || !(await isStandby(client))) return client;
      failure = new Error('the server is a standby, which accepts no writes');
    } catch (error) {
      failure = error;
    }
    void client.end().catch(() => undefined);
  }
  throw failure;
}

async function isStandby(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query('SELECT pg_is_in_recovery() AS "isStandby"');
  return rows[0]?.isStandby === true;
}

function clientOptions(text: string, settings: PostgresSettings, name: string): pg.ClientConfig {
  const { password, ca } = settings;
  const url = new URL(text);
  if (password !== null) url.password = encodeURIComponent(password);
  // In a URL, the mode would replace the authority.
  if (ca !== null) url.searchParams.delete('sslmode');
  return {
    connectionString: url.href,
    application_name: `earshot ${name}`,
    connectionTimeoutMillis: connectTimeoutMs,
    // A batch is sent without waiting for the answer to each statement.
    pipeline: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    ...(ca === null ? {} : { ssl: { secureContext: contextTrusting([ca]) } }),
  };
}

/** Returns the servers as in messages, without login: `db1:5432, db2`. */
export function serversOf({ urls }: Pick<PostgresSettings, 'urls'>): string {
  return urls
    .map((text) => new URL(text))
    .map(({ host, searchParams }) => host || searchParams.get('host') || 'localhost')
    .join(', ');
}

/** Returns how the login is exposed on the way to another machine; null if it is not. */
export function exposureOf({ urls, ca }: PostgresSettings): string | null {
  if (ca !== null) return null;
  const modes = urls
    .map((text) => new URL(text))
    .filter((url) => !isLocalDatabase(url))
    .map(({ searchParams }) => searchParams.get('sslmode'));
  if (modes.includes('disable')) return 'The login and the notifications are sent unencrypted.';
  return modes.includes('no-verify') ? 'The identity of the server is not verified.' : null;
}

export const queryOf =
  (client: pg.Client): Query =>
  async (sql, values = []) =>
    (await client.query(sql, [...values])).rows;

/**
 * Starts a transaction whose commit waits for the disk. Settings are local to it, because a pooler may use another
 * session for the next one. The time for locks is shorter, so that the error names the lock.
 */
export async function begin(client: pg.Client, timeoutMs: number): Promise<void> {
  await client.query(`BEGIN;
    SET LOCAL TimeZone = 'UTC';
    SET LOCAL statement_timeout = ${timeoutMs};
    SET LOCAL lock_timeout = ${Math.ceil(timeoutMs / 2)};
    SELECT set_config('synchronous_commit', 'on', true)
    WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')`);
}

/**
 * Checks the tables, and creates missing ones, in a transaction of the caller. Rejects with Misconfigured for all faults
 * at once.
 */
export async function prepareTables(
  client: pg.Client,
  settings: TableSettings,
): Promise<FoundTables> {
  const query = queryOf(client);
  const tables = sinkTables(settings);
  const check = async () => {
    const found = await findTables(query, tables);
    const faults = tableFaults(found, settings);
    if (faults.length > 0) throw new Misconfigured(faults.join('; '));
    return found;
  };
  const isComplete = ({ tables }: FoundTables) => tables.every(({ found }) => found !== null);
  const found = await check();
  if (isComplete(found)) return found;
  // Another program may create the same tables: the lock makes it wait.
  await query(`SELECT pg_advisory_xact_lock(hashtext('earshot sink'))`);
  for (const sql of creatingSql(await check())) await query(sql);
  return check();
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
export function isValueError(error: unknown): boolean {
  return /^(?:22|23|44|54|P0|38|39|2F)|^XX000$/.test(sqlStateOf(error));
}

/** Errors that remain until the user changes the database or the settings. */
const lastingErrors = /^(?:0A|0L|0P|25006|28|3D|3F|42)/;

/** Classifies an error of a batch with one item. Removes the password from the server's text. */
export function postgresFault(error: unknown, settings: PostgresSettings): TargetFailure {
  if (error instanceof Misconfigured) return { kind: 'misconfigured', reason: error.message };
  const state = sqlStateOf(error);
  const secrets = [settings.password, ...settings.urls.map(passwordIn)].filter(
    (one) => one !== null,
  );
  const text = (message: string) =>
    foreignText(message, { secrets, charactersMax: hintCharactersMax });
  if (state === '') return unavailable(connectionFault(error, text));
  const message = error instanceof Error ? error.message : String(error);
  const reason = `the database answered ${state}: ${text(message)}`;
  if (isValueError(error)) return { kind: 'refused', reason };
  return lastingErrors.test(state) ? { kind: 'misconfigured', reason } : unavailable(reason);
}

function passwordIn(url: string): string | null {
  const { password } = new URL(url);
  return password === '' ? null : decodeURIComponent(password);
}

function connectionFault(error: unknown, text: (message: string) => string): string {
  // Errors of the library have no code: a server without TLS, a missing password, a lost connection.
  const isOwn = error instanceof Error && error.name === 'Error' && !('code' in error);
  return isOwn ? text(error.message) : networkFault(error);
}
