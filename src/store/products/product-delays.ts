/** Measures the delays of products and of their notifications. */
import type { Database } from 'better-sqlite3';
import type { NotificationQuery } from '../../domain/ports.ts';
import type { DelayPercentiles, Products, SubscriptionDelays } from '../../domain/products.ts';
import { narrowByTime } from '../log/queries.ts';
import type { LongQuery } from './product-queries.ts';

/** Rows between two pauses, about 20 ms, so that other queries can run. */
const rowsPerTurn = 10_000;

/** The three delays of one notification, in microseconds; null if a date is unknown. */
type DelayRow = [
  subscription: string | null,
  sensingToPublicationUs: number | null,
  publicationToNotificationUs: number | null,
  notificationToReceiptUs: number | null,
];

/** Returns the delays by subscription, null first. */
export async function measureDelays(
  { index, log, call }: LongQuery,
  query: Parameters<Products['delays']>[0],
): Promise<SubscriptionDelays[]> {
  const samples = new Map<string | null, ReturnType<typeof createSamples>>();
  let examined = 0;
  for (const [subscription, ...delaysUs] of delayRows(index, narrowByTime(log, query))) {
    const known = samples.get(subscription) ?? createSamples();
    samples.set(subscription, known);
    known.forEach((sample, i) => {
      const delayUs = delaysUs[i] ?? null;
      if (delayUs !== null) sample.add(delayUs);
    });
    examined += 1;
    if (examined % rowsPerTurn === 0) await call.pause();
  }
  const delays: SubscriptionDelays[] = [];
  for (const [subscription, three] of [...samples].sort(([a], [b]) => byName(a, b))) {
    const [sensing, publication, notification] = three;
    delays.push({
      subscription,
      sensingToPublication: sensing.percentiles(),
      publicationToNotification: publication.percentiles(),
      notificationToReceipt: notification.percentiles(),
    });
    await call.pause();
  }
  return delays;
}

const createSamples = () => [createSample(), createSample(), createSample()] as const;

/** Collects delays. Uses 8 to 16 bytes for each. */
function createSample() {
  let delaysUs = new Float64Array(1_024);
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
function delayRows(
  index: Database,
  { sinceUs, untilUs, subscription, afterPosition, beforePosition }: NotificationQuery,
): Iterable<DelayRow> {
  // Nothing was received in the period.
  if (afterPosition === undefined || beforePosition === undefined) return [];
  const condition = subscription === undefined ? 'TRUE' : 'subscription = ?';
  const named = subscription === undefined ? [] : [subscription];
  return index
    .prepare<unknown[], DelayRow>(
      `SELECT subscription, published_us - sensing_end_us,
         notification_us - published_us, received_us - notification_us
       FROM (
         SELECT e.*, p.sensing_end_us,
           CASE event WHEN 'created' THEN coalesce(event_us, publication_us) END AS published_us
         FROM product_event e LEFT JOIN product p ON p.id = e.product AND e.event = 'created'
         WHERE position > ? AND position < ? AND received_us >= ? AND received_us < ?
       ) WHERE ${condition}`,
    )
    .raw()
    .iterate(afterPosition, beforePosition, sinceUs, untilUs, ...named) as Iterable<DelayRow>;
}

function byName(one: string | null, other: string | null): number {
  if (one === null || other === null) return one === null ? -1 : 1;
  return one < other ? -1 : 1;
}
