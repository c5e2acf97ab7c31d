/** An automatic backup of `earshot start`, restored in a new folder: later events are recovered there. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { collect } from '../helpers/deliveries.ts';
import { openStoreReader } from '../helpers/store.ts';
import { openRegistered, publish, publishedIds } from './start-context.ts';

// The command has no option for these intervals, and its first check is a minute after its start.
vi.mock('../../src/features/backup/job.ts', async (load) => {
  const real = await load<typeof import('../../src/features/backup/job.ts')>();
  const soon = { firstMs: 50, intervalMs: 50 };
  const startBackups: typeof real.startBackups = (parts, config, io) =>
    real.startBackups(parts, config, io, soon);
  return { ...real, startBackups };
});

it('lets another machine continue without missing events', {
  timeout: 90_000,
}, async () => {
  const context = await openRegistered();
  const { folder, minuteMs } = context;
  const [backups, fresh] = [join(folder, 'backups'), join(folder, 'fresh')];
  const first = await context.start();
  await publish(context, 5);
  await expect.poll(async () => (await context.entries()).length).toBe(5);
  await context.stop(first);
  const running = await context.start({ EARSHOT_BACKUP_DIR: backups });
  await expect.poll(running.err, { timeout: 20_000 }).toContain('"made and verified a backup"');
  await publish(context, 4);
  await expect.poll(async () => (await context.entries()).length).toBe(9);
  await context.stop(running);

  const [name = ''] = readdirSync(backups);
  await context.command('restore', join(backups, name), '--data-dir', fresh);
  const reader = openStoreReader(fresh);
  onTestFinished(() => reader.close());
  expect((await reader.counts()).notifications).toBe(5);
  context.passMs(10 * minuteMs);
  const there = await context.start({ EARSHOT_DATA_DIR: fresh });
  const idsThere = async () =>
    (await collect(reader.find({}))).map(({ productId }) => productId).toSorted();
  await expect.poll(idsThere, { timeout: 20_000 }).toEqual(publishedIds(context));
  await publish(context, 2);
  await expect.poll(idsThere, { timeout: 20_000 }).toEqual(publishedIds(context));
  await context.stop(there);
  const sources = (await collect(reader.find({ order: 'oldest' }))).map(({ source }) => source);
  expect(sources.filter((source) => source === 'reconcile')).toHaveLength(4);
});
