/** Measures the delays of products and of the notifications about them. */
import type { Database } from 'better-sqlite3';
import type { NotificationQuery } from '../../domain/ports.ts';
import type { DelayPercentiles, Products, SubscriptionDelays } from '../../domain/products.ts';
import { narrowByTime } from '../log/queries.ts';
import type { LongQuestion } from './product-questions.ts';

/** Rows of one turn, some 20 ms, so that other questions get theirs. */
const rowsAtOnce = 10_000;

/** The three delays of one notification, in microseconds; null where a date is not known. */
type DelayRow = [
  subscription: string | null,
  sensingToPublicationUs: number | null,
  publicationToNotificationUs: number | null,
  notificationToReceiptUs: number | null,
];

/** By subscription, null first. */
export async function measureDelays(
  { index, log, call }: LongQuestion,
  question: Parameters<Products['delays']>[0],
): Promise<SubscriptionDelays[]> {
  const samples = new Map<string | null, ReturnType<typeof createSamples>>();
  let examined = 0;
  for (const [subscription, ...delaysUs] of delayRows(index, narrowByTime(log, question))) {
    const known = samples.get(subscription) ?? createSamples();
    samples.set(subscription, known);
    known.forEach((sample, i) => {
      const delayUs = delaysUs[i] ?? null;
      if (delayUs !== null) sample.add(delayUs);
    });
    examined += 1;
    if (examined % rowsAtOnce === 0) await call.pause();
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

/** Collects delays. Takes eight bytes for each, and at most as many again. */
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
    /** By the nearest rank: the smallest delay that a percentage of all do not exceed. Null without any. */
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
 * The notifications between two positions that were received in time. PublicationDate is that of the
 * notification's own record, where it has one: the product's may be that of a deletion, which says nothing.
 * What was recovered has no NotificationDate (index-batches.ts).
 */
function delayRows(
  index: Database,
  { sinceUs, untilUs, subscription, afterPosition, beforePosition }: NotificationQuery,
): Iterable<DelayRow> {
  // Nothing was received in time.
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
