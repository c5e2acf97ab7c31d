import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { shareCredentials } from '../../../src/features/shared-log/shared-files.ts';
import { notification } from '../../helpers/deliveries.ts';
import { credentials } from '../../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { startCluster } from './cluster.ts';
import { createDatabase, hasPostgres, openLog, useServer } from './shared-log-context.ts';

const signal = new AbortController().signal;

describe.runIf(hasPostgres)('endpoint credentials of several receivers', () => {
  const server = useServer();

  it('are copied to each receiver when it starts, and changed on all of them before the catalogue uses them', async () => {
    const url = await createDatabase(server());
    const log = await openLog({ url });
    const dataDir = temporaryDirectory();
    await shareCredentials(dataDir, log, [credentials], signal);
    const cluster = await startCluster({
      ...{ url, receivers: 2 },
      env: { EARSHOT_ENDPOINT_USERNAME: '', EARSHOT_ENDPOINT_PASSWORD: '' },
    });
    const statuses = (login: typeof credentials) =>
      Promise.all(
        cluster.nodes.map((node) =>
          cluster.postTo(node, JSON.stringify(notification(1, { AckId: randomUUID() })), login),
        ),
      );
    expect(await statuses(credentials)).toEqual([200, 200]);
    const next = { username: 'next', password: 'another secret' };
    expect(await statuses(next)).toEqual([401, 401]);
    const reported = async () => (await log.nodes()).length;
    await expect.poll(reported).toBe(2);
    await shareCredentials(dataDir, log, [credentials, next], signal);
    // At once: the catalogue may use the new ones now.
    expect(await statuses(next)).toEqual([200, 200]);
    expect(await statuses(credentials)).toEqual([200, 200]);
    await shareCredentials(dataDir, log, [next], signal);
    expect(await statuses(credentials)).toEqual([401, 401]);
    expect(await statuses(next)).toEqual([200, 200]);
    // A receiver that was stopped meanwhile knows them when it starts.
    const [first] = cluster.nodes;
    await first?.kill();
    await first?.start();
    expect(await statuses(next)).toEqual([200, 200]);
  });
});
