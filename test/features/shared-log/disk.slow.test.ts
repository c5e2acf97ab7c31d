import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { canMount, mountSmallDisk } from '../../e2e/disk-small.ts';
import { delivery, notification } from '../../helpers/deliveries.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { startPostgres } from '../../helpers/postgres-server.ts';
import { createDatabase, hasPostgres, openNode, query, useServer } from './shared-log-context.ts';

const padding = 'x'.repeat(50_000);

describe.runIf(hasPostgres && canMount)('a full disk', () => {
  const server = useServer();

  it('of a node delays only that node, which continues when space is free', async () => {
    const url = await createDatabase(server());
    const disk = mountSmallDisk(24);
    const { store } = await openNode({ url, dataDir: join(disk.folder, 'data') });
    const other = await openNode({ url });
    await store.accept(delivery(notification(1)));
    await store.shared?.caughtUp();
    disk.fill();
    for (let i = 2; i <= 20; i += 1) {
      const receipt = await store.accept(delivery(notification(i, { padding })));
      expect(receipt).toMatchObject({ outcome: 'stored' });
    }
    await expect.poll(() => store.shared?.state().fault).toContain('disk');
    expect(await store.counts()).toMatchObject({ notifications: 1 });
    await other.store.shared?.caughtUp();
    expect(await other.store.counts()).toMatchObject({ notifications: 20 });
    disk.free();
    await expect.poll(() => store.counts()).toMatchObject({ notifications: 20 });
    expect(store.shared?.state().fault).toBeNull();
  });

  it('of the database refuses notifications until space is free, and loses none', async () => {
    const disk = mountSmallDisk(160);
    const folder = join(disk.folder, 'postgres');
    mkdirSync(folder);
    chmodSync(disk.folder, 0o755);
    const settings = { min_wal_size: '32MB', max_wal_size: '48MB', wal_recycle: 'off' };
    const full = await startPostgres({ folder, port: await freePort(), settings });
    onTestFinished(() => full.stop());
    const url = await createDatabase(full);
    const { store } = await openNode({ url });
    await store.accept(delivery(notification(1)));
    disk.fill();
    let number = 2;
    const send = () =>
      store
        .accept(delivery(notification(number, { padding: `${padding}${Math.random()}` })))
        .catch(() => null);
    while ((await send()) !== null && number < 1_000) number += 1;
    expect(number).toBeLessThan(1_000);
    disk.free();
    // PostgreSQL ends when it cannot write its log.
    if (full.pid() === null) await full.start();
    await expect.poll(send, { timeout: 60_000 }).not.toBeNull();
    const keys = await query(url, 'SELECT FROM earshot.notification_key');
    expect(keys).toHaveLength(number);
    await store.shared?.caughtUp();
    expect(await store.counts()).toMatchObject({ notifications: number });
  }, 180_000);
});
