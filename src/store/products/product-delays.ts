/** Measures the delays of products and of their notifications. */
import type { Database } from 'better-sqlite3';
import { hourOf } from '../../domain/coverage.ts';
import type { NotificationQuery } from '../../domain/ports.ts';
import {
  type DelayPercentiles,
  type DelayStage,
  delayBinSeconds,
  delayStages,
  type Products,
  type StageDelays,
  type SubscriptionDelays,
  type Timeliness,
  totalDelays,
} from '../../domain/products.ts';
import { narrowByTime } from '../log/queries.ts';
import type { LongQuery } from './product-queries.ts';

/** Rows between two pauses, about 20 ms, so that other queries can run. */
const rowsPerTurn = 10_000;

/** Values sorted between two pauses. */
const sortedPerTurn = 100_000;

/** A notification with its delays, in microseconds; null if a date is unknown. */
interface DelayRow {
  subscription: string | null;
  collection: string | null;
  receivedUs: number;
  /** In the order of `delayStages`, then of `totalDelays`. */
  delaysUs: (number | null)[];
}

/** Returns the delays by subscription, null first. */
export async function measureDelays(
  { index, log, call }: LongQuery,
  query: Parameters<Products['delays']>[0],
): Promise<SubscriptionDelays[]> {
  const samples = createGroups<string | null>(delayStages.length);
  let examined = 0;
  const rows = delayRows(index, narrowByTime(log, query), { collections: false });
  for (const { subscription, delaysUs } of rows) {
    addAll(samples(subscription), delaysUs);
    examined += 1;
    if (examined % rowsPerTurn === 0) await call.pause();
  }
  const delays: SubscriptionDelays[] = [];
  for (const [subscription, own] of samples.byName()) {
    delays.push({ subscription, ...stagesOf(own.map((one) => percentilesOf([one.sorted()]))) });
    await call.pause();
  }
  return delays;
}

/** The delays of a collection in an hour of receipt: one sorted array for each stage and total. */
interface Cell {
  collection: string | null;
  hourUs: number;
  sortedUs: Float64Array[];
}

/** Returns the delays by hour of receipt, and their distribution by collection, null first. */
export async function measureTimeliness(
  { index, log, call }: LongQuery,
  { collection: requested, ...query }: Parameters<Products['timeliness']>[0],
): Promise<Timeliness> {
  const cells = await cellsOf({ index, call }, narrowByTime(log, query));
  const shown = cells.filter(
    ({ collection }) => requested === undefined || requested === collection,
  );
  const total = await percentilesByKind(shown, call);
  const [sensingToReceipt = null, publicationToReceipt = null] = total.slice(delayStages.length);
  const hours: Timeliness['hours'] = [];
  const byHour = Map.groupBy(shown, ({ hourUs }) => hourUs);
  for (const [hourUs, own] of [...byHour].sort(([a], [b]) => a - b)) {
    hours.push({ hourUs, ...stagesOf(await percentilesByKind(own, call)) });
  }
  const collections: Timeliness['collections'] = [];
  const byCollection = Map.groupBy(cells, ({ collection }) => collection);
  for (const [collection, own] of [...byCollection].sort(([a], [b]) => byName(a, b))) {
    const delays = stagesOf(await percentilesByKind(own, call));
    collections.push({ collection, delays, bins: byStage((stage) => binsOf(own, stage)) });
  }
  return {
    total: { ...stagesOf(total), sensingToReceipt, publicationToReceipt },
    hours,
    collections,
  };
}

/** Reads each delay once, and sorts the arrays in turns. */
async function cellsOf(
  { index, call }: Pick<LongQuery, 'index' | 'call'>,
  query: NotificationQuery,
): Promise<Cell[]> {
  const kinds = delayStages.length + totalDelays.length;
  const collections = new Map<string | null, ReturnType<typeof createGroups<number>>>();
  let examined = 0;
  for (const row of delayRows(index, query, { collections: true })) {
    const hours = collections.get(row.collection) ?? createGroups<number>(kinds);
    collections.set(row.collection, hours);
    addAll(hours(hourOf(row.receivedUs)), row.delaysUs);
    examined += 1;
    if (examined % rowsPerTurn === 0) await call.pause();
  }
  const cells: Cell[] = [];
  let sorted = 0;
  for (const [collection, hours] of collections) {
    for (const [hourUs, samples] of hours.byName()) {
      const sortedUs = samples.map((one) => one.sorted());
      cells.push({ collection, hourUs, sortedUs });
      sorted += sortedUs.reduce((sum, { length }) => sum + length, 1);
      if (sorted < sortedPerTurn) continue;
      sorted = 0;
      await call.pause();
    }
  }
  return cells;
}

