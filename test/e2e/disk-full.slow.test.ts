import { describe, expect, it } from 'vitest';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { isThorough } from '../helpers/thorough.ts';
import {
  type DiskContext,
  expectNothingLost,
  type Loaded,
  openDiskContext,
  storedIn,
} from './disk-context.ts';
import { canMount } from './disk-small.ts';

const withoutReserve: [string, Record<string, string>][] = [
  ['without a disk reserve', { EARSHOT_DISK_RESERVE: '0' }],
];

const soon = { timeout: 20_000, interval: 20 };
const filled = { timeout: 90_000, interval: 20 };

/** Puts a receiver under load until it refuses more than 50 pushes. */
async function loadUntilRefused(receiver: Loaded): Promise<void> {
  receiver.startLoad();
  const before = receiver.refused();
  await expect.poll(receiver.refused, filled).toBeGreaterThan(before + 50);
  // A reader that ends lets the write-ahead log be truncated: then some more are accepted.
  const probe = async () => (await receiver.send('GET', '/notifications/all')).status;
  await expect.poll(probe, filled).toBe(503);
}

async function endsInOrder(receiver: Loaded): Promise<void> {
  const askedMs = performance.now();
  expect(await receiver.end('SIGTERM'), receiver.log()).toBe(0);
  expect(performance.now() - askedMs).toBeLessThan(10_000);
}

/** Frees space, and checks that intake, indexing, the sink and the summaries continue automatically. */
async function recovers(context: DiskContext, receiver: Loaded) {
  const { disk, answered, hook, dataDir, asked } = context;
  const [before, askedBefore] = [answered.length, asked()];
  disk.free();
  await expect.poll(() => answered.length, soon).toBeGreaterThan(before + 100);
  await receiver.stopLoad();
  expect((await receiver.send('GET', '/notifications/all')).status).toBe(200);
  const { ackIds } = storedIn(dataDir);
  const delivered = () => new Set(hook.positions()).size;
  await expect.poll(delivered, { timeout: 60_000 }).toBe(ackIds.length);
  // Summaries depend on the index, which continues, too.
  await expect.poll(asked, { timeout: 60_000 }).toBeGreaterThan(askedBefore);
}

describe.skipIf(!canMount)('a disk that becomes full (needs root to mount one)', () => {
  it.each([['with the default disk reserve', {}], ...(isThorough ? withoutReserve : [])])(
    '%s: a receiver loses nothing when another program fills it to the last byte',
    async (_name, env) => {
      const context = await openDiskContext(96);
      const { disk, answered } = context;
      const first = await context.start(env);
      first.startLoad();
      await expect.poll(() => answered.length, soon).toBeGreaterThan(300);
      disk.fill();
      await loadUntilRefused(first);
      disk.fill();
      expect(disk.freeBytes()).toBe(0);
      await endsInOrder(first);
      disk.fill();
      const second = await context.start(env);
      await loadUntilRefused(second);
      expect(await second.end('SIGKILL')).toBeNull();
      disk.fill();
      const third = await context.start(env);
      await loadUntilRefused(third);
      await recovers(context, third);
      await endsInOrder(third);
      expectNothingLost(context);
    },
    240_000,
  );

  it('gets free space by a prune while the receiver runs, which continues', async () => {
    const { disk, dataDir, answered, asked, start } = await openDiskContext(64);
    const receiver = await start();
    // A reader that has not started blocks pruning: summaries start before the disk is full.
    receiver.startLoad();
    await expect.poll(() => answered.length, soon).toBeGreaterThan(50);
    await receiver.stopLoad();
    await expect.poll(asked, soon).toBeGreaterThan(0);
    disk.use(24);
    await loadUntilRefused(receiver);
    const before = answered.length;
    const prune = ['prune', '--to-size', '4MiB', '--yes'];
    const env = { EARSHOT_DATA_DIR: dataDir };
    const { code, err } = await spawnCommand(prune, { env, cwd: disk.folder }).ended;
    expect(code, err).toBe(0);
    await expect.poll(() => answered.length, soon).toBeGreaterThan(before + 50);
    await endsInOrder(receiver);
    const { ackIds, integrity } = storedIn(dataDir);
    expect(ackIds).toEqual(expect.arrayContaining(answered.slice(before)));
    expect(ackIds.length).toBeLessThan(answered.length);
    expect(integrity).toBe('ok');
  }, 240_000);
});
