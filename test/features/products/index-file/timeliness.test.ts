/** The delays of each stage as percentiles, by hour and collection. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDateUs, hourUs } from '../../../../src/core/terms/dates.ts';
import { catchUpIndex } from '../../../../src/features/products/index-file/index-maintenance.ts';
import { type DelayStage, delayStages } from '../../../../src/filter/products.ts';
import { openProductContext, type ProductContext, type TestEvent } from './product-context.ts';

const startUs = Date.UTC(2026, 0, 1) * 1000;
const atUs = (second: number) => startUs + second * 1_000_000;
const at = (second: number) => formatDateUs(atUs(second));
const always = { sinceUs: 0, untilUs: Number.MAX_SAFE_INTEGER };

/** A percentile, with half a percent of error. */
const within = (seconds: number) =>
  expect.closeTo(seconds, -Math.log10(0.0102 * Math.abs(seconds)));

/** Percentiles of a single delay. */
const one = (seconds: number) => {
  return { count: 1, p50: seconds, p90: seconds, p99: seconds, max: seconds };
};

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
  changes: Partial<TestEvent> & { id?: string; name?: keyof typeof names } = {},
): TestEvent {
  ids += 1;
  const next = `00000000-0000-4000-8000-${String(ids).padStart(12, '0')}`;
  const { name = 'SENTINEL-2', event = 'created', id = next, ...more } = changes;
  return {
    event,
    record: {
      Id: id,
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

async function indexed(events: readonly TestEvent[]) {
  const { index, products } = await openProductContext();
  await index(...events);
  return products;
}

const timelinessOf = async (events: TestEvent[]) => (await indexed(events)).timeliness(always);

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
    expect(total).toMatchObject({
      sensingToPublication: { count: 3, p50: within(300), max: 7_000 },
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
      sensingToReceipt: { count: 3, p50: within(1_000), p90: 8_000, max: 8_000 },
      publicationToReceipt: { count: 3, p50: within(900), p99: 7_700 },
    });
  });

  it('covers a period, without its end, a subscription and a collection, and lists all collections', async () => {
    const events = [10, 20, 30].map((second) => eventAt({ notified: 5, received: second }));
    events.push(
      eventAt({ notified: 5, received: 25 }, { subscription: 'other' }),
      eventAt({ notified: 5, received: 29 }, { name: 'SENTINEL-1' }),
      eventAt({ notified: 5, received: 29 }, { name: 'unknown' }),
    );
    const products = await indexed(events);
    const period = { sinceUs: atUs(10), untilUs: atUs(30) };
    const counted = async (limits: object) => {
      const { hours, total, collections } = await products.timeliness({ ...period, ...limits });
      const listed = collections.map(({ collection }) => collection);
      return [hours.length, total.notificationToReceipt?.count, listed];
    };
    const all = [null, 'SENTINEL-1', 'SENTINEL-2'];
    expect(await counted({})).toEqual([1, 5, all]);
    expect(await counted({ collection: 'SENTINEL-2' })).toEqual([1, 3, all]);
    expect(await counted({ subscription: 'other' })).toEqual([1, 1, ['SENTINEL-2']]);
    expect(await counted({ subscription: 'none' })).toEqual([0, undefined, []]);
  });
});

const unpublished = eventAt({ notified: null, received: 100 });
const { PublicationDate: _, ...record } = { ...unpublished.record } as Record<string, unknown>;
const withoutRecord = { record: null, productId: 'a' };
it.each<[name: string, events: TestEvent[], stages: (object | null)[]]>([
  [
    'are measured from sensing to publication, to the notification, and to its receipt',
    [eventAt({ notified: 146, received: 147.25 })],
    [one(100), one(46), one(1.25)],
  ],
  [
    // The record of the deletion is the newest and has no sensing time.
    'of modifications and deletions count only for the receipt',
    [
      eventAt({ notified: 150, received: 151 }, { id: 'a' }),
      eventAt({ notified: 160, received: 163 }, { id: 'a', event: 'modified' }),
      eventAt(
        { notified: 201, received: 203 },
        { event: 'deleted', record: { Id: 'a', DeletionDate: at(200) } },
      ),
    ],
    [null, one(50), { count: 3, p50: within(2), p90: 3, p99: 3, max: 3 }],
  ],
  [
    'of a notification without a record use the record of its product',
    [
      eventAt({ notified: 130, received: 131 }, withoutRecord),
      eventAt({ notified: 160, received: 163 }, { id: 'a', event: 'modified' }),
    ],
    [one(100), one(30), expect.anything()],
  ],
  [
    'of recovered events count only from sensing to publication',
    [eventAt({ notified: 900, received: 1_000 }, { source: 'reconcile' })],
    [one(100), null, null],
  ],
  [
    'may be negative, and are unknown without a date',
    [
      eventAt({ sensed: 120, notified: 90, received: 88.5 }),
      { ...unpublished, record: { ...record, Id: 'b' } },
      eventAt({ notified: null, received: 100 }, { record: { Id: 'c' } }),
      eventAt({ notified: null, received: 100 }, { ...withoutRecord, productId: 'd' }),
    ],
    [one(-20), one(-10), one(-1.5)],
  ],
])('the delays %s', async (_name, events, stages) => {
  const { total } = await timelinessOf(events);
  const expected = delayStages.map((stage, i) => [stage, stages[i]]);
  expect(total).toMatchObject(Object.fromEntries(expected));
});

/** Stores pushes of a subscription whose events happened this many microseconds before receipt. */
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

it('percentiles of delays are of the nearest rank, within 1 %', async () => {
  const context = await openProductContext();
  const delayUs = fc.oneof(
    fc.integer({ min: -3_000_000, max: 3_600_000_000 }),
    fc.integer({ min: 0, max: 3 }),
    // Seconds of the years 0000 to 9999: larger than exact numbers.
    fc.integer({ min: -250_000_000_000, max: 60_000_000_000 }).map((one) => one * 1_000_000),
  );
  const cases = [
    ...fc.sample(fc.array(delayUs, { minLength: 1, maxLength: 250 }), 40),
    ...[278, 2_100].flatMap((length) =>
      fc.sample(fc.array(delayUs, { minLength: length, maxLength: length }), 1),
    ),
  ];
  for (const [i, delaysUs] of cases.entries()) await deliverLate(context, `case-${i}`, delaysUs);
  await catchUpIndex({ dataDir: context.dataDir });
  for (const [i, delaysUs] of cases.entries()) {
    // The smallest value that at least this percentage of all values does not exceed.
    const ranked = (percent: number) => {
      const isEnough = (us: number) =>
        delaysUs.filter((other) => other <= us).length * 100 >= percent * delaysUs.length;
      return Math.min(...delaysUs.filter(isEnough)) / 1e6;
    };
    const query = { ...always, subscription: `case-${i}` };
    const found = (await context.products.timeliness(query)).total.notificationToReceipt;
    expect(found).toMatchObject({
      count: delaysUs.length,
      negative: delaysUs.filter((us) => us < 0).length,
      max: Math.max(...delaysUs) / 1e6,
    });
    for (const [percent, shown = Number.NaN] of [
      [50, found?.p50],
      [90, found?.p90],
      [99, found?.p99],
    ] as const) {
      const exact = ranked(percent);
      expect(Math.abs(shown - exact)).toBeLessThanOrEqual(0.01 * Math.abs(exact));
    }
  }
}, 20_000);
