import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { openStore, openStoreReader } from '../../src/store/store.ts';
import { finding, settle } from '../contract/alerts-contract.ts';
import { atUs, dead, dueProducts, postponed, queued, replayOf } from '../contract/sink-items.ts';
import { describeSinks } from '../contract/sinks-contract.ts';
import { productJob } from '../contract/summary-jobs.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { openLocalStore } from './local-store.ts';
import { openSqliteStore } from './sqlite-store.ts';

describeSinks('the store', openLocalStore);

function openFile(dataDir: string) {
  const database = new Sqlite(join(dataDir, databaseFileName));
  onTestFinished(() => void database.close());
  return database;
}

/** Commits in the write-ahead log: frames with a size of the file (SQLite, "WAL-mode file format"). */
function commitsIn(dataDir: string): number {
  const bytes = readFileSync(`${join(dataDir, databaseFileName)}-wal`);
  const pageBytes = bytes.readUInt32BE(8);
  let commits = 0;
  for (let at = 32; at < bytes.length; at += 24 + pageBytes) {
    if (bytes.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return commits;
}

const products = (count: number) => Array.from({ length: count }, (_, i) => `p-${i}`);
const read = { sink: 'act', replayId: null, after: 0, upTo: 9, items: [], atUs };

describe('changes that arrive with notifications', () => {
  it('share a commit with them', async () => {
    const { store, dataDir } = await openSqliteStore();
    const before = commitsIn(dataDir);
    const lock = openFile(dataDir);
    lock.exec('BEGIN IMMEDIATE');
    // The writer waits for the lock with what it took up; all else gathers meanwhile.
    const answers: Promise<unknown>[] = [store.accept(delivery(notification(1)))];
    await setImmediate();
    const steps = [0, 1, 2, 3].map((n) => ({ ...read, after: n, upTo: n + 1 }));
    answers.push(
      ...steps.map((one) => store.sinks.enqueue(one)),
      store.sinks.settle([]),
      settle(store.alerts, [finding()]),
      store.summaries.enqueue({ jobs: [productJob(1)], waitingMax: 9, atUs }),
      store.accept(delivery(notification(2))),
    );
    await setImmediate();
    await setImmediate();
    lock.exec('COMMIT');
    const settled = await Promise.all(answers);
    expect(settled.slice(1, 5)).toEqual([true, true, true, true]);
    // Deliveries may be taken up in two parts; changes have no commit of their own.
    expect(commitsIn(dataDir) - before).toBeLessThanOrEqual(2);
    expect(await store.cursor('sink:act')).toBe(4);
    expect(await store.alerts.untold(atUs)).toHaveLength(2);
    expect(await store.counts()).toMatchObject({ notifications: 2 });
  });

  it('are alone with a failure of their own', async () => {
    const { store } = await openSqliteStore();
    const numbers = Array.from({ length: 900 }, (_, i) => i);
    const receipts = numbers.map((n) => store.accept(delivery(notification(n))));
    await setImmediate();
    const failing = [
      store.sinks.enqueue({ ...read, atUs: Number.NaN }),
      settle(store.alerts, [finding()], { atUs: Number.NaN }),
      store.sinks.enqueue({ ...read, after: 9, upTo: 1 }),
    ];
    const kept = store.sinks.enqueue({ ...read, upTo: 5 });
    const outcomes = await Promise.allSettled(failing);
    expect(outcomes.map(({ status }) => status)).toEqual(failing.map(() => 'rejected'));
    expect(await kept).toBe(true);
    for (const receipt of await Promise.all(receipts)) expect(receipt.outcome).toBe('stored');
    expect(await store.counts()).toMatchObject({ notifications: 900 });
    expect(await store.alerts.alerts({ all: true, limit: 9 })).toEqual([]);
  });
});

describe('sinks fed by two programs', () => {
  it('get each part of the log from one of them', async () => {
    const { store, dataDir } = await openSqliteStore();
    const other = await openStore({ dataDir, nowUs: () => 0 });
    onTestFinished(() => other.close());
    const parts = [0, 1, 2, 3, 4].flatMap((n) => {
      const items = [{ position: n + 1, productId: `p-${n}` }];
      const part = { ...read, after: n, upTo: n + 1, items };
      return [store, other].map((one) => one.sinks.enqueue(part));
    });
    await Promise.all(parts);
    const cursor = (await store.cursor('sink:act')) ?? 0;
    expect(cursor).toBeGreaterThan(0);
    expect(await dueProducts(store)).toEqual(products(cursor));
  });
});

describe('the store of sinks', () => {
  it('finds what is due among 1,000 that wait, and 20,000 dead letters, in a few milliseconds', async () => {
    const { store, dataDir } = await openSqliteStore();
    const { sinks } = store;
    const waiting = await queued(store, [...products(500), ...products(500)]);
    const replay = await sinks.addReplay(replayOf(9));
    await queued(store, products(1000), { replayId: replay.id });
    openFile(dataDir).exec(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
       INSERT INTO sink_item (sink, stream, position, product_id, state, attempts, due_at_us, error,
         failure, queued_at_us) SELECT 'act', 0, 1, 'p-' || i, 'dead', 5, 1, 'No.', i, 1 FROM n`,
    );
    // The worst case: hardly anything is due.
    await sinks.settle(waiting.slice(0, 499).map((one) => postponed(one, atUs + 5)));
    const tookMs: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const before = process.cpuUsage();
      expect(await dueProducts(store, { limit: 1 })).toEqual(['p-499']);
      await sinks.nextDueAtUs('act');
      await sinks.counts();
      const { user, system } = process.cpuUsage(before);
      tookMs.push((user + system) / 1_000);
    }
    // Of all threads. The clock would tell what else the machine does.
    expect(Math.min(...tookMs)).toBeLessThan(30);
    expect(await sinks.counts()).toMatchObject([{ waiting: 2_000, dead: 20_000 }]);
    expect(await sinks.retry({ sink: 'act', ids: 'all', nowUs: atUs })).toBe(20_000);
    expect(await collect(sinks.items({ state: 'waiting' }))).toHaveLength(22_000);
    const dropped = await sinks.drop({ sink: 'act', state: 'waiting', ids: 'all', nowUs: atUs });
    expect(dropped).toBe(22_000);
    expect(await sinks.replays({ all: false })).toEqual([]);
  });

  it('adds one replay where two programs ask for the same at once', async () => {
    const { store, dataDir } = await openSqliteStore();
    const { store: second } = await openSqliteStore({ dataDir });
    const asking = [store, second, store, second].map(({ sinks }) => sinks.addReplay(replayOf(9)));
    const asked = await Promise.allSettled(asking);
    expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const refused = asked.filter((one) => one.status === 'rejected').map(({ reason }) => reason);
    expect(refused).toMatchObject(refused.map(() => ({ code: 'conflict' })));
    expect(await store.sinks.replays({ all: true })).toHaveLength(1);
  });

  it('never gives the id of an item again', async () => {
    const { store } = await openSqliteStore();
    const [first] = await queued(store, ['a']);
    if (first === undefined) throw new Error('not queued');
    await store.sinks.drop({ sink: 'act', state: 'waiting', ids: 'all', nowUs: atUs });
    const [second] = await queued(store, ['a']);
    expect(second?.id).toBeGreaterThan(first.id);
  });

  it('answers questions without a writer, and while another program holds the lock', async () => {
    const { store, dataDir } = await openSqliteStore();
    const [, b] = await queued(store, ['a', 'b']);
    if (b === undefined) throw new Error('not queued');
    await store.sinks.settle([dead(b)]);
    await store.sinks.addReplay(replayOf(9));
    await store.close();
    const reader = openStoreReader(dataDir);
    onTestFinished(() => reader.close());
    const { sinks } = reader;
    openFile(dataDir).exec('BEGIN IMMEDIATE; DELETE FROM sink_item; DELETE FROM sink_replay');
    expect(await sinks.due({ sink: 'act', nowUs: atUs, limit: 9 })).toHaveLength(1);
    expect(await sinks.nextDueAtUs('act')).toBe(atUs);
    expect(await collect(sinks.items({ state: 'dead' }))).toHaveLength(1);
    expect(await sinks.counts()).toMatchObject([{ waiting: 1, dead: 1 }]);
    expect(await sinks.replays({ all: false })).toHaveLength(1);
  });
});
