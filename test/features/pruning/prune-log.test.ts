/** Rows and space that pruning removes, what it records, and its effect on the quarantine. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { pruneLog } from '../../../src/features/pruning/job.ts';
import type { Store } from '../../../src/store/store.ts';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import { openSqliteStore } from '../../store/sqlite-store.ts';
import { digestJob, doneWith, productJob } from '../summary/summary-jobs.ts';
import { prune, pruneBefore, pruneRequest } from './prune-to.ts';

const beginUs = 1_795_000_000_000_000;
const at = (second: number) => beginUs + second * 1_000_000;

/** Incompressible text. */
const noise = (bytes: number) =>
  Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('base64');

async function fill({ accept }: Store, seconds: readonly number[], paddingBytes = 0) {
  const receipts = seconds.map((second) => {
    const body = notification(second, { Padding: noise(paddingBytes) });
    return accept(delivery(body, { receivedAtUs: at(second) }));
  });
  await Promise.all(receipts);
}

const seconds = (count: number) => Array.from({ length: count }, (_, i) => i);

async function ackIds({ find }: Store) {
  return (await collect(find({ order: 'oldest' }))).map(({ ackId }) => ackId);
}

describe('pruning by age', () => {
  it('removes exactly the older notifications, and records the horizon', async () => {
    const { store } = await openSqliteStore();
    await fill(store, seconds(50));
    expect(await store.pruning.pruneHorizon()).toBeNull();
    const request = pruneRequest({ ageUs: 10_000_000 }, { nowUs: at(40) });
    expect(await store.pruning.prunable(request)).toMatchObject({
      ...{ notifications: 30, fromUs: at(0), untilUs: at(30), heldBy: [] },
    });
    expect(await prune(store, request)).toMatchObject({ notifications: 30 });
    expect(await store.pruning.pruneHorizon()).toEqual({
      ...{ position: 30, receivedBeforeUs: at(29) + 1, prunedAtUs: at(40) },
    });
    expect(await store.pruning.logSize()).toMatchObject({
      ...{ firstPosition: 31, lastPosition: 50, firstReceivedAtUs: at(30) },
    });
    expect(await prune(store, request)).toMatchObject({ notifications: 0, space: 0 });
  });

  it('keeps the newest notification, so that positions continue, and everything from the first one to keep', async () => {
    const { store } = await openSqliteStore();
    // The older ones of the second group were imported.
    for (const group of [[5, 6], [20], [1, 2], [30]]) await fill(store, group);
    expect(await pruneBefore(store, at(10))).toMatchObject({ notifications: 2 });
    expect(await ackIds(store)).toEqual(['ack-20', 'ack-1', 'ack-2', 'ack-30']);
    expect(await pruneBefore(store, at(99))).toMatchObject({ notifications: 3 });
    expect(await store.lastPosition()).toBe(6);
    await fill(store, [40]);
    expect(await store.lastPosition()).toBe(7);
    const { store: empty } = await openSqliteStore();
    expect(await pruneBefore(empty, at(99))).toMatchObject({ notifications: 0 });
  });

  it('stores a pruned notification again when it is pushed again', async () => {
    const { store } = await openSqliteStore();
    await fill(store, seconds(5));
    await pruneBefore(store, at(3));
    const again = (second: number) =>
      store.accept(delivery(notification(second, { Padding: '' }), { receivedAtUs: at(60) }));
    expect(await again(4)).toEqual({ outcome: 'duplicate', duplicates: 1 });
    expect(await again(1)).toEqual({ outcome: 'stored', stored: 1, duplicates: 0 });
    expect(await ackIds(store)).toEqual(['ack-3', 'ack-4', 'ack-1']);
    expect(await again(1)).toEqual({ outcome: 'duplicate', duplicates: 1 });
  });
});

const mb = 1_000_000;

