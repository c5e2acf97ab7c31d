/** The disk reserve: writes that add data are refused in time, writes that finish work are not. */

import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { catchUpIndex } from '../../src/features/products/index-file/index-maintenance.ts';
import { pruneLog } from '../../src/features/pruning/job.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { defaultReserveBytes, diskSpace } from '../../src/store/engine/disk-limit.ts';
import { fillWithProducts } from '../e2e/disk-context.ts';
import { canMount, mountSmallDisk } from '../e2e/disk-small.ts';
import { removeIndex } from '../features/products/index-file/product-context.ts';
import { delivery, notification } from '../helpers/deliveries.ts';
import { expectRefused } from '../helpers/refusals.ts';
import { openSqliteStore } from './sqlite-store.ts';

const mebibyte = 2 ** 20;
const atUs = 1_795_000_000_000_000;

/** An incompressible body of realistic size. */
const large = (number: number) =>
  delivery(notification(number, { padding: randomBytes(6_000).toString('base64') }));

const walOf = (dataDir: string) => join(dataDir, `${databaseFileName}-wal`);

it('the disk reserve is 256 MiB or the configured size, plus the size of the write-ahead log', async () => {
  const { store, dataDir } = await openSqliteStore();
  await store.accept(large(1));
  const walBytes = statSync(walOf(dataDir)).size;
  expect(walBytes).toBeGreaterThan(0);
  const usual = diskSpace({ dataDir });
  const usualBytes = Math.min(256 * mebibyte, Math.floor((usual?.totalBytes ?? 0) / 20));
  expect(usual?.reserveBytes).toBe(usualBytes + walBytes);
  const set = diskSpace({ dataDir, diskReserveBytes: 5 * mebibyte });
  expect(set?.reserveBytes).toBe(5 * mebibyte + walBytes);
  expect(diskSpace({ dataDir, diskReserveBytes: 0 })?.reserveBytes).toBe(0);
});

describe('without free space', () => {
  const full = { diskReserveBytes: 2 ** 60 };

  /** A store with one record of each kind, reopened without free space. */
  async function openFull() {
    const { store, dataDir } = await openSqliteStore();
    await store.accept(large(1));
    await store.accept(delivery('no notification'));
    const after = { sink: 'hook', replayId: null, after: 0, upTo: 1 };
    await store.sinks.enqueue({ ...after, items: [{ position: 1, productId: 'p' }], atUs });
    await store.close();
    return (await openSqliteStore({ dataDir, ...full })).store;
  }

  it('refuses new work: sink items, replays, jobs, requests, recovered events', async () => {
    const { sinks, summaries, completeness, retry, ...store } = await openFull();
    await expectRefused(store.accept(large(2)), 'unavailable');
    await expect(store.checkWritable()).rejects.toThrow('EARSHOT_DISK_RESERVE');
    const refused = { code: 'unavailable', message: expect.stringContaining('nearly full') };
    const item = { sink: 'hook', replayId: null, after: 1, upTo: 1, items: [], atUs };
    await expect(sinks.enqueue(item)).rejects.toMatchObject(refused);
    const bounds = { sinceUs: null, untilUs: null, afterPosition: 0, lastPosition: 1 };
    const replay = { sink: 'hook', filter: '', ...bounds, requestedAtUs: atUs };
    await expect(sinks.addReplay(replay)).rejects.toMatchObject(refused);
    const jobs = { jobs: [], waitingMax: 1, atUs };
    await expect(summaries.enqueue(jobs)).rejects.toMatchObject(refused);
    await expect(summaries.beginRequest({ atUs, tokens: 1 })).rejects.toMatchObject(refused);
    const events = { events: [], knownUpTo: 0, atUs };
    await expect(completeness.recover(events)).rejects.toMatchObject(refused);
    await expect(retry(1)).rejects.toMatchObject(refused);
  });

  it('accepts the end of work: cursors, items, marks, alerts, and the close of the store', async () => {
    const store = await openFull();
    const { sinks, completeness, administration, alerts } = store;
    await store.moveCursor('reader', 1, atUs);
    expect(await store.cursor('reader')).toBe(1);
    const due = () => sinks.due({ sink: 'hook', nowUs: atUs, limit: 1 });
    const [item] = await due();
    await sinks.settle([{ id: item?.id ?? 0, outcome: 'acknowledged' }], 1);
    expect(await due()).toEqual([]);
    await administration.markDeliveries([{ subscription: 'all', username: 'u', lastAtUs: atUs }]);
    const finding = {
      kind: 'disk',
      subject: '',
      level: 'critical',
      text: 'It is full.',
    } as const;
    const findings = [{ ...finding, evidence: [], nextStep: 'Free some.' }];
    const settled = await alerts.settleFindings({
      checked: [finding],
      findings,
      channels: [],
      atUs,
    });
    expect(settled.raised).toHaveLength(1);
    // Intake is down: notifications that arrive now will be missing.
    await expect(completeness.recordUptime({ fromUs: 0, toUs: 1 })).rejects.toThrow('nearly full');
    await store.close();
  });
});

describe.skipIf(!canMount)('a small disk (needs root to mount one)', () => {
  it('keeps most of its reserve while finished work is stored, and is pruned', async () => {
    const disk = mountSmallDisk(64);
    const dataDir = join(disk.folder, 'data');
    await fillWithProducts(dataDir, 3_000);
    const reserveBytes = defaultReserveBytes(dataDir) ?? 0;
    disk.use(Math.ceil((disk.freeBytes() - reserveBytes) / mebibyte));
    const { store } = await openSqliteStore({ dataDir });
    await expectRefused(store.accept(large(1)), 'unavailable');
    // More than a write-ahead log of the usual size, 8 MB.
    for (let i = 1; i <= 1_500; i += 1) await store.moveCursor('reader', 3_000, atUs + i);
    expect(disk.freeBytes()).toBeGreaterThan(5 * mebibyte);
    const keep = { ageUs: null, bytes: mebibyte };
    const request = { keep, withQuarantined: false, freeShare: 0, nowUs: atUs };
    const { signal } = new AbortController();
    await pruneLog(request, { pruning: store.pruning, pause: async () => {}, signal });
    expect(await store.accept(large(1))).toMatchObject({ outcome: 'stored' });
  });

  it('keeps its reserve while an index is built, which pauses in time', async () => {
    const disk = mountSmallDisk(60);
    const dataDir = join(disk.folder, 'data');
    await fillWithProducts(dataDir, 3_000);
    removeIndex(dataDir);
    const place = { dataDir, diskReserveBytes: mebibyte };
    disk.use(Math.floor(disk.freeBytes() / mebibyte) - 4);
    let leastBytes = disk.freeBytes();
    const watching = setInterval(() => {
      leastBytes = Math.min(leastBytes, disk.freeBytes());
    });
    onTestFinished(() => clearInterval(watching));
    await expect(catchUpIndex(place)).rejects.toThrow(/^Indexing is paused/);
    expect(leastBytes).toBeGreaterThanOrEqual(mebibyte);
    disk.free();
    expect(await catchUpIndex(place)).toMatchObject({ indexedPosition: 3_000 });
  });
});
