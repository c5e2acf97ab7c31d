import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { finding, settle } from '../features/alerts/alert-findings.ts';
import { atUs } from '../features/sinks/sink-items.ts';
import { productJob } from '../features/summary/summary-jobs.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { openSqliteStore } from './sqlite-store.ts';

const read = { sink: 'act', replayId: null, after: 0, upTo: 9, items: [], atUs };
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

it('changes that arrive with notifications fail without affecting them', async () => {
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
