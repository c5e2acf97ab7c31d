/** Standbys of PostgreSQL servers. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { freePort } from '../../helpers/free-ports.ts';
import { type PostgresServer, startPostgres } from '../../helpers/postgres-server.ts';
import { query } from './shared-log-context.ts';

/** Starts a synchronous standby of a server. */
export async function startStandby(primary: PostgresServer, name: string): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'earshot-standby-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const standbyOf = { port: primary.port, name };
  const standby = await startPostgres({ folder, port: await freePort(), standbyOf });
  onTestFinished(() => standby.stop());
  return standby;
}

/** Makes commits of a server wait for these standbys; for none with an empty text. */
export async function setStandby(server: PostgresServer, names: string): Promise<void> {
  const url = server.url('postgres');
  await query(url, `ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
  await query(url, 'SELECT pg_reload_conf()');
  await expect
    .poll(() => query(url, `SELECT current_setting('synchronous_standby_names') AS names`))
    .toEqual([{ names }]);
}
