/** Several receivers when the database fails, or the endpoint credentials change. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { shareCredentials } from '../../../src/features/shared-log/shared-files.ts';
import { notification } from '../../helpers/deliveries.ts';
import { credentials } from '../../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { checkCluster, startCluster, startSenders } from './cluster.ts';
import { createDatabase, hasPostgres, openLog, query, useServer } from './shared-log-context.ts';
import { setStandby, startStandby } from './standby.ts';

/** Time of load before and after the failover. */
const loadMs = 2_000;
const { signal } = new AbortController();

describe.runIf(hasPostgres)('several receivers', () => {
  const server = useServer();

  it('get changed endpoint credentials before the catalogue uses them, also after a stop', async () => {
    const url = await createDatabase(server());
    const log = await openLog({ url });
    const dataDir = temporaryDirectory();
    await shareCredentials(dataDir, log, [credentials], signal);
    const cluster = await startCluster({
      ...{ url, receivers: 2 },
      env: { EARSHOT_ENDPOINT_USERNAME: '', EARSHOT_ENDPOINT_PASSWORD: '' },
    });
    const body = () => JSON.stringify(notification(1, { AckId: randomUUID() }));
    const statuses = (login: typeof credentials) =>
      Promise.all(cluster.nodes.map((node) => cluster.postTo(node, body(), login)));
    const next = { username: 'next', password: 'another secret' };
    const both = async () => [await statuses(credentials), await statuses(next)];
    const [accepted, refused] = [Array(2).fill(200), Array(2).fill(401)];
    expect(await both()).toEqual([accepted, refused]);
    await expect.poll(() => log.nodes()).toHaveLength(2);
    await shareCredentials(dataDir, log, [credentials, next], signal);
    // At once: the catalogue may use the new ones now.
    expect(await both()).toEqual([accepted, accepted]);
    await shareCredentials(dataDir, log, [next], signal);
    expect(await both()).toEqual([refused, accepted]);
    // A receiver that was stopped meanwhile knows them when it starts.
    const [first] = cluster.nodes;
    await first?.kill();
    await first?.start();
    expect(await statuses(next)).toEqual(accepted);
  });

  it('whose clocks differ by five minutes continue on the standby, and have lost nothing', async () => {
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
    await standby.run('pg_ctl', ['promote', '-D', standby.folder]);
    // The new primary has no standby of its own yet.
    const next = await startStandby(standby, 'next');
    const url = standby.url(database.slice(1));
    await expect
      .poll(() => sent.answered.length, { timeout: 60_000 })
      .toBeGreaterThan(before + 100);
    await delay(loadMs);
    await sent.stop();
    const { stored } = await checkCluster(url, cluster, sent.answered);
    expect(Object.fromEntries(sent.refused)).toEqual({});
    const copied = await query(next.url(database.slice(1)), 'SELECT FROM earshot.notification_key');
    expect(copied).toHaveLength(stored);
  }, 180_000);
});
