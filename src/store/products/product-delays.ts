/** Measures the delays of products and of their notifications. */
import type { Database } from 'better-sqlite3';
import { hourUs } from '../../domain/completeness.ts';
import type { NotificationQuery } from '../../domain/ports.ts';
import {
  type DelayPercentiles,
  type DelayStage,
  delayBinSeconds,
  type Products,
  type SubscriptionDelays,
  type Timeliness,
} from '../../domain/products.ts';
import { narrowByTime } from '../log/queries.ts';
import type { LongQuery } from './product-queries.ts';

/** Rows between two pauses, about 20 ms, so that other queries can run. */
const rowsPerTurn = 10_000;

/** A notification with its three delays, in microseconds; null if a date is unknown. */
interface DelayRow {
  subscription: string | null;
  collection: string | null;
  receivedUs: number;
  delaysUs: [number | null, number | null, number | null];
}

/** Returns the delays by subscription, null first. */
export async function measureDelays(
  { index, log, call }: LongQuery,
  query: Parameters<Products['delays']>[0],
): Promise<SubscriptionDelays[]> {
  const samples = createGroups<string | null>();
  let examined = 0;
  for (const { subscription, delaysUs } of delayRows(index, narrowByTime(log, query))) {
    addAll(samples(subscription), delaysUs);
    examined += 1;
    if (examined % rowsPerTurn === 0) await call.pause();
  }
  const delays: SubscriptionDelays[] = [];
  for (const [subscription, three] of samples.byName()) {
    delays.push({ subscription, ...percentilesOf(three) });
    await call.pause();
  }
  return delays;
}

/** Returns the delays by hour of receipt, and their distribution by collection, null first. */
export async function measureTimeliness(
  { index, log, call }: LongQuery,
  { collection: requested, ...query }: Parameters<Products['timeliness']>[0],
): Promise<Timeliness> {
  const total = createSamples();
  const hours = createGroups<number>();
  const collections = createGroups<string | null>();
  const bins = new Map<string | null, number[][]>();
  let examined = 0;
  for (const { collection, receivedUs, delaysUs } of delayRows(index, narrowByTime(log, query))) {
    if (requested === undefined || requested === collection) {
      addAll(total, delaysUs);
      addAll(hours(receivedUs - (receivedUs % hourUs)), delaysUs);
    }
    addAll(collections(collection), delaysUs);
    const counts = bins.get(collection) ?? delaysUs.map(() => noDelays());
    bins.set(collection, counts);
    for (const [stage, delayUs] of delaysUs.entries()) {
      const own = counts[stage];
      if (delayUs !== null && own !== undefined)
        own[binOf(delayUs)] = (own[binOf(delayUs)] ?? 0) + 1;
    }
    examined += 1;
    if (examined % rowsPerTurn === 0) await call.pause();
  }
  return {
    total: percentilesOf(total),
    hours: hours.byName().map(([at, three]) => ({ hourUs: at, ...percentilesOf(three) })),
    collections: collections.byName().map(([collection, three]) => ({
      collection,
      delays: percentilesOf(three),
      bins: byStage((stage) => bins.get(collection)?.[stage] ?? noDelays()),
    })),
  };
}

const noDelays = () => new Array<number>(delayBinSeconds.length + 1).fill(0);

function binOf(delayUs: number): number {
  const bin = delayBinSeconds.findIndex((seconds) => delayUs < seconds * 1_000_000);
  return bin < 0 ? delayBinSeconds.length : bin;
}

function byStage<Value>(of: (stage: number) => Value): Record<DelayStage, Value> {
  const [sensingToPublication, publicationToNotification, notificationToReceipt] = [0, 1, 2].map(
    of,
  );
  return { sensingToPublication, publicationToNotification, notificationToReceipt } as Record<
    DelayStage,
    Value
  >;
}

const percentilesOf = (three: Samples) => byStage((stage) => three[stage]?.percentiles() ?? null);

function addAll(three: Samples, delaysUs: DelayRow['delaysUs']): void {
  for (const [stage, delayUs] of delaysUs.entries()) {
    if (delayUs !== null) three[stage]?.add(delayUs);
  }
}

type Samples = readonly ReturnType<typeof createSample>[];

/** Returns a function that returns the samples of a group, created on first use. */
function createGroups<Key extends string | number | null>() {
  const groups = new Map<Key, Samples>();
  const of = (key: Key): Samples => {
    const known = groups.get(key) ?? createSamples();
    groups.set(key, known);
    return known;
  };
  return Object.assign(of, { byName: () => [...groups].sort(([a], [b]) => byName(a, b)) });
}

const createSamples = (): Samples => [createSample(), createSample(), createSample()];

/** Collects delays. Uses 8 to 16 bytes for each. */
function createSample() {
  let delaysUs = new Float64Array(64);
  let count = 0;
  return {
    add: (delayUs: number): void => {
      if (count === delaysUs.length) {
        const larger = new Float64Array(2 * count);
        larger.set(delaysUs);
        delaysUs = larger;
      }
      delaysUs[count] = delayUs;
      count += 1;
    },
    /** Percentiles by nearest rank: the smallest delay that a percentage of all do not exceed. Null without delays. */
    percentiles: (): DelayPercentiles | null => {
      const sortedUs = delaysUs.subarray(0, count).sort();
      const atMs = (percent: number) => {
        const rank = Math.ceil((percent * count) / 100);
        return (sortedUs[rank - 1] ?? Number.NaN) / 1000;
      };
      if (count === 0) return null;
      return { count, p50Ms: atMs(50), p90Ms: atMs(90), p99Ms: atMs(99), maxMs: atMs(100) };
    },
  };
}

/**
 * Returns the delays of notifications between two positions and two times of receipt. Uses the PublicationDate of
 * the notification's own record, if there is one: the product's may come from a deletion and is then meaningless.
 * Recovered notifications have no NotificationDate (index-batches.ts).
 */
function* delayRows(
  index: Database,
  { sinceUs, untilUs, subscription, afterPosition, beforePosition }: NotificationQuery,
): Generator<DelayRow> {
  // Nothing was received in the period.
  if (afterPosition === undefined || beforePosition === undefined) return;
  const condition = subscription === undefined ? 'TRUE' : 'subscription = ?';
  const named = subscription === undefined ? [] : [subscription];
  const rows = index
    .prepare<unknown[], SelectedDelays>(
      `SELECT subscription, collection, received_us, published_us - sensing_end_us,
         notification_us - published_us, received_us - notification_us
       FROM (
         SELECT e.*, p.sensing_end_us, p.collection,
           CASE event WHEN 'created' THEN coalesce(event_us, publication_us) END AS published_us
         FROM product_event e LEFT JOIN product p ON p.id = e.product
         WHERE position > ? AND position < ? AND received_us >= ? AND received_us < ?
       ) WHERE ${condition}`,
    )
    .raw()
    .iterate(afterPosition, beforePosition, sinceUs, untilUs, ...named);
  for (const [one, collection, receivedUs, ...delaysUs] of rows as Iterable<SelectedDelays>) {
    yield { subscription: one, collection, receivedUs, delaysUs };
  }
}

type SelectedDelays = [
  string | null,
  string | null,
  number,
  number | null,
  number | null,
  number | null,
];

function byName(one: string | number | null, other: string | number | null): number {
  if (one === null || other === null) return one === null ? -1 : 1;
  return one < other ? -1 : 1;
}
