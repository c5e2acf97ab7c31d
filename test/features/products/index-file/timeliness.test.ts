/** The delays of each stage by hour of receipt, and by collection. */
import { describe, expect, it } from 'vitest';
import { formatDateUs } from '../../../../src/core/terms/dates.ts';
import { hourUs } from '../../../../src/core/terms/time-units.ts';
import { type DelayStage, delayStages } from '../../../../src/filter/products.ts';
import { openProductContext, type TestEvent } from './product-context.ts';

const startUs = Date.UTC(2026, 0, 1) * 1000;
const atUs = (second: number) => startUs + second * 1_000_000;
const at = (second: number) => formatDateUs(atUs(second));
/** A percentile, up to 1 % above the exact one. */
const within = (ms: number) =>
  expect.closeTo(ms + 0.005 * Math.abs(ms), -Math.log10(0.0102 * Math.abs(ms)));

const always = { sinceUs: 0, untilUs: Number.MAX_SAFE_INTEGER };

const names = {
  'SENTINEL-1': 'S1A_IW_GRDH_1SDV_20260101T000000_20260101T000025_062000_07C000_0000.SAFE',
  'SENTINEL-2': 'S2B_MSIL2A_20260101T000000_N0511_R008_T32TPS_20260101T020000.SAFE',
  unknown: 'a-name-of-no-mission',
};

interface Seconds {
  sensed?: number;
  published?: number;
  notified?: number | null;
  received: number;
}

let ids = 0;

/** An event of a product with these times, in seconds. */
function eventAt(
  { sensed = 0, published = 100, notified = 140, received }: Seconds,
  changes: Partial<TestEvent> & { name?: keyof typeof names } = {},
): TestEvent {
  const { name = 'SENTINEL-2', event = 'created', ...more } = changes;
  ids += 1;
  return {
    event,
    record: {
      Id: `00000000-0000-4000-8000-${String(ids).padStart(12, '0')}`,
      Name: names[name],
      ContentDate: { Start: at(sensed - 10), End: at(sensed) },
      PublicationDate: at(published),
      ModificationDate: at(published),
    },
    notificationDate: notified === null ? null : at(notified),
    receivedAtUs: atUs(received),
    ...more,
  };
}

async function timelinessOf(events: TestEvent[], query: { collection?: string } = {}) {
  const { index, products } = await openProductContext();
  await index(...events);
  return products.timeliness({ ...always, ...query });
}

/** Counts of the stages, in their order. */
const countsOf = (delays: Record<DelayStage, { count: number } | null>) =>
  delayStages.map((stage) => delays[stage]?.count ?? 0);

