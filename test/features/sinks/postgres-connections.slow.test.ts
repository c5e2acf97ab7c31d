/** Connections of PostgreSQL sinks: faults, timeouts, TLS, the doctor's check, and test deliveries. */
import { chownSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sampleDocument } from '../../../src/features/messages/document.ts';
import { checkSinks } from '../../../src/features/sinks/registry.ts';
import { createCertificateAuthority } from '../../../src/sandbox/certificate-authority.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { startTcpServer } from '../../helpers/tcp-server.ts';
import { createDatabase, query, useServer } from '../shared-log/shared-log-context.ts';
import {
  createSpatialDatabase,
  hasPostgis,
  type PostgresTarget,
  postgresTarget,
} from './postgres-database.ts';
import { openSinkContext, openTestTarget } from './sink-context.ts';
import { definition } from './sink-definition.ts';
import { sinkDocument } from './sink-items.ts';

async function check(target: PostgresTarget) {
  const [finding] = await checkSinks([definition(target, { name: 'gis' })], {
    findProgram: () => null,
    signal: new AbortController().signal,
  });
  return finding;
}

/** Delivers an item. */
function attempt(settings: PostgresTarget, { timeoutMs = 10_000, isTest = true } = {}) {
  const target = openTestTarget(settings, { timeoutMs });
  return target.deliver(isTest ? sampleDocument : sinkDocument, AbortSignal.timeout(timeoutMs));
}

