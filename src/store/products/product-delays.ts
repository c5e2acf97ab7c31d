/** Answers how late products and the news of them are. */
import type { Database } from 'better-sqlite3';
import type { NotificationQuery } from '../../domain/ports.ts';
import type { SubscriptionDelays } from '../../domain/products.ts';
import { narrowByTime } from '../log-queries.ts';
import { createDelaySample } from './delay-sample.ts';
import type { ProductDatabases } from './product-questions.ts';

/** What is asked, by the time of receipt: since (included), until (excluded). */
export interface DelaysQuestion {
  sinceUs: number;
  untilUs: number;
  /** All of them where none is named. */
  subscription?: string | undefined;
}

/** Rows in one go, some 20 ms, so that other questions get their turn. */
const rowsAtOnce = 10_000;

/** The three delays of one notification, in microseconds; null where a date is not known. */
type DelayRow = [
  subscription: string | null,
  sensingToPublicationUs: number | null,
  publicationToNotificationUs: number | null,
  notificationToReceiptUs: number | null,
];

/** By subscription, null first. Gives way to other questions now and then. */
export async function measureDelays(
  { index, log }: Pick<ProductDatabases, 'index' | 'log'>,
  question: DelaysQuestion,
  giveWay: () => Promise<void>,
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
    if (examined % rowsAtOnce === 0) await giveWay();
  }
  const delays: SubscriptionDelays[] = [];
  for (const subscription of [...samples.keys()].sort(byName)) {
    const [sensing, publication, notification] = samples.get(subscription) ?? createSamples();
    delays.push({
      subscription,
      sensingToPublication: sensing.percentiles(),
      publicationToNotification: publication.percentiles(),
      notificationToReceipt: notification.percentiles(),
    });
    await giveWay();
  }
  return delays;
}

const createSamples = () =>
  [createDelaySample(), createDelaySample(), createDelaySample()] as const;

/**
 * The notifications between two positions that were received in time. PublicationDate is that of the
 * notification's own record, where it has one: the product's may be that of a deletion, which says nothing.
 * What was recovered has no NotificationDate (index-batch.ts).
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
