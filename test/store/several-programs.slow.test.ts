/** Several programs on one data directory, and changes that arrive together with notifications. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { finding, settle } from '../features/alerts/alert-findings.ts';
import { atUs, dueProducts, replayOf } from '../features/sinks/sink-items.ts';
import { doneWith, productJob } from '../features/summary/summary-jobs.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { missing, subscription } from './catalogue-events.ts';
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
});

describe('two programs that do the same at once', () => {
  it('recover each event once', async () => {
    const { both } = await openTwo();
    const events = numbers(50).map((i) => missing(i));
    const [mine = [], others = []] = await Promise.all(
      both.map(({ completeness }) => completeness.recover({ events, knownUpTo: 0, atUs })),
    );
    expect(mine.map((position, i) => position ?? others[i])).not.toContain(null);
    expect(await both[0].lastPosition()).toBe(50);
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
});