describe.skipIf(!hasPostgis)('a connection of a PostgreSQL sink (needs postgresql-postgis)', () => {
  const server = useServer({ fsync: 'off' });

  it('is checked without a trace: tables, permissions, encryption', async () => {
    const url = await createSpatialDatabase(server());
    const before = await check(postgresTarget(url, { notifications: 'events' }));
    expect(before).toMatchObject({ check: 'sink gis', level: 'ok' });
    expect(await query(url, "SELECT FROM pg_tables WHERE schemaname = 'public'")).toHaveLength(1);
    const plain = await createDatabase(server());
    await query(plain, 'REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE ROLE reader LOGIN');
    await query(plain, 'CREATE TABLE mine (product_id text PRIMARY KEY, note text NOT NULL)');
    const limited = plain.replace('postgres@', 'reader@');
    const remote = `${plain.replace('127.0.0.1', '0.0.0.0')}?sslmode=disable`;
    for (const [target, level, text] of [
      [postgresTarget(limited), 'critical', 'permission denied for schema public'],
      [postgresTarget(limited, { products: 'mine' }), 'critical', 'does not exist'],
      [postgresTarget(remote), 'warning', 'unencrypted'],
    ] as const) {
      expect(await check(target)).toMatchObject({ level, text: expect.stringContaining(text) });
    }
  });

  it('fails with the reason, and the class of the failure', async () => {
    const url = await createDatabase(server());
    const closed = `postgres://postgres@127.0.0.1:${await freePort()}/x`;
    for (const [bad, kind, reason] of [
      [closed, 'unavailable', 'the connection was refused (ECONNREFUSED)'],
      [url.replace(/\/\w+$/, '/none'), 'misconfigured', '3D000: database "none" does not'],
      [url.replace('postgres@', 'nobody:hunter2@'), 'misconfigured', '28000: role "nobody" does'],
      [`${url}?sslmode=verify-full`, 'unavailable', 'The server does not support SSL connections'],
    ] as const) {
      const answer = await attempt(postgresTarget(bad));
      expect(answer).toMatchObject({ kind, reason: expect.stringContaining(reason) });
      const found = await check(postgresTarget(bad));
      const nextStep = expect.stringContaining('queued');
      expect(found).toMatchObject({ level: 'critical', nextStep });
      expect(JSON.stringify(found)).not.toContain('hunter2');
    }
  });

  it('uses a later server if the first one does not answer, and stays with it', async () => {
    const url = await createDatabase(server());
    const first = await startTcpServer((socket) => socket.destroy());
    const urls = [`postgres://postgres@127.0.0.1:${first.port}/x`, url];
    const target = openTestTarget(postgresTarget(url, { urls }), { timeoutMs: 10_000 });
    const deliver = () => target.deliver(sampleDocument, AbortSignal.timeout(10_000));
    expect(await deliver()).toEqual({ kind: 'acknowledged' });
    const connections = first.connections();
    expect(await deliver()).toEqual({ kind: 'acknowledged' });
    expect(first.connections()).toBe(connections);
  });

  it('tests a delivery without a trace', async () => {
    const url = await createSpatialDatabase(server());
    const target = postgresTarget(url, { notifications: 'events' });
    expect(await attempt(target)).toEqual({ kind: 'acknowledged' });
    const tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'";
    expect(await query(url, tables)).toEqual([{ tablename: 'spatial_ref_sys' }]);
    expect(await attempt(target, { isTest: false })).toEqual({ kind: 'acknowledged' });
    expect(await query(url, tables)).toHaveLength(3);
  });

  it('that hangs or waits for a lock ends at the timeout, and the next delivery succeeds', async () => {
    const silent = await startTcpServer();
    const inTime = { kind: 'unavailable', reason: 'it did not answer in time' };
    const hanging = postgresTarget(`postgres://postgres@127.0.0.1:${silent.port}/x`);
    expect(await attempt(hanging, { timeoutMs: 100, isTest: false })).toMatchObject(inTime);

    const url = await createSpatialDatabase(server());
    const { accept, start, items, isDone } = await openSinkContext();
    await accept({ ProductId: 'a' });
    const target = postgresTarget(url);
    const running = start(definition(target, { timeoutMs: 300 }));
    await expect.poll(() => isDone()).toBe(true);
    const locked = query(
      url,
      'BEGIN; LOCK TABLE earshot_products IN EXCLUSIVE MODE; SELECT pg_sleep(1); COMMIT',
    );
    const locks = "SELECT FROM pg_locks WHERE mode = 'ExclusiveLock' AND locktype = 'relation'";
    await expect.poll(() => query(url, locks)).toHaveLength(1);
    await accept({ ProductId: 'b' });
    await expect
      .poll(async () => (await items('waiting'))[0]?.error)
      .toMatch(/^the database answered 55P03: canceling statement due to lock timeout/);
    await locked;
    await expect.poll(() => isDone(), { timeout: 10_000 }).toBe(true);

    // A process of the server that is stopped cannot end its statement; another connection replaces it.
    const ofSink = "SELECT pid FROM pg_stat_activity WHERE application_name = 'earshot sink'";
    const [{ pid } = { pid: 0 }] = await query<{ pid: number }>(url, ofSink);
    process.kill(pid, 'SIGSTOP');
    onTestFinished(() => void process.kill(pid, 'SIGCONT'));
    await accept({ ProductId: 'c' });
    const error = async () => (await items('waiting'))[0]?.error;
    await expect.poll(error, { timeout: 10_000 }).toBe('it did not answer in time');
    await expect.poll(() => isDone(), { timeout: 10_000 }).toBe(true);
    await running.stop();
    await expect
      .poll(async () => (await query<{ pid: number }>(url, ofSink)).map((one) => one.pid))
      .toEqual([pid]);
  });

  it('trusts the authority in `ca` only, and verifies the name of the server', async () => {
    const authority = await createCertificateAuthority({ now: Date.now });
    const other = await createCertificateAuthority({ now: Date.now });
    const pair = await authority.issue({ hosts: ['127.0.0.1'] });
    const { folder, configure, run } = server();
    const files = { 'server.crt': pair.certificatePem, 'server.key': pair.keyPem };
    const { uid, gid } = statSync(folder);
    for (const [name, pem] of Object.entries(files)) {
      writeFileSync(join(folder, name), pem, { mode: 0o600 });
      chownSync(join(folder, name), uid, gid);
    }
    configure({ ssl: 'on' });
    await run('pg_ctl', ['reload', '-D', folder]);
    const url = await createDatabase(server());
    const answer = (ca: string, at = url) => attempt(postgresTarget(at, { ca }));
    const ok = { kind: 'acknowledged' };
    await expect.poll(() => answer(authority.certificatePem)).toEqual(ok);
    expect(await answer(other.certificatePem)).toMatchObject({
      kind: 'unavailable',
      reason: expect.stringMatching(/^the authority is unknown.* \([A-Z_]+\)$/),
    });
    const named = url.replace('127.0.0.1', 'localhost');
    expect(await answer(authority.certificatePem, named)).toMatchObject({ kind: 'unavailable' });
  });
});