it('pruning to a size removes the oldest until the size is reached, and shrinks the file to it', async () => {
  const { store, dataDir } = await openSqliteStore();
  const fileBytes = () =>
    ['', '-wal'].reduce((sum, end) => sum + statSync(join(dataDir, `earshot.db${end}`)).size, 0);
  await fill(store, seconds(2_000), 3_000);
  const request = pruneRequest({ bytes: 4 * mb }, { nowUs: at(2_000) });
  const { notifications: expected } = await store.pruning.prunable(request);
  const before = await store.pruning.logSize();
  const { notifications, space } = await prune(store, request);
  // The size is checked after every 200 rows.
  expect(Math.abs(notifications - expected)).toBeLessThan(200 + 0.05 * expected);
  const { usedBytes } = await store.pruning.logSize();
  expect(usedBytes).toBeLessThanOrEqual(4 * mb);
  expect(usedBytes).toBeGreaterThan(3.2 * mb);
  expect(fileBytes()).toBe(usedBytes);
  expect(space).toBe(before.usedBytes + before.freeBytes - usedBytes);
});

it('removes summaries of pruned products, also waiting ones, and keeps digests', async () => {
  const { store } = await openSqliteStore();
  await fill(store, seconds(10));
  const jobs = [productJob(2), productJob(3), productJob(8), digestJob(4)];
  const { ids } = await store.summaries.enqueue({ jobs, waitingMax: 99, atUs: at(3) });
  const job = { id: ids[0] ?? 0, revision: 1 };
  await store.summaries.settle({ job, result: doneWith('A text.') });
  expect(await pruneBefore(store, at(5))).toMatchObject({ summaries: 2 });
  const left = await collect(store.summaries.find({}));
  expect(left.map(({ id }) => id)).toEqual([ids[3], ids[2]]);
});

it('waits for open readers of older data, so that the write-ahead log stays small', async () => {
  const { store, dataDir } = await openSqliteStore();
  await fill(store, seconds(1_000), 3_000);
  const reader = new Sqlite(join(dataDir, 'earshot.db'), { readonly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM notification').get();
  let waits = 0;
  let walBytesWhileRead = 0;
  const pruned = await pruneLog(pruneRequest({ ageUs: 0 }, { nowUs: at(1_000) }), {
    pruning: store.pruning,
    pause: async (ms) => {
      if (ms < 1_000) return;
      waits += 1;
      if (waits !== 3) return;
      walBytesWhileRead = (await store.pruning.logSize()).walBytes;
      reader.exec('COMMIT');
    },
    signal: new AbortController().signal,
    walBytesMax: 500_000,
  });
  reader.close();
  expect(waits).toBeGreaterThanOrEqual(3);
  // One step more at most.
  expect(walBytesWhileRead).toBeLessThan(10 * 1_000_000);
  expect(pruned).toMatchObject({ notifications: 999 });
  expect(await store.pruning.logSize()).toMatchObject({ walBytes: 0, freeBytes: 0 });
});

it('stops after the current step when aborted, and resumes there', async () => {
  const { store } = await openSqliteStore();
  await fill(store, seconds(300));
  const stopping = new AbortController();
  const request = pruneRequest({ ageUs: 0 }, { nowUs: at(300) });
  const phases: string[] = [];
  const first = await pruneLog(request, {
    pruning: store.pruning,
    pause: async () => stopping.abort(),
    signal: stopping.signal,
    onStep: (phase) => phases.push(phase),
  });
  expect(phases).toEqual(['notifications']);
  expect(first.space).toBe(0);
  const second = await prune(store, request);
  expect(first.notifications + second.notifications).toBe(299);
  expect(second.space).toBeGreaterThan(0);
});

it('keeps quarantined bodies by default', async () => {
  const { store } = await openSqliteStore();
  const bodies = [
    notification(0),
    notification(1),
    '{"unreadable": ',
    notification(3),
    '{"later": ',
  ];
  for (const [second, body] of bodies.entries()) {
    await store.accept(delivery(body, { receivedAtUs: at(second) }));
  }
  const entries = async () =>
    (await collect(store.quarantined({}))).map(({ receivedAtUs }) => receivedAtUs);
  expect(await pruneBefore(store, at(3))).toMatchObject({ notifications: 2, quarantine: 0 });
  expect(await entries()).toEqual([at(4), at(2)]);
  const request = pruneRequest({ ageUs: 0 }, { nowUs: at(3), withQuarantined: true });
  expect(await store.pruning.prunable(request)).toMatchObject({ notifications: 0, quarantined: 1 });
  expect(await prune(store, request)).toMatchObject({ notifications: 0, quarantine: 1 });
  expect(await entries()).toEqual([at(4)]);
});
