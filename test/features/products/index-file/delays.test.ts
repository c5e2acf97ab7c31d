/** Delays from sensing to receipt are reported as percentiles by subscription. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDateUs } from '../../../../src/core/terms/dates.ts';
import { catchUpIndex } from '../../../../src/features/products/index-file/index-maintenance.ts';
import { openProductContext, type ProductContext, type TestEvent } from './product-context.ts';

const startUs = Date.UTC(2026, 0, 1) * 1000;
const atUs = (second: number) => startUs + second * 1_000_000;
const at = (second: number) => formatDateUs(atUs(second));
const always = { sinceUs: 0, untilUs: Number.MAX_SAFE_INTEGER };

/** A product whose sensing ended, and that was published, at these seconds. */
const product = (Id: string, sensedAt: number, publishedAt: number) => ({
  Id,
  ContentDate: { Start: at(sensedAt - 10), End: at(sensedAt) },
  PublicationDate: at(publishedAt),
  ModificationDate: at(publishedAt),
});

const eventOf = (
  event: string,
  record: TestEvent['record'],
  [notified, received]: [notified: number | null, received: number],
): TestEvent => ({
  event,
  record,
  notificationDate: notified === null ? null : at(notified),
  receivedAtUs: atUs(received),
});

/** A percentile, up to 1 % above the exact one. */
const within = (ms: number) =>
  expect.closeTo(ms + 0.005 * Math.abs(ms), -Math.log10(0.0102 * Math.abs(ms)));

/** Percentiles of a single delay. */
const one = (seconds: number) => {
  const ms = seconds * 1000;
  return { count: 1, p50Ms: ms, p90Ms: ms, p99Ms: ms, maxMs: ms };
};

const delays = (
  sensingToPublication: object | null,
  publicationToNotification: object | null,
  notificationToReceipt: object | null,
) => ({ sensingToPublication, publicationToNotification, notificationToReceipt });

const { PublicationDate: _, ...unpublished } = product('b', 0, 100);

/**
 * Stores pushes of one subscription whose events happened the given number of microseconds before
 * receipt.
 */
async function deliverLate(
  { store }: ProductContext,
  subscription: string,
  delaysUs: readonly number[],
): Promise<void> {
  const items = delaysUs.map((delayUs, i) => ({
    AckId: `${subscription}-${i}`,
    ProductId: `${subscription}-${i % 5}`,
    SubscriptionEvent: 'modified',
    NotificationDate: formatDateUs(startUs - delayUs),
  }));
  const body = Buffer.from(JSON.stringify(items));
  const delivery = { body, subscription, source: 'push', headers: [] } as const;
  await store.accept({ ...delivery, receivedAtUs: startUs });
}

