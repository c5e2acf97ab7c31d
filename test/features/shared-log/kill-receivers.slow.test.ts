import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createRandom } from '../../../src/sandbox/clock.ts';
import { itIfComplete, times } from '../../helpers/thorough.ts';
import { checkCluster, startCluster, startSenders } from './cluster.ts';
import { createDatabase, hasPostgres, useServer } from './shared-log-context.ts';

/** Kills of the whole test; `TEST_THOROUGH=1` for all. */
const kills = times(3, 200);

const cutOthers = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'earshot'`;
const waitingLocks = 'SELECT FROM pg_locks WHERE NOT granted';

async function openClient(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on('error', () => undefined);
  await client.connect();
  onTestFinished(() => client.end().catch(() => undefined));
  return client;
}

/** Opens connections until the server refuses one. */
async function fillConnections(url: string): Promise<pg.Client[]> {
  const clients: pg.Client[] = [];
  for (;;) {
    const client = await openClient(url).catch(() => null);
    if (client === null) return clients;
    clients.push(client);
  }
}

describe.runIf(hasPostgres)('three receivers behind a load balancer', () => {
  const server = useServer({ max_connections: '40' });

  it(`lose and refuse nothing while receivers are killed at least ${kills} times under load`, async () => {
    const url = await createDatabase(server());
    const cluster = await startCluster({ url });
    const { nodes, post } = cluster;
    const random = createRandom(20_261_126);
    const sent = startSenders(post);
    // More kills if a slow machine answers few between them.
    let killed = 0;
    for (; killed < kills || sent.answered.length <= kills * 20; killed += 1) {
      const node = nodes[random.integer(0, nodes.length - 1)];
      const before = sent.answered.length;
      while (sent.answered.length === before) await delay(1);
      // The random delay is the moment of the kill; the test waits for no condition here.
      await delay(random.integer(0, 100));
      await node?.kill();
      await node?.start();
    }
    await sent.stop();
    await checkCluster(url, cluster, sent.answered);
    expect(Object.fromEntries(sent.refused)).toEqual({});
  }, 900_000);

  itIfComplete(
    'lose and refuse nothing while the database cuts, blocks and refuses their connections',
    async () => {
      const url = await createDatabase(server());
      const cluster = await startCluster({ url });
      const database = await openClient(url);
      const sent = startSenders(cluster.post);
      const progress = async () => {
        const before = sent.answered.length;
        await expect.poll(() => sent.answered.length).toBeGreaterThan(before + 50);
      };
      const cut = () => database.query(cutOthers);
      const blockedMs = 200;
      for (let round = 0; round < times(2, 30); round += 1) {
        await progress();
        await cut();
        await progress();
        await database.query('BEGIN; SELECT FROM earshot.head FOR UPDATE');
        const waiting = async () => (await database.query(waitingLocks)).rowCount ?? 0;
        await expect.poll(waiting).toBeGreaterThan(0);
        await delay(blockedMs);
        await database.query('COMMIT');
        await progress();
        const others = await fillConnections(url);
        await cut();
        // Takes those that the cut has freed.
        others.push(...(await fillConnections(url)));
        await delay(blockedMs);
        for (const client of others) await client.end().catch(() => undefined);
      }
      await progress();
      await sent.stop();
      await checkCluster(url, cluster, sent.answered);
      expect(Object.fromEntries(sent.refused)).toEqual({});
    },
    300_000,
  );

  itIfComplete(
    'lose nothing behind Caddy, which refuses what a killed receiver did not answer',
    async () => {
      const url = await createDatabase(server());
      const cluster = await startCluster({ url, balancer: 'caddy' });
      const sent = startSenders(cluster.post);
      for (const node of cluster.nodes) {
        const before = sent.answered.length;
        await expect.poll(() => sent.answered.length).toBeGreaterThan(before + 20);
        await node.kill();
        await node.start();
      }
      await sent.stop();
      await checkCluster(url, cluster, sent.answered);
      // Caddy's own answers; the catalogue retries.
      const statuses = [...sent.refused.keys()];
      expect(statuses.filter((status) => status !== 502 && status !== 503)).toEqual([]);
    },
    120_000,
  );
});