/** Returns the percentiles of each stage and total over all cells. */
async function percentilesByKind(
  cells: readonly Cell[],
  call: LongQuery['call'],
): Promise<(DelayPercentiles | null)[]> {
  const all: (DelayPercentiles | null)[] = [];
  for (const kind of cells[0]?.sortedUs.keys() ?? []) {
    all.push(percentilesOf(cells.flatMap(({ sortedUs }) => sortedUs[kind] ?? [])));
    if (cells.length > cellsPerTurn) await call.pause();
  }
  return all;
}

/** Percentiles of fewer arrays are found without a pause. */
const cellsPerTurn = 100;

/**
 * Percentiles by nearest rank: the smallest delay that a percentage of all do not exceed. Null without delays. Searches
 * sorted arrays by value, so that they need not be copied into one.
 */
function percentilesOf(arrays: readonly Float64Array[]): DelayPercentiles | null {
  const used = arrays.filter(({ length }) => length > 0);
  const count = used.reduce((sum, { length }) => sum + length, 0);
  if (count === 0) return null;
  const least = used.reduce((min, one) => Math.min(min, one[0] ?? min), Number.POSITIVE_INFINITY);
  const most = used.reduce((max, one) => Math.max(max, one.at(-1) ?? max), least);
  const atMs = (percent: number) => {
    const rank = Math.ceil((percent * count) / 100);
    let [low, high] = [least, most];
    while (low < high) {
      // Delays of far years have gaps of more than 1: the middle may be equal to an end.
      const between = low + (high - low) / 2;
      const middle = between < high ? between : low;
      const { upTo, last, next } = around(used, middle);
      // Each step excludes a delay: both ends are delays.
      if (upTo < rank) low = next;
      else high = last;
    }
    return low / 1_000;
  };
  return { count, p50Ms: atMs(50), p90Ms: atMs(90), p99Ms: atMs(99), maxMs: most / 1_000 };
}

/** Counts the values of all arrays up to a limit; returns the last of them, and the next one. */
function around(arrays: readonly Float64Array[], limit: number) {
  let [upTo, last, next] = [0, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (const one of arrays) {
    const own = countUpTo(one, limit);
    upTo += own;
    last = Math.max(last, one[own - 1] ?? last);
    next = Math.min(next, one[own] ?? next);
  }
  return { upTo, last, next };
}

/** Counts the values that are not larger than a limit. */
function countUpTo(sorted: Float64Array, limit: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? limit) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Counts the delays of a stage in each bin. */
function binsOf(cells: readonly Cell[], stage: number): number[] {
  const arrays = cells.flatMap(({ sortedUs }) => sortedUs[stage] ?? []);
  // Bounds are exclusive; delays are whole microseconds.
  const below = delayBinSeconds.map((seconds) =>
    arrays.reduce((sum, one) => sum + countUpTo(one, seconds * 1_000_000 - 1), 0),
  );
  const all = arrays.reduce((sum, { length }) => sum + length, 0);
  return [...below, all].map((value, i) => value - (below[i - 1] ?? 0));
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

const stagesOf = (all: readonly (DelayPercentiles | null)[]): StageDelays =>
  byStage((stage) => all[stage] ?? null);

function addAll(samples: Samples, delaysUs: DelayRow['delaysUs']): void {
  for (const [kind, sample] of samples.entries()) {
    const delayUs = delaysUs[kind] ?? null;
    if (delayUs !== null) sample.add(delayUs);
  }
}

type Samples = readonly ReturnType<typeof createSample>[];

/** Returns a function that returns the samples of a group, one for each kind of delay, created on first use. */
function createGroups<Key extends string | number | null>(kinds: number) {
  const groups = new Map<Key, Samples>();
  const of = (key: Key): Samples => {
    const known = groups.get(key) ?? Array.from({ length: kinds }, createSample);
    groups.set(key, known);
    return known;
  };
  return Object.assign(of, { byName: () => [...groups].sort(([a], [b]) => byName(a, b)) });
}

const none = new Float64Array(0);

/** Collects delays. Uses 8 to 16 bytes for each. */
function createSample() {
  let delaysUs = none;
  let count = 0;
  return {
    add: (delayUs: number): void => {
      if (count === delaysUs.length) {
        const larger = new Float64Array(Math.max(8, 2 * count));
        larger.set(delaysUs);
        delaysUs = larger;
      }
      delaysUs[count] = delayUs;
      count += 1;
    },
    sorted: (): Float64Array => delaysUs.subarray(0, count).sort(),
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

function byName(one: string | number | null, other: string | number | null): number {
  if (one === null || other === null) return one === null ? -1 : 1;
  return one < other ? -1 : 1;
}
