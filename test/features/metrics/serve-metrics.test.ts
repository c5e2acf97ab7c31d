/** Metrics of a running receiver: each event is caused, collected and compared. */
import { describe, expect, it } from 'vitest';
import { formatDateUs } from '../../../src/core/terms/dates.ts';
import { sinkReader } from '../../../src/features/sinks/terms.ts';
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
  const requests = (outcome: string) => value('earshot_requests_total', { outcome });
  expect(requests('stored')).toBe(2);
  expect(requests('duplicate')).toBe(1);
  expect(requests('rejected')).toBe(1);
  expect(requests('unauthorized')).toBe(1);
  expect(requests('too_large')).toBe(1);
  expect(requests('unavailable')).toBe(1);
  expect(requests('failed')).toBe(0);
  const counted = (subscription: string, outcome: string) =>
    value('earshot_notifications_total', { subscription, outcome });
  expect(counted('alps', 'stored')).toBe(3);
  expect(counted('alps', 'duplicate')).toBe(1);
  expect(counted('alps', 'rejected')).toBe(0);
  expect(counted('(none)', 'stored')).toBe(1);
  expect(counted('(none)', 'rejected')).toBe(1);
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
  const seconds = value('earshot_commit_duration_seconds_sum') ?? 0;
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThan(60);
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

/** Opens a receiver whose status is gathered again for each scrape. */
async function open() {
  const context = await openServed({ index: true });
  const scrape = () => {
    context.passUs(6_000_000);
    return context.scrape();
  };
  const push = async (...bodies: unknown[]) => {
    for (const body of bodies) await context.post('/notifications/alps', JSON.stringify(body));
  };
  const seconds = () => context.nowUs() / 1_000_000;
  return { ...context, scrape, push, seconds };
}

/** Compares with a tolerance of 30 seconds. */
const near = (expected: number, value: number | undefined) => {
  expect(Math.abs((value ?? Number.NaN) - expected)).toBeLessThan(30);
};

describe('a running receiver', () => {
  it('exports its log, its index, its quarantine, its readers and its disk', async () => {
    const { scrape, push, seconds, store } = await open();
    const before = await scrape();
    expect(before.value('earshot_last_notification_timestamp_seconds')).toBeUndefined();
    expect(before.value('earshot_log_first_received_timestamp_seconds')).toBeUndefined();
    expect(before.value('earshot_log_last_position')).toBe(0);
    expect(before.value('earshot_quarantined_bodies')).toBe(0);
    await store.moveCursor(sinkReader('orders'), 0, 1);
    await push(...Array.from({ length: 20 }, (_, i) => notification(i)), {});
    const { value } = await scrape();
    near(seconds(), value('earshot_last_notification_timestamp_seconds'));
    near(seconds(), value('earshot_log_first_received_timestamp_seconds'));
    expect(value('earshot_log_last_position')).toBe(20);
    expect(value('earshot_quarantined_bodies')).toBe(1);
    expect(value('earshot_log_used_bytes')).toBeGreaterThan(4_096);
    expect(value('earshot_log_free_bytes')).toBeGreaterThanOrEqual(0);
    expect(value('earshot_log_wal_bytes')).toBeGreaterThan(
      before.value('earshot_log_wal_bytes') ?? 0,
    );
    const reader = { reader: 'sink orders', kind: 'sinks' };
    expect(value('earshot_reader_behind_notifications', reader)).toBe(20);
    near(7, value('earshot_reader_behind_seconds', reader));
    const index = { reader: 'product index', kind: 'products' };
    const indexed = async () =>
      (await scrape()).value('earshot_reader_behind_notifications', index);
    await expect.poll(indexed, { timeout: 10_000 }).toBe(0);
    expect((await scrape()).value('earshot_index_bytes')).toBeGreaterThan(4_096);
    const free = value('earshot_disk_free_bytes') ?? 0;
    expect(free).toBeGreaterThan(0);
    expect(value('earshot_disk_size_bytes')).toBeGreaterThan(free);
    expect(value('earshot_disk_reserve_bytes')).toBeGreaterThanOrEqual(0);
  });
});
