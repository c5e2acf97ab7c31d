/** PostgreSQL servers and nodes of a shared log for tests. */

import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { app } from '../../../src/app.ts';
import type { Logger } from '../../../src/core/terms/ports.ts';
import { openNodeStore } from '../../../src/features/shared-log/node-store.ts';
import { openSharedLog, type SharedLog } from '../../../src/features/shared-log/postgres-log.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { findPostgres, type PostgresServer, startPostgres } from '../../helpers/postgres-server.ts';
import { silentLog } from '../../helpers/recording-log.ts';
import { tables } from '../../helpers/store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

/** Debian's package `postgresql`. Required in CI: without it, tests fail instead of being skipped. */
export const hasPostgres = process.env.CI !== undefined || findPostgres() !== null;

/** Starts a server for the tests of a file. */
export function useServer(settings: Record<string, string> = {}): () => PostgresServer {
  let server: PostgresServer;
  const folder = mkdtempSync(join(tmpdir(), 'earshot-postgres-'));
  beforeAll(async () => {
    // Tests cut no power; the setting itself must be on.
    const quick = { wal_sync_method: 'fdatasync', autovacuum: 'off', ...settings };
    server = await startPostgres({ folder, port: await freePort(), settings: quick });
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  return () => server;
}

/** Creates an empty database; returns its URL. */
export async function createDatabase(server: PostgresServer): Promise<string> {
  const name = `log_${randomUUID().replaceAll('-', '')}`;
  await query(server.url('postgres'), `CREATE DATABASE ${name}`);
  return server.url(name);
}

/** Returns the URL of the same database at another port, such as that of a proxy. */
export function atPort(url: string, port: number): string {
  return url.replace(/:\d+\//, `:${port}/`);
}

/** Runs a statement as another program. */
export async function query<Row extends pg.QueryResultRow>(
  url: string,
  sql: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<Row>(sql, values)).rows;
  } finally {
    await client.end();
  }
}

export interface NodeOptions {
  url: string | readonly string[];
  dataDir?: string;
  needsStandby?: boolean;
  logger?: Logger;
  removableMin?: number;
}

/** Opens the shared log for a node; closed after the test. */
export async function openLog(
  { url, needsStandby = false, logger = silentLog, removableMin }: NodeOptions,
  nodeId: string = randomUUID(),
): Promise<SharedLog> {
  const log = await openSharedLog({
    urls: typeof url === 'string' ? [url] : url,
    ...{ needsStandby, nodeId, newId: randomUUID, random: Math.random, log: logger },
    ...(removableMin === undefined ? {} : { removableMin }),
  });
  onTestFinished(() => log.close());
  return log;
}

/** Opens the store of a node, by default of a new one. */
export async function openNode(options: NodeOptions) {
  const { dataDir = temporaryDirectory(), logger = silentLog } = options;
  const open = () =>
    openNodeStore({
      ...{ dataDir, tables, features: app, newId: randomUUID, logger },
      openLog: (nodeId) => openLog(options, nodeId),
    });
  let store = await open();
  onTestFinished(() => store.close());
  return {
    store,
    dataDir,
    reopen: async () => {
      await store.close();
      store = await open();
      return store;
    },
  };
}
