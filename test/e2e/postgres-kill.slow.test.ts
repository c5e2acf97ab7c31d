/** SIGKILL of earshot and of a PostgreSQL server under load: nothing is lost, and only deliveries in flight are repeated. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import { blocks, readPage } from '../docs/console-sessions.ts';
import { query, useServer } from '../features/shared-log/shared-log-context.ts';
import {
  createSpatialDatabase,
  hasPostgis,
  postgresTarget,
} from '../features/sinks/postgres-database.ts';
import { definition } from '../features/sinks/sink-definition.ts';
import { collect } from '../helpers/deliveries.ts';
import type { PostgresServer } from '../helpers/postgres-server.ts';
import { openStore } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { times } from '../helpers/thorough.ts';

const kills = times(6, 24);
const concurrency = 256;
/** Large enough for deliveries of 256 products at a time. */
const products = 400;

/** Adds a row for each attempt to insert a notification, also for a repeated one, and announces the commit. */
const counting = `CREATE TABLE attempt (id text NOT NULL);
  CREATE FUNCTION count_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO attempt VALUES (NEW.id);
    NOTIFY written;
    RETURN NEW;
  END $$;
  CREATE TRIGGER counts BEFORE INSERT ON earshot_notifications
  FOR EACH ROW EXECUTE FUNCTION count_attempt()`;

async function killed(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

/** Resolves at the next commit, about when earshot gets its answer. */
async function nextCommit(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query('LISTEN written');
  await once(client, 'notification');
  void client.end();
}

/** Kills the server only; its other processes then end, before which it cannot start again. */
async function killServer(server: PostgresServer): Promise<void> {
  const pid = server.pid();
  if (pid === null) throw new Error('The server does not run.');
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  process.kill(pid, 'SIGKILL');
  const isRunning = (one: string) => {
    try {
      return !/\) Z /.test(readFileSync(`/proc/${one}/stat`, 'utf8'));
    } catch {
      return false;
    }
  };
  await expect
    .poll(() => server.pid() !== null || children.some(isRunning), { timeout: 20_000 })
    .toBe(false);
}

describe.skipIf(!hasPostgis)('PostgreSQL sink (needs postgresql-postgis)', () => {
  const server = useServer();

  it(`writes every notification despite ${kills} kills of earshot and the database`, async () => {
    const random = createRandom(20_261_127);
    const dataDir = join(temporaryDirectory(), 'data');
    const url = await createSpatialDatabase(server());
    const [tables = ''] = blocks(readPage('sinks.md'), 'sql');
    await query(url, `${tables}; ${counting}`);
    const target = postgresTarget(url, { notifications: 'earshot_notifications', create: false });
    const sinks = JSON.stringify([definition(target, { concurrency, attemptsMax: 1 })]);
    let next = 1;
    const start = async (isLast = false) => {
      const args = [dataDir, isLast ? 'none' : `${next}`, sinks, `${products}`];
      const file = join(import.meta.dirname, 'sinks-kill-child.ts');
      const child = fork(file, args, { execArgv: [] });
      onTestFinished(() => void child.kill('SIGKILL'));
      await once(child, 'message');
      child.on('message', (made: number[]) => {
        next = Math.max(next, ...made.map((one) => one + 1));
      });
      return child;
    };
    const attempts = async () => {
      const sql = 'SELECT count(*)::int AS all, count(DISTINCT id)::int AS ids FROM attempt';
      const [found] = await query<{ all: number; ids: number }>(url, sql);
      return { all: found?.all ?? 0, ids: found?.ids ?? 0 };
    };

    let earshot = await start();
    for (let round = 0; round < kills; round += 1) {
      const before = (await attempts()).ids;
      await expect
        .poll(async () => (await attempts()).ids, { interval: 20, timeout: 30_000 })
        .toBeGreaterThan(before + 50);
      if (round % 2 === 0) {
        // The random delay is the moment of the kill; the test waits for no condition here.
        await delay(random.integer(0, 200));
        await killServer(server());
        await server().start();
      } else {
        await nextCommit(url);
        await killed(earshot);
        earshot = await start();
      }
    }
    await killed(earshot);

    // The last process stores nothing new, and delivers the rest.
    const store = await openStore({ dataDir, nowUs: () => Date.now() * 1000 });
    onTestFinished(() => store.close());
    const rows = await collect(store.find({ order: 'oldest' }));
    earshot = await start(true);
    const left = async () => {
      const [counts] = await store.sinks.counts();
      const cursor = await store.cursor('sink:sink');
      return { cursor, waiting: counts?.waiting, dead: counts?.dead };
    };
    const none = { cursor: rows.at(-1)?.position, waiting: 0, dead: 0 };
    await expect.poll(left, { timeout: 60_000 }).toEqual(none);
    await killed(earshot);

    const stored = await query<{ position: string }>(
      url,
      'SELECT position FROM earshot_notifications ORDER BY position',
    );
    expect(stored.map(({ position }) => Number(position))).toEqual(
      rows.map(({ position }) => position),
    );
    expect(rows.length).toBeGreaterThan(kills * 50);
    const newest = new Map(rows.map(({ productId, position }) => [productId, position]));
    const states = await query<{ product_id: string; position: string }>(
      url,
      'SELECT product_id, position FROM earshot_products',
    );
    expect(new Map(states.map((one) => [one.product_id, Number(one.position)]))).toEqual(newest);
    const { all, ids } = await attempts();
    expect(ids).toBe(rows.length);
    const repeated = `${rows.length} notifications over ${kills + 1} kills, ${all - ids} repeated`;
    expect(all - ids, repeated).toBeLessThanOrEqual((kills + 1) * concurrency);
    // Otherwise the test has missed all moments between a commit and its acknowledgement.
    expect(all - ids, repeated).toBeGreaterThan(0);
  }, 240_000);
});
