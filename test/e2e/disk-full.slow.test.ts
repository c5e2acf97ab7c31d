/** A disk that fills up under load: what was answered is kept, what ends things has room, and intake recovers. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { openProducts } from '../../src/store/products/products.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import {
  bodyOf,
  type DiskContext,
  expectNothingLost,
  fillWithProducts,
  keptIn,
  type Loaded,
  openDiskContext,
} from './disk-context.ts';
import { canMount, mountSmallDisk } from './disk-small.ts';

const soon = { timeout: 20_000, interval: 20 };
const filled = { timeout: 90_000, interval: 20 };
const mebibyte = 2 ** 20;

/** Loads it until so many more are refused. */
async function refuses(receiver: Loaded): Promise<void> {
  receiver.load();
  const before = receiver.refused();
  await expect.poll(receiver.refused, filled).toBeGreaterThan(before + 50);
  expect((await receiver.send('GET', '/notifications/all')).status).toBe(503);
}

async function endsInOrder(receiver: Loaded): Promise<void> {
  const askedMs = performance.now();
  expect(await receiver.end('SIGTERM'), receiver.log()).toBe(0);
  expect(performance.now() - askedMs).toBeLessThan(10_000);
}

/** Makes room: intake, indexing, the sink and the summaries go on by themselves. */
async function recovers(context: DiskContext, receiver: Loaded) {
  const { disk, answered, hook, dataDir, asked } = context;
  const [before, askedBefore] = [answered.length, asked()];
  disk.free();
  await expect.poll(() => answered.length, soon).toBeGreaterThan(before + 100);
  await receiver.quiet();
  expect((await receiver.send('GET', '/notifications/all')).status).toBe(200);
  const { ackIds } = keptIn(dataDir);
  const handedOver = () => new Set(hook.positions()).size;
  await expect.poll(handedOver, { timeout: 60_000 }).toBe(ackIds.length);
  // What is to be summed up is found in the index, which goes on, too.
  await expect.poll(asked, { timeout: 60_000 }).toBeGreaterThan(askedBefore);
}

const hasWal = ({ dataDir }: DiskContext) => existsSync(join(dataDir, `${databaseFileName}-wal`));

describe.skipIf(!canMount)('a disk that fills up under load (needs root to mount one)', () => {
  it('by what is received, is refused in time: there is room to end in order, and to begin again', async () => {
    const context = await openDiskContext(64);
    const { disk } = context;
    disk.take(24);
    const first = await context.start();
    await refuses(first);
    expect(disk.freeBytes()).toBeGreaterThan(3 * mebibyte);
    await endsInOrder(first);
    expect(hasWal(context)).toBe(false);
    const second = await context.start();
    await refuses(second);
    expect(await second.end('SIGKILL')).toBeNull();
    const third = await context.start();
    await refuses(third);
    await recovers(context, third);
    await endsInOrder(third);
    expectNothingLost(context);
  }, 240_000);

  it('is made room on by a prune, while it is full and the receiver runs', async () => {
    const { disk, dataDir, answered, asked, start } = await openDiskContext(64);
    const receiver = await start();
    // A reader that has not begun holds everything back: summaries begin before the disk is full.
    receiver.load();
    await expect.poll(() => answered.length, soon).toBeGreaterThan(50);
    await receiver.quiet();
    await expect.poll(asked, soon).toBeGreaterThan(0);
    disk.take(24);
    await refuses(receiver);
    const before = answered.length;
    const prune = ['prune', '--to-size', '4MiB', '--yes'];
    const env = { EARSHOT_DATA_DIR: dataDir };
    const { code, err } = await spawnCommand(prune, { env, cwd: disk.folder }).ended;
    expect(code, err).toBe(0);
    await expect.poll(() => answered.length, soon).toBeGreaterThan(before + 50);
    await endsInOrder(receiver);
    const { ackIds, integrity } = keptIn(dataDir);
    expect(ackIds).toEqual(expect.arrayContaining(answered.slice(before)));
    expect(ackIds.length).toBeLessThan(answered.length);
    expect(integrity).toBe('ok');
  }, 120_000);

  it('of 60 MB is made space on by a prune to a size, in the log and in the index', async () => {
    const disk = mountSmallDisk(60);
    const context = await createReceiverContext(disk.folder);
    const { dataDir } = context;
    const kept = await fillWithProducts(dataDir, 3_000);
    disk.take(Math.floor(disk.freeBytes() / mebibyte) - 2);
    const receiver = await context.start();
    const send = createClient({ port: receiver.port, ca: context.ca });
    expect((await send('POST', '/notifications/all', bodyOf(20_000))).status).toBe(503);
    const env = { EARSHOT_DATA_DIR: dataDir };
    const prune = ['prune', '--to-size', '1MiB', '--yes'];
    const { code, err } = await spawnCommand(prune, { env, cwd: disk.folder }).ended;
    expect(code, err).toBe(0);
    expect(statSync(join(dataDir, databaseFileName)).size).toBeLessThan(2 * mebibyte);
    const probe = async () => (await send('GET', '/notifications/all')).status;
    await expect.poll(probe, soon).toBe(200);
    expect((await send('POST', '/notifications/all', bodyOf(20_000))).status).toBe(200);
    const { ackIds, integrity } = keptIn(dataDir);
    expect(integrity).toBe('ok');
    expect(ackIds).toEqual([...kept.slice(1 - ackIds.length), 'ack-20000']);
    disk.free();
    const products = openProducts(dataDir);
    onTestFinished(() => products.close());
    const indexed = async () => (await products.indexState()).products;
    await expect.poll(indexed, soon).toBe(ackIds.length);
  }, 120_000);

  it.each([
    ['that leaves room', {}],
    ['that does not', { EARSHOT_DISK_RESERVE: '0' }],
  ])(
    'by something else, to the last byte, loses nothing under a limit %s',
    async (_name, env) => {
      const context = await openDiskContext(96);
      const { disk, answered } = context;
      const first = await context.start(env);
      first.load();
      await expect.poll(() => answered.length, soon).toBeGreaterThan(300);
      disk.fill();
      await refuses(first);
      disk.fill();
      expect(disk.freeBytes()).toBe(0);
      await endsInOrder(first);
      disk.fill();
      const second = await context.start(env);
      await refuses(second);
      expect(await second.end('SIGKILL')).toBeNull();
      disk.fill();
      const third = await context.start(env);
      await refuses(third);
      await recovers(context, third);
      await endsInOrder(third);
      expectNothingLost(context);
    },
    240_000,
  );
});
