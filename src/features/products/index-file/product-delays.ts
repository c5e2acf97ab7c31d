/** Measures the delays of products and of their notifications. */

import { hourOf } from '../../../core/terms/dates.ts';
import type { NotificationQuery } from '../../../core/terms/ports.ts';
import {
  type DelayPercentiles,
  delayStages,
  type Products,
  type StageDelays,
  type SubscriptionDelays,
  type Timeliness,
  totalDelays,
} from '../../../filter/products.ts';
import type { Database } from '../../../store/engine/database.ts';
import { narrowByTime } from '../../../store/log/queries.ts';
import type { LongQuery } from './product-queries.ts';

/** Rows between two pauses, about 20 ms, so that other queries can run. */
const rowsPerTurn = 10_000;

/** A notification with its delays, in microseconds; null if a date is unknown. */
interface DelayRow {
  subscription: string | null;
  collection: string | null;
  receivedUs: number;
  /** In the order of `delayStages`, then of `totalDelays`. */
  delaysUs: (number | null)[];
}

/** Groups whose percentiles are found between two pauses. */
const groupsPerTurn = 50;

/** Returns the delays by subscription, null first. */
export async function measureDelays(
  { index, log, call }: LongQuery,
  query: Parameters<Products['delays']>[0],
): Promise<SubscriptionDelays[]> {
  const subscriptions = createGroups<string | null>();
  const rows = delayRows(index, narrowByTime(log, query), { collections: false });
  await readAll(rows, call, ({ subscription, delaysUs }) => {
    addAll(subscriptions.of(subscription), delaysUs);
  });
  const found = await subscriptions.all(call);
  return found.map(([subscription, delays]) => ({ subscription, ...delays }));
}

/** Returns the delays by hour of receipt, and by collection, null first. */
export async function measureTimeliness(
  { index, log, call }: LongQuery,
  { collection: requested, ...query }: Parameters<Products['timeliness']>[0],
): Promise<Timeliness> {
  const total = [...delayStages, ...totalDelays].map(createSketch);
  const hours = createGroups<number>();
  const collections = createGroups<string | null>();
  const rows = delayRows(index, narrowByTime(log, query), { collections: true });
  await readAll(rows, call, ({ collection, receivedUs, delaysUs }) => {
    addAll(collections.of(collection), delaysUs);
    if (requested !== undefined && requested !== collection) return;
    addAll(total, delaysUs);
    addAll(hours.of(hourOf(receivedUs)), delaysUs);
  });
  const [sensingToReceipt = null, publicationToReceipt = null] = total
    .slice(delayStages.length)
    .map((one) => one.percentiles());
  const byHour = await hours.all(call);
  const byCollection = await collections.all(call);
  return {
    total: { ...stagesOf(total), sensingToReceipt, publicationToReceipt },
    hours: byHour.map(([hourUs, delays]) => ({ hourUs, ...delays })),
    collections: byCollection.map(([collection, delays]) => ({ collection, ...delays })),
  };
}

async function readAll(
  rows: Iterable<DelayRow>,
  call: LongQuery['call'],
  add: (row: DelayRow) => void,
): Promise<void> {
  let examined = 0;
  for (const row of rows) {
    add(row);
    examined += 1;
    if (examined % rowsPerTurn === 0) await call.pause();
  }
}

/** Delays of each stage, and perhaps of each total, in their order. */
type Delays = readonly ReturnType<typeof createSketch>[];

function addAll(delays: Delays, delaysUs: DelayRow['delaysUs']): void {
  for (const [kind, sketch] of delays.entries()) {
    const delayUs = delaysUs[kind] ?? null;
    if (delayUs !== null) sketch.add(delayUs);
  }
}

function stagesOf(delays: Delays): StageDelays {
  const [
    sensingToPublication = null,
    publicationToNotification = null,
    notificationToReceipt = null,
  ] = delays.map((one) => one.percentiles());
  return { sensingToPublication, publicationToNotification, notificationToReceipt };
}

function createGroups<Key extends string | number | null>() {
  const groups = new Map<Key, Delays>();
  return {
    of: (key: Key): Delays => {
      const known = groups.get(key) ?? delayStages.map(createSketch);
      groups.set(key, known);
      return known;
    },
    /** By name, null first. */
    all: async (call: LongQuery['call']): Promise<[Key, StageDelays][]> => {
      const sorted = [...groups].sort(([a], [b]) => {
        if (a === null || b === null) return a === null ? -1 : 1;
        return a < b ? -1 : 1;
      });
      const found: [Key, StageDelays][] = [];
      for (const [key, delays] of sorted) {
        found.push([key, stagesOf(delays)]);
        if (found.length % groupsPerTurn === 0) await call.pause();
      }
      return found;
    },
  };
}