describe('the delays', () => {
  it.each<[name: string, events: TestEvent[], expected: object]>([
    [
      'are measured from sensing to publication, to the notification, and to its receipt',
      [eventOf('created', product('a', 0, 100), [146, 147.25])],
      { subscription: 'test', ...delays(one(100), one(46), one(1.25)) },
    ],
    [
      // The record of the deletion is the newest and has no sensing time.
      'of modifications and deletions count only for the receipt',
      [
        eventOf('created', product('a', 0, 100), [150, 151]),
        eventOf('modified', product('a', 0, 100), [160, 163]),
        eventOf('deleted', { Id: 'a', DeletionDate: at(200) }, [201, 203]),
      ],
      delays(null, one(50), {
        ...{ count: 3, p50Ms: within(2_000), p90Ms: 3_000, p99Ms: 3_000, maxMs: 3_000 },
      }),
    ],
    [
      'of a notification without a record use the record of its product',
      [
        { ...eventOf('created', null, [130, 131]), productId: 'a' },
        eventOf('modified', product('a', 0, 100), [160, 163]),
      ],
      { sensingToPublication: one(100), publicationToNotification: one(30) },
    ],
    [
      'of recovered events count only from sensing to publication',
      [{ ...eventOf('created', product('a', 0, 100), [900, 1_000]), source: 'reconcile' }],
      delays(one(100), null, null),
    ],
    [
      'may be negative, and are unknown without a date',
      [
        eventOf('created', product('a', 120, 100), [90, 88.5]),
        eventOf('created', unpublished, [null, 100]),
        eventOf('created', { Id: 'c' }, [null, 100]),
        { ...eventOf('created', null, [null, 100]), productId: 'd' },
      ],
      delays(one(-20), one(-10), one(-1.5)),
    ],
  ])('%s', async (_name, events, expected) => {
    const { index, products } = await openProductContext();
    await index(...events);
    const found = await products.delays(always);
    expect(found).toHaveLength(1);
    expect(found).toMatchObject([expected]);
  });

  it('are reported by subscription, including paths without a name, or for a selected one', async () => {
    const { index, products } = await openProductContext();
    const late = (id: string, subscription: string | null, seconds: number): TestEvent => ({
      ...eventOf('created', { Id: id }, [0, seconds]),
      subscription,
    });
    await index(
      late('a', 'west', 1),
      late('b', null, 2),
      late('c', 'east', 3),
      late('d', 'west', 4),
    );
    const reported = (await products.delays(always)).map(
      ({ subscription, notificationToReceipt }) => [
        subscription,
        notificationToReceipt?.count,
        notificationToReceipt?.maxMs,
      ],
    );
    expect(reported).toEqual([
      [null, 1, 2_000],
      ['east', 1, 3_000],
      ['west', 2, 4_000],
    ]);
    const asked = await products.delays({ ...always, subscription: 'east' });
    expect(asked).toMatchObject([{ subscription: 'east', notificationToReceipt: one(3) }]);
    expect(await products.delays({ ...always, subscription: 'north' })).toEqual([]);
  });

  it('include what was received within the window, whatever its position in the log', async () => {
    const { index, products } = await openProductContext();
    const events = [10, 20, 9, 12, 30].map((second, i) =>
      eventOf('created', { Id: `p${i}` }, [0, second]),
    );
    await index(...events);
    const received = async (since: number, until: number) => {
      const [delays] = await products.delays({ sinceUs: atUs(since), untilUs: atUs(until) });
      const { count, p50Ms, maxMs } = delays?.notificationToReceipt ?? {};
      return [count, p50Ms, maxMs];
    };
    expect(await received(10, 20)).toEqual([2, within(10_000), 12_000]);
    expect(await received(10, 20.000001)).toEqual([3, within(12_000), 20_000]);
    expect(await received(0, 10)).toEqual([1, 9_000, 9_000]);
    expect(await products.delays({ sinceUs: atUs(40), untilUs: atUs(50) })).toEqual([]);
  });

  it('use nearest-rank percentiles, within 1 %', async () => {
    const context = await openProductContext();
    const delayUs = fc.oneof(
      fc.integer({ min: -3_000_000, max: 3_600_000_000 }),
      fc.integer({ min: 0, max: 3 }),
      // Seconds of the years 0000 to 9999: larger than exact numbers.
      fc.integer({ min: -250_000_000_000, max: 60_000_000_000 }).map((one) => one * 1_000_000),
    );
    const cases = [
      ...fc.sample(fc.array(delayUs, { minLength: 1, maxLength: 250 }), 40),
      ...fc.sample(fc.array(delayUs, { minLength: 2_100, maxLength: 2_100 }), 1),
    ];
    for (const [i, delaysUs] of cases.entries()) await deliverLate(context, `case-${i}`, delaysUs);
    await catchUpIndex({ dataDir: context.dataDir });
    const reported = await context.products.delays(always);
    const bySubscription = new Map(reported.map((delays) => [delays.subscription, delays]));
    expect(reported).toHaveLength(cases.length);
    cases.forEach((delaysUs, i) => {
      // The smallest value that at least this percentage of all values does not exceed.
      const rankedMs = (percent: number) => {
        const isEnough = (us: number) =>
          delaysUs.filter((other) => other <= us).length * 100 >= percent * delaysUs.length;
        return Math.min(...delaysUs.filter(isEnough)) / 1000;
      };
      const found = bySubscription.get(`case-${i}`)?.notificationToReceipt;
      expect(found).toMatchObject({
        count: delaysUs.length,
        negative: delaysUs.filter((us) => us < 0).length,
        maxMs: Math.max(...delaysUs) / 1000,
      });
      for (const [percent, shown = Number.NaN] of [
        [50, found?.p50Ms],
        [90, found?.p90Ms],
        [99, found?.p99Ms],
      ] as const) {
        const exact = rankedMs(percent);
        expect(Math.abs(shown - exact)).toBeLessThanOrEqual(0.01 * Math.abs(exact));
      }
    });
  }, 20_000);

  it('do not block shorter queries, and stop when aborted', async () => {
    const context = await openProductContext();
    const delaysUs = Array.from({ length: 5_500 }, (_, i) => i);
    for (const name of ['east', 'west']) await deliverLate(context, name, delaysUs);
    await catchUpIndex({ dataDir: context.dataDir });
    const { products } = context;
    const order: string[] = [];
    const measured = products.delays(always).then(() => order.push('delays'));
    await products.indexedPosition().then(() => order.push('position'));
    await measured;
    expect(order).toEqual(['position', 'delays']);
    const stop = new AbortController();
    const given = products.delays(always, stop.signal);
    stop.abort();
    await expect(given).rejects.toMatchObject({ code: 'cancelled' });
    expect(await products.delays({ ...always, subscription: 'east' })).toHaveLength(1);
  }, 20_000);
});
