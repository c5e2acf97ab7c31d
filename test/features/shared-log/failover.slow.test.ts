import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { checkCluster, startCluster, startSenders } from './cluster.ts';
import { createDatabase, hasPostgres, query, useServer } from './shared-log-context.ts';
import { setStandby, startStandby } from './standby.ts';

/** Time of load before and after the failover. */
const loadMs = 2_000;

describe.runIf(hasPostgres)('three receivers whose clocks differ by five minutes', () => {
  const server = useServer();

  it('continue on the standby when the primary fails under load, and have lost nothing', async () => {
    const primaryUrl = await createDatabase(server());
    const standby = await startStandby(server(), 'near');
    await setStandby(server(), 'near');
    // For the time when it is the primary.
    await setStandby(standby, 'next');
    const database = new URL(primaryUrl).pathname;
    const hosts = [server(), standby].map(({ port }) => `127.0.0.1:${port}`).join(',');
    const cluster = await startCluster({
      url: `postgres://postgres@${hosts}${database}`,
      env: { EARSHOT_LOG_SYNC: 'standby' },
      clockOffsetsMs: [0, 300_000, -300_000],
    });
    const sent = startSenders(cluster.post);
    await expect.poll(() => sent.answered.length, { timeout: 20_000 }).toBeGreaterThan(200);
    await delay(loadMs);
    const before = sent.answered.length;
    await server().stop('SIGQUIT');
    const failedMs = performance.now();
    await standby.run('pg_ctl', ['promote', '-D', standby.folder]);
    // The new primary has no standby of its own yet.
    const next = await startStandby(standby, 'next');
    const url = standby.url(database.slice(1));
    await expect
      .poll(() => sent.answered.length, { timeout: 60_000 })
      .toBeGreaterThan(before + 100);
    const seconds = (performance.now() - failedMs) / 1_000;
    await delay(loadMs);
    await sent.stop();
    const refused = Object.fromEntries(sent.refused);
    const { stored } = await checkCluster(url, cluster, sent.answered);
    process.stdout.write(
      `failover: ${sent.answered.length} answered, ${stored} stored, refused ${JSON.stringify(refused)}, intake again after ${seconds.toFixed(1)} s\n`,
    );
    expect(refused).toEqual({});
    const copied = await query(
      next.url(database.slice(1)),
      'SELECT count(*)::int AS count FROM earshot.notification_key',
    );
    expect(copied).toEqual([{ count: stored }]);
  }, 180_000);
});