/** Width of a bucket, as a logarithm: almost 1 % of the delay. */
const bucketWidth = Math.log(1.009);

/** Buckets that are added beyond the outermost one. */
const bucketsAhead = 32;

/**
 * Counts delays in buckets, so that the hours of months fit in memory: some kilobytes each, outside of the heap of the
 * thread. Percentiles are nearest ranks, the smallest delay that a percentage of all do not exceed, within 1 %.
 */
function createSketch() {
  /** `counts[i]` is that of bucket `first + i`. Buckets of negative delays are negative. */
  let [counts, first] = [new Uint32Array(0), 0];
  let [count, negative, leastUs, mostUs] = [0, 0, Infinity, -Infinity];
  const cover = (bucket: number) => {
    const isEmpty = counts.length === 0;
    const end = first + counts.length;
    const low = isEmpty || bucket < first ? bucket - bucketsAhead : first;
    const high = isEmpty || bucket >= end ? bucket + bucketsAhead : end;
    const wider = new Uint32Array(high - low);
    if (!isEmpty) wider.set(counts, first - low);
    [counts, first] = [wider, low];
  };
  return {
    add: (delayUs: number): void => {
      const bucket = bucketOf(delayUs);
      if (bucket < first || bucket >= first + counts.length) cover(bucket);
      counts[bucket - first] = (counts[bucket - first] ?? 0) + 1;
      count += 1;
      if (delayUs < 0) negative += 1;
      leastUs = Math.min(leastUs, delayUs);
      mostUs = Math.max(mostUs, delayUs);
    },
    /** Null without delays. */
    percentiles: (): DelayPercentiles | null => {
      if (count === 0) return null;
      const atMs = (percent: number) => {
        let left = Math.ceil((percent * count) / 100);
        const i = counts.findIndex((own) => {
          left -= own;
          return left <= 0;
        });
        return Math.min(Math.max(upperBoundOf(first + i), leastUs), mostUs) / 1_000;
      };
      const [p50Ms, p90Ms, p99Ms] = [atMs(50), atMs(90), atMs(99)];
      return { count, negative, p50Ms, p90Ms, p99Ms, maxMs: mostUs / 1_000 };
    },
  };
}

function bucketOf(us: number): number {
  return us === 0 ? 0 : Math.sign(us) * (1 + Math.floor(Math.log(Math.abs(us)) / bucketWidth));
}

/** Returns the largest delay of a bucket, with four digits. */
function upperBoundOf(bucket: number): number {
  if (bucket === 0) return 0;
  const us = Math.exp((bucket > 0 ? bucket : -bucket - 1) * bucketWidth);
  return Number((Math.sign(bucket) * us).toPrecision(4));
}

/**
 * Returns the delays of notifications between two positions and two times of receipt. Uses the PublicationDate of
 * the notification's own record, if there is one: the product's may come from a deletion and is then meaningless.
 * Recovered notifications have no NotificationDate (index-batches.ts).
 */
function* delayRows(
  index: Database,
  { sinceUs, untilUs, subscription, afterPosition, beforePosition }: NotificationQuery,
  { collections }: { collections: boolean },
): Generator<DelayRow> {
  // Nothing was received in the period.
  if (afterPosition === undefined || beforePosition === undefined) return;
  const condition = subscription === undefined ? 'TRUE' : 'subscription = ?';
  // Only created products have a time of sensing here: without collections, the others need no lookup.
  const joined = collections ? 'TRUE' : "e.event = 'created'";
  const named = subscription === undefined ? [] : [subscription];
  const rows = index
    .prepare<unknown[], SelectedDelays>(
      `SELECT subscription, collection, received_us, published_us - sensing_end_us,
         notification_us - published_us, received_us - notification_us,
         iif(notification_us IS NULL OR published_us IS NULL, NULL, received_us - sensing_end_us),
         iif(notification_us IS NULL, NULL, received_us - published_us)
       FROM (
         SELECT e.*, p.sensing_end_us, p.collection,
           CASE event WHEN 'created' THEN coalesce(event_us, publication_us) END AS published_us
         FROM product_event e LEFT JOIN product p ON p.id = e.product AND ${joined}
         WHERE position > ? AND position < ? AND received_us >= ? AND received_us < ?
       ) WHERE ${condition}`,
    )
    .raw()
    .iterate(afterPosition, beforePosition, sinceUs, untilUs, ...named);
  for (const [one, collection, receivedUs, ...delaysUs] of rows as Iterable<SelectedDelays>) {
    yield { subscription: one, collection, receivedUs, delaysUs };
  }
}

type SelectedDelays = [string | null, string | null, number, ...(number | null)[]];
