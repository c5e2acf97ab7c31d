import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import { times } from '../helpers/thorough.ts';
import { checkCluster, startCluster, startSenders } from './cluster.ts';
import { createDatabase, hasPostgres, useServer } from './shared-log-context.ts';

/** Kills of the whole test; `TEST_THOROUGH=1` for all. */
const kills = times(8, 200);

describe.runIf(hasPostgres)('three receivers behind a load balancer', () => {
  const server = useServer();

  it(`lose and refuse nothing while receivers are killed ${kills} times under load`, async () => {
    const url = await createDatabase(server());
    const cluster = await startCluster({ url });
    const { nodes, post } = cluster;
    const random = createRandom(20_261_126);
    const sent = startSenders(post);
    for (let kill = 0; kill < kills; kill += 1) {
      const node = nodes[random.integer(0, nodes.length - 1)];
      const before = sent.answered.length;
      while (sent.answered.length === before) await delay(1);
      // The random delay is the moment of the kill; the test waits for no condition here.
      await delay(random.integer(0, 100));
      await node?.kill();
      await node?.start();
    }
    await sent.stop();
    const { stored } = await checkCluster(url, cluster, sent.answered);
    process.stdout.write(`${kills} kills, ${sent.answered.length} answered, ${stored} stored\n`);
    expect(sent.answered.length).toBeGreaterThan(kills * 20);
    expect(Object.fromEntries(sent.refused)).toEqual({});
  }, 900_000);

  it('lose nothing behind Caddy, which refuses what a killed receiver did not answer', async () => {
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
  }, 120_000);
});