describe('the timeliness', () => {
  it('has percentiles of each stage for each hour of receipt, and for the whole period', async () => {
    const { hours, total } = await timelinessOf([
      eventAt({ sensed: 0, published: 100, notified: 140, received: 150 }),
      eventAt({ sensed: 0, published: 300, notified: 320, received: 350 }),
      // Received at the first microsecond of the third hour.
      eventAt({ sensed: 0, published: 7_000, notified: 7_100, received: 7_200 }),
    ]);
    expect(hours.map((hour) => [(hour.hourUs - startUs) / hourUs, ...countsOf(hour)])).toEqual([
      [0, 2, 2, 2],
      [2, 1, 1, 1],
    ]);
    expect(hours[0]).toMatchObject({
      sensingToPublication: { count: 2, p50Ms: within(100_000), p90Ms: 300_000, maxMs: 300_000 },
      publicationToNotification: { p50Ms: within(20_000), p99Ms: 40_000 },
      notificationToReceipt: { p50Ms: within(10_000), maxMs: 30_000 },
    });
    expect(total).toMatchObject({
      sensingToPublication: { count: 3, p50Ms: within(300_000), maxMs: 7_000_000 },
      publicationToNotification: { count: 3, p50Ms: within(40_000), maxMs: 100_000 },
      notificationToReceipt: { count: 3, p50Ms: within(30_000), maxMs: 100_000 },
    });
  });

  it('has delays over all stages, which are not the sums of the percentiles', async () => {
    const { total } = await timelinessOf([
      eventAt({ sensed: 0, published: 100, notified: 900, received: 1_000 }),
      eventAt({ sensed: 0, published: 700, notified: 710, received: 720 }),
      eventAt({ sensed: 0, published: 300, notified: 320, received: 8_000 }),
      eventAt({ published: 100, received: 150 }, { event: 'modified' }),
      eventAt({ published: 100, notified: null, received: 9_000 }, { source: 'reconcile' }),
    ]);
    expect(total).toMatchObject({
      sensingToReceipt: { count: 3, p50Ms: within(1_000_000), p90Ms: 8_000_000, maxMs: 8_000_000 },
      publicationToReceipt: { count: 3, p50Ms: within(900_000), p99Ms: 7_700_000 },
    });
  });

  it('has the nearest rank of many delays in many hours, within 1 %', async () => {
    const seconds = Array.from({ length: 200 }, (_, i) => ((i * 7_919) % 200) + 1);
    const { total, collections } = await timelinessOf(
      seconds.map((delay, i) =>
        eventAt(
          { notified: i * 900, received: i * 900 + delay },
          i % 3 === 0 ? { name: 'SENTINEL-1' } : {},
        ),
      ),
    );
    const found = total.notificationToReceipt;
    expect(found).toMatchObject({ count: 200, negative: 0, maxMs: 200_000 });
    for (const [shown, exact] of [
      [found?.p50Ms, 100_000],
      [found?.p90Ms, 180_000],
      [found?.p99Ms, 198_000],
    ] as const) {
      expect(Math.abs((shown ?? 0) - exact)).toBeLessThanOrEqual(0.01 * exact);
    }
    const counts = collections.map((one) => one.notificationToReceipt?.count);
    expect(counts).toEqual([67, 133]);
  });

  it('keeps and counts negative delays', async () => {
    const { total, collections } = await timelinessOf([
      eventAt({ sensed: 110, published: 100, notified: 90, received: 88.5 }),
      eventAt({ sensed: 0, published: 100, notified: 100, received: 100 }),
    ]);
    expect(total.notificationToReceipt).toMatchObject({
      count: 2,
      p50Ms: within(-1_500),
      maxMs: 0,
    });
    expect(total.sensingToPublication).toMatchObject({ p50Ms: within(-10_000) });
    expect(delayStages.map((stage) => collections[0]?.[stage]?.negative)).toEqual([1, 1, 1]);
  });

  it('excludes from each stage the events without its dates', async () => {
    const times = { published: 100, notified: 140, received: 150 };
    const { total } = await timelinessOf([
      eventAt(times),
      eventAt(times, { event: 'modified' }),
      eventAt(times, { event: 'deleted' }),
      // Recovered: without a NotificationDate.
      eventAt({ ...times, notified: null }, { source: 'reconcile' }),
    ]);
    expect(countsOf(total)).toEqual([2, 1, 3]);
  });

  it('limits the hours and the total to a collection, and still lists all collections', async () => {
    const { hours, total, collections } = await timelinessOf(
      [
        eventAt({ notified: 140, received: 150 }, { name: 'SENTINEL-1' }),
        eventAt({ notified: 140, received: 4_000 }),
        eventAt({ notified: 140, received: 4_001 }, { name: 'unknown' }),
      ],
      { collection: 'SENTINEL-2' },
    );
    expect(hours.map((hour) => hour.hourUs)).toEqual([startUs + hourUs]);
    expect(total.notificationToReceipt).toMatchObject({ count: 1, maxMs: 3_860_000 });
    expect(collections.map(({ collection }) => collection)).toEqual([
      null,
      'SENTINEL-1',
      'SENTINEL-2',
    ]);
  });

  it('covers a subscription and a period: the start belongs to it, the end does not', async () => {
    const events = [10, 20, 30].map((second) => eventAt({ notified: 5, received: second }));
    events.push(eventAt({ notified: 5, received: 25 }, { subscription: 'other' }));
    const { index, products } = await openProductContext();
    await index(...events);
    const period = { sinceUs: atUs(10), untilUs: atUs(30) };
    const all = await products.timeliness(period);
    expect(all.total.notificationToReceipt).toMatchObject({ count: 3, maxMs: 20_000 });
    const other = await products.timeliness({ ...period, subscription: 'other' });
    expect(other.total.notificationToReceipt).toMatchObject({ count: 1, maxMs: 20_000 });
    const none = await products.timeliness({ ...period, subscription: 'none' });
    expect(none).toMatchObject({ hours: [], collections: [] });
    expect(countsOf(none.total)).toEqual([0, 0, 0]);
  });
});
