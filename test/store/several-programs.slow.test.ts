import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { finding, settle } from '../features/alerts/alert-findings.ts';
import { atUs, dueProducts, replayOf } from '../features/sinks/sink-items.ts';
import { productJob } from '../features/summary/summary-jobs.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { openSqliteStore, openTwo } from './sqlite-store.ts';

const read = { sink: 'act', replayId: null, after: 0, upTo: 9, items: [], atUs };
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

describe('changes that arrive with notifications', () => {
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
