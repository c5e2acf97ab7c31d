/** A disk that becomes full under load: answered notifications stay stored, and intake recovers. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openProducts } from '../../src/features/products/index-file/products.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import { openStore } from '../helpers/store.ts';
import { isThorough, itIfComplete } from '../helpers/thorough.ts';
import {
  bodyOf,
  type DiskContext,
  expectNothingLost,
  fillWithProducts,
  type Loaded,
  openDiskContext,
  storedIn,
} from './disk-context.ts';
import { canMount, mountSmallDisk } from './disk-small.ts';

const withoutReserve: [string, Record<string, string>][] = [
  ['without a disk reserve', { EARSHOT_DISK_RESERVE: '0' }],
];

const soon = { timeout: 20_000, interval: 20 };
const filled = { timeout: 90_000, interval: 20 };
const mebibyte = 2 ** 20;

/** Puts a receiver under load until it refuses more than 50 pushes. */
async function loadUntilRefused(receiver: Loaded): Promise<void> {
  receiver.startLoad();
  const before = receiver.refused();
  await expect.poll(receiver.refused, filled).toBeGreaterThan(before + 50);
  // A reader that ends lets the write-ahead log be truncated: then some more are accepted.
  const probe = async () => (await receiver.send('GET', '/notifications/all')).status;
  await expect.poll(probe, soon).toBe(503);
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

const hasWal = ({ dataDir }: DiskContext) => existsSync(join(dataDir, `${databaseFileName}-wal`));

describe.skipIf(!canMount)(
  'a receiver on a disk that becomes full (needs root to mount one)',
  () => {
    itIfComplete(
      'refuses pushes while it has enough free space to stop in order and start again',
      async () => {
        const context = await openDiskContext(64);
        const { disk } = context;
        disk.use(24);
        const first = await context.start();
        await loadUntilRefused(first);
        expect(disk.freeBytes()).toBeGreaterThan(3 * mebibyte);
        await endsInOrder(first);
        expect(hasWal(context)).toBe(false);
        const second = await context.start();
        await loadUntilRefused(second);
        expect(await second.end('SIGKILL')).toBeNull();
        const third = await context.start();
        await loadUntilRefused(third);
        await recovers(context, third);
        await endsInOrder(third);
        expectNothingLost(context);
      },
      240_000,
    );

    itIfComplete(
      'gets free space by a prune while it runs, and continues',
      async () => {
        // The reserve (a twentieth) exceeds the usual write-ahead log, 8 MB; smaller disks: see decision 41.
        const { disk, dataDir, answered, asked, start } = await openDiskContext(256);
        const receiver = await start();
        // A reader that has not started blocks pruning: summaries start before the disk is full.
        receiver.startLoad();
        await expect.poll(() => answered.length, soon).toBeGreaterThan(50);
        await receiver.stopLoad();
        await expect.poll(asked, soon).toBeGreaterThan(0);
        disk.use(216);
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
      },
      120_000,
    );

    itIfComplete(
      'starts without a free byte and without the files of its write-ahead log',
      async () => {
        const context = await openDiskContext(48);
        const { disk, answered } = context;
        const first = await context.start();
        first.startLoad();
        await expect.poll(() => answered.length, soon).toBeGreaterThan(50);
        await first.stopLoad();
        await endsInOrder(first);
        expect(hasWal(context)).toBe(false);
        disk.fill();
        const second = await context.start();
        await expect.poll(second.log, soon).toContain('the log cannot be read');
        await loadUntilRefused(second);
        await recovers(context, second);
        await endsInOrder(second);
        expectNothingLost(context);
      },
      120_000,
    );

    itIfComplete(
      'accepts again when its write-ahead log, which a reader kept, can be truncated',
      async () => {
        const disk = mountSmallDisk(48);
        const dataDir = join(disk.folder, 'data');
        const nowUs = () => Date.now() * 1_000;
        const store = await openStore({ dataDir, nowUs });
        onTestFinished(() => store.close());
        let number = 0;
        const accept = () => {
          number += 1;
          return store.accept({
            ...{ body: Buffer.from(bodyOf(number)), headers: [], subscription: 'all' },
            ...{ source: 'push' as const, receivedAtUs: nowUs() },
          });
        };
        await accept();
        const reader = new Sqlite(join(dataDir, databaseFileName), { readonly: true });
        onTestFinished(() => void reader.close());
        reader.exec('BEGIN');
        reader.prepare('SELECT count(*) FROM notification').get();
        const acceptUntilRefused = async () => {
          for (;;) await accept();
        };
        await expect(acceptUntilRefused()).rejects.toThrow('The disk is nearly full');
        // More than the reserve without the write-ahead log.
        expect(disk.freeBytes()).toBeGreaterThan(10 * mebibyte);
        reader.exec('COMMIT');
        const accepts = () => accept().then(({ outcome }) => outcome, String);
        await expect.poll(accepts, soon).toBe('stored');
      },
      60_000,
    );

    it.each([['with the default disk reserve', {}], ...(isThorough ? withoutReserve : [])])(
      '%s loses nothing when another program fills the disk to the last byte',
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

    if (!isThorough) return;

    it('gets free space by a prune to a size, in the log and in the index', async () => {
      const disk = mountSmallDisk(60);
      const context = await createReceiverContext(disk.folder);
      const { dataDir } = context;
      const kept = await fillWithProducts(dataDir, 3_000);
      disk.use(Math.floor(disk.freeBytes() / mebibyte) - 2);
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
      const { ackIds, integrity } = storedIn(dataDir);
      expect(integrity).toBe('ok');
      expect(ackIds).toEqual([...kept.slice(1 - ackIds.length), 'ack-20000']);
      disk.free();
      const products = openProducts(dataDir);
      onTestFinished(() => products.close());
      const indexed = async () => (await products.indexState()).products;
      await expect.poll(indexed, soon).toBe(ackIds.length);
    }, 120_000);
  },
);
