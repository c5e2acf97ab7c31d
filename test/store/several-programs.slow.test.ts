/** Several programs on one data directory, and changes that arrive together with notifications. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { finding, settle } from '../features/alerts/alert-findings.ts';
import { atUs, dead, dueProducts, queued, replayOf } from '../features/sinks/sink-items.ts';
import { doneWith, hourUs, productJob } from '../features/summary/summary-jobs.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { missing, atUs as recoveredUs, subscription } from './catalogue-events.ts';
import { openFile, openReader, openSqliteStore, openTwo } from './sqlite-store.ts';

const gap = {
  ...{ subscription, events: ['created'], filter: '', fromUs: 5, reason: 'It was paused.' },
} as const;
const read = { sink: 'act', replayId: null, after: 0, upTo: 9, items: [], atUs };
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

/**
 * Commits in the write-ahead log: frames with a size of the file (SQLite, "WAL-mode file format").
 */
function commitsIn(dataDir: string): number {
  const bytes = readFileSync(`${join(dataDir, databaseFileName)}-wal`);
  const pageBytes = bytes.readUInt32BE(8);
  let commits = 0;
  for (let at = 32; at < bytes.length; at += 24 + pageBytes) {
    if (bytes.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return commits;
}

describe('changes that arrive with notifications', () => {
  it('share their commit', async () => {
    const { store, dataDir } = await openSqliteStore();
    const before = commitsIn(dataDir);
    const lock = openFile(dataDir);
    lock.exec('BEGIN IMMEDIATE');
    // The writer waits for the lock with its first operations; later ones queue up.
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
    // Deliveries may be split over two commits; changes have no commit of their own.
    expect(commitsIn(dataDir) - before).toBeLessThanOrEqual(2);
    expect(await store.cursor('sink:act')).toBe(4);
    expect(await store.alerts.unsentDeliveries(atUs)).toHaveLength(2);
    expect(await store.counts()).toMatchObject({ notifications: 2 });
  });

  it('fail without affecting them', async () => {
    const { store } = await openSqliteStore();
    const { sinks, summaries, alerts } = store;
    // More than fits in one transaction.
    const receipts = numbers(900).map((n) => store.accept(delivery(notification(n))));
    await setImmediate();
    const failing = [
      sinks.enqueue({ ...read, atUs: Number.NaN }),
      settle(alerts, [finding()], { atUs: Number.NaN }),
      sinks.enqueue({ ...read, after: 9, upTo: 1 }),
      summaries.beginRequest({ atUs: Number.NaN, tokens: 1 }),
    ];
    const kept = sinks.enqueue({ ...read, upTo: 5 });
    const requested = summaries.enqueue({ jobs: [productJob(2)], waitingMax: 9, atUs });
    const outcomes = await Promise.allSettled(failing);
    expect(outcomes.map(({ status }) => status)).toEqual(failing.map(() => 'rejected'));
    expect(outcomes[3]).toMatchObject({ reason: { code: 'internal' } });
    expect(await kept).toBe(true);
    expect((await requested).ids).toHaveLength(1);
    for (const receipt of await Promise.all(receipts)) {
      expect(receipt).toEqual({ outcome: 'stored', stored: 1, duplicates: 0 });
    }
    expect(await collect(store.find({}))).toHaveLength(900);
    expect(await alerts.alerts({ all: true, limit: 9 })).toEqual([]);
    expect(await summaries.waiting()).toMatchObject({ waiting: 1 });
  });

  it('of every kind do not block notifications', async () => {
    const { store } = await openSqliteStore();
    const mark = { subscription, username: 'catalogue' };
    const outcomes = await Promise.all(
      numbers(100).map(async (n) => {
        const receipt = store.accept(delivery(notification(n)));
        const [item] = await queued(store, [`p-${n}`], { sink: `sink-${n}` });
        if (item !== undefined)
          await store.sinks.settle([{ id: item.id, outcome: 'acknowledged' }]);
        await store.summaries.enqueue({ jobs: [productJob(n)], waitingMax: 100, atUs });
        await store.summaries.beginRequest({ atUs, tokens: 1 });
        await store.administration.commit({ openGap: { ...gap, subscription: `alps-${n}` } });
        await store.administration.markDeliveries([{ ...mark, lastAtUs: n }]);
        return (await receipt).outcome;
      }),
    );
    expect(outcomes).toEqual(outcomes.map(() => 'stored'));
    expect(await store.counts()).toMatchObject({ notifications: 100 });
    expect(await store.cursor('sink:sink-99')).toBe(1);
    expect(await store.summaries.waiting()).toMatchObject({ waiting: 100 });
    expect(await store.summaries.spending(atUs)).toMatchObject({ requests: 100 });
    expect(await store.administration.gaps()).toHaveLength(100);
    expect(await store.administration.deliveryMarks()).toMatchObject([{ lastAtUs: 99 }]);
  });
});

describe('two programs that do the same at once', () => {
  it('open one gap', async () => {
    const { both } = await openTwo();
    const opened = numbers(20).flatMap((fromUs) =>
      both.map((one) => one.administration.commit({ openGap: { ...gap, fromUs } })),
    );
    await Promise.all(opened);
    expect(await both[0].administration.gaps()).toHaveLength(1);
  });

  it('raise an alert once', async () => {
    const { both } = await openTwo();
    const changes = await Promise.all(
      [...both, ...both].map((one) => settle(one.alerts, [finding()])),
    );
    expect(changes.flatMap(({ raised }) => raised)).toHaveLength(1);
    expect(await both[1].alerts.unsentDeliveries(atUs)).toHaveLength(2);
  });

  it('recover each event once, and get the same run', async () => {
    const { both } = await openTwo();
    const events = numbers(50).map((i) => missing(i));
    const [mine = [], others = []] = await Promise.all(
      both.map(({ completeness }) => completeness.recover({ events, knownUpTo: 0, atUs })),
    );
    expect(mine.map((position, i) => position ?? others[i])).not.toContain(null);
    expect(await both[0].lastPosition()).toBe(50);
    const runs = await Promise.all(
      both.map(({ completeness }, i) => completeness.beginRun({ request: 'a', atUs: atUs + i })),
    );
    expect(runs[0]).toEqual(runs[1]);
  });

  it('queue each part of the log for a sink once, and add one replay', async () => {
    const { both } = await openTwo();
    const [store] = both;
    const parts = numbers(5).flatMap((n) => {
      const items = [{ position: n + 1, productId: `p-${n}` }];
      return both.map(({ sinks }) => sinks.enqueue({ ...read, after: n, upTo: n + 1, items }));
    });
    await Promise.all(parts);
    const cursor = (await store.cursor('sink:act')) ?? 0;
    expect(cursor).toBeGreaterThan(0);
    expect(await dueProducts(store)).toEqual(numbers(cursor).map((i) => `p-${i}`));
    const asking = [...both, ...both].map(({ sinks }) => sinks.addReplay(replayOf(9)));
    const asked = await Promise.allSettled(asking);
    expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const refused = asked.filter((one) => one.status === 'rejected').map(({ reason }) => reason);
    expect(refused).toMatchObject(refused.map(() => ({ code: 'conflict' })));
    expect(await store.sinks.replays({ all: true })).toHaveLength(1);
  });
});

describe('a reader', () => {
  it('sees what another program has just committed', async () => {
    const { store, dataDir } = await openSqliteStore();
    const reader = openReader(dataDir);
    expect(await reader.administration.gaps()).toEqual([]);
    await store.administration.commit({ openGap: gap });
    expect(await reader.administration.gaps()).toMatchObject([gap]);
    const cursor = { reader: 'summaries', position: 5 };
    const due = { nowUs: atUs, digestsUntilUs: atUs, limit: 1 };
    await store.summaries.enqueue({ jobs: [productJob(1)], cursor, waitingMax: 9, atUs });
    const [job] = await reader.summaries.due(due);
    if (job === undefined) throw new Error('no job');
    const result = doneWith('A text.');
    await store.summaries.settle({ job, result });
    expect(await reader.cursor('summaries')).toBe(5);
    const texts = new Map([['product-1', result.text]]);
    expect(await reader.summaries.textsOf(['product-1'])).toEqual(texts);
  });

  it('answers every query without a writer, and while another program holds the lock', async () => {
    const { store, dataDir } = await openSqliteStore();
    await store.administration.commit({ openGap: gap });
    await settle(store.alerts, [finding()]);
    await store.completeness.recordUptime({ fromUs: 1, toUs: 2 });
    const recover = { events: [missing(1)], knownUpTo: 0, atUs: recoveredUs };
    await store.completeness.recover(recover);
    await store.accept(delivery(notification(2), { receivedAtUs: recoveredUs }));
    const [, second] = await queued(store, ['a', 'b']);
    if (second === undefined) throw new Error('not queued');
    await store.sinks.settle([dead(second)]);
    await store.sinks.addReplay(replayOf(9));
    const jobs = [productJob(1), productJob(2)];
    await store.summaries.enqueue({ jobs, waitingMax: 9, atUs });
    await store.close();
    const { administration, alerts, completeness, sinks, summaries } = openReader(dataDir);
    const tables = [
      ...['gap', 'alert', 'alert_delivery', 'uptime', 'notification'],
      ...['sink_item', 'sink_replay', 'summary'],
    ];
    const removal = tables.map((table) => `DELETE FROM ${table}`).join('; ');
    openFile(dataDir).exec(`BEGIN IMMEDIATE; ${removal}`);
    expect(await administration.gaps()).toMatchObject([gap]);
    expect(await administration.registrations()).toEqual([]);
    expect(await administration.history({ limit: 1 })).toEqual([]);
    expect(await administration.deliveryMarks()).toEqual([]);
    expect(await alerts.alerts({ all: false, limit: 9 })).toHaveLength(1);
    expect(await alerts.alerts({ all: true, limit: 9 })).toHaveLength(1);
    expect(await alerts.dueDeliveries({ nowUs: atUs, limit: 9 })).toHaveLength(2);
    expect(await alerts.unsentDeliveries(atUs)).toHaveLength(2);
    const window = { sinceUs: recoveredUs, untilUs: recoveredUs + hourUs };
    expect(await completeness.uptimes(0)).toHaveLength(1);
    const productIds = ['product-1'];
    expect(await completeness.recoveredEvents({ subscription, productIds })).toHaveLength(1);
    expect(await completeness.arrivals(window)).toHaveLength(1);
    expect(await completeness.coverage(window)).toEqual([]);
    expect(await completeness.definitions()).toEqual([]);
    expect(await sinks.due({ sink: 'act', nowUs: atUs, limit: 9 })).toHaveLength(1);
    expect(await sinks.nextDueAtUs('act')).toBe(atUs);
    expect(await collect(sinks.items({ state: 'dead' }))).toHaveLength(1);
    expect(await sinks.counts()).toMatchObject([{ waiting: 1, dead: 1 }]);
    expect(await sinks.replays({ all: false })).toHaveLength(1);
    expect(await summaries.waiting()).toEqual({ waiting: 2, dueAtUs: atUs });
    const due = { nowUs: atUs, digestsUntilUs: atUs, limit: 9 };
    expect(await summaries.due(due)).toHaveLength(2);
    expect(await summaries.spending(atUs)).toMatchObject({ requests: 0 });
    expect(await summaries.refusedAnswer()).toBeNull();
    expect(await collect(summaries.find({ limit: 1 }))).toHaveLength(1);
  });
});
