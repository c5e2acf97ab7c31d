/** Metrics of a running receiver: each event is caused, collected and compared. */
import { expect, it } from 'vitest';
import { formatDateUs } from '../../../src/core/terms/dates.ts';
import { notification } from '../../helpers/deliveries.ts';
import { openServed } from '../../receiver/served-context.ts';

const one = (number: number) => JSON.stringify(notification(number));

it('counts requests by outcome, and the notifications in them', async () => {
  const { post, scrape, passUs, breakStore } = await openServed();
  const alps = '/notifications/alps';
  expect(await post(alps, one(1))).toBe(200);
  expect(await post(alps, JSON.stringify([notification(2), notification(3)]))).toBe(200);
  expect(await post(alps, one(1))).toBe(200);
  expect(await post('/notifications', JSON.stringify([notification(4), {}]))).toBe(400);
  expect(await post(alps, one(5), 'catalogue:wrong')).toBe(401);
  expect(await post(alps, 'x'.repeat(2 ** 20 + 1))).toBe(413);
  breakStore();
  passUs(10_000_000);
  expect(await post(alps, one(6))).toBe(503);
  const { value } = await scrape();
  const outcomes = ['stored', 'duplicate', 'rejected', 'unauthorized', 'too_large', 'unavailable'];
  const requests = [...outcomes, 'failed'].map((outcome) =>
    value('earshot_requests_total', { outcome }),
  );
  expect(requests).toEqual([2, 1, 1, 1, 1, 1, 0]);
  const counted = (subscription: string, outcome: string) =>
    value('earshot_notifications_total', { subscription, outcome });
  const states = ['stored', 'duplicate', 'rejected'];
  expect(states.map((outcome) => counted('alps', outcome))).toEqual([3, 1, 0]);
  expect(states.map((outcome) => counted('(none)', outcome))).toEqual([1, 0, 1]);
});

it('times successful commits only', async () => {
  const { post, scrape, store } = await openServed();
  for (let i = 1; i <= 3; i += 1) expect(await post('/notifications/alps', one(i))).toBe(200);
  const all = Array.from({ length: 40 }, (_, i) => post('/notifications/alps', one(100 + i)));
  expect(new Set(await Promise.all(all))).toEqual(new Set([200]));
  await store.close();
  expect(await post('/notifications/alps', one(200))).toBe(503);
  const { value } = await scrape();
  const commits = value('earshot_commit_duration_seconds_count') ?? 0;
  expect(commits).toBeGreaterThanOrEqual(4);
  expect(commits).toBeLessThanOrEqual(43);
  expect(value('earshot_commit_duration_seconds_sum')).toBeGreaterThan(0);
  expect(value('earshot_commit_deliveries_count')).toBe(commits);
  expect(value('earshot_commit_deliveries_sum')).toBe(43);
});

it('measures the delay of pushes for created products, from their publication dates', async () => {
  const { post, scrape, nowUs } = await openServed();
  const pushEvent = async (
    path: string,
    event: string,
    agoSeconds: number | null,
    number: number,
  ) => {
    const date = agoSeconds === null ? 'soon' : formatDateUs(nowUs() - agoSeconds * 1_000_000);
    const value = { Id: `product-${number}`, Name: 'S2A.SAFE', PublicationDate: date };
    const body = { ...notification(number), SubscriptionEvent: event, value };
    expect(await post(path, JSON.stringify(body))).toBe(200);
  };
  await pushEvent('/notifications/alps', 'created', 90, 1);
  await pushEvent('/notifications/alps', 'Created', 4_000, 2);
  await pushEvent('/notifications/alps', 'modified', 900_000, 3);
  await pushEvent('/notifications/alps', 'created', null, 4);
  await pushEvent('/notifications/alps', 'created', -30, 5);
  // A duplicate: its delay is not measured.
  await pushEvent('/notifications/alps', 'created', 90, 1);
  await pushEvent('/notifications', 'created', 30, 6);
  const { value } = await scrape();
  const delay = 'earshot_publication_to_receipt_seconds';
  const alps = { subscription: 'alps' };
  expect(value(`${delay}_count`, alps)).toBe(3);
  expect(value(`${delay}_bucket`, { ...alps, le: '1' })).toBe(1);
  expect(value(`${delay}_bucket`, { ...alps, le: '120' })).toBe(2);
  const sum = value(`${delay}_sum`, alps) ?? 0;
  expect(sum).toBeGreaterThan(4_089);
  expect(sum).toBeLessThan(4_120);
  expect(value(`${delay}_count`, { subscription: '(none)' })).toBe(1);
});
