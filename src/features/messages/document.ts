/** The JSON document of a notification, as sinks and readers of the feed receive it, and the rules that select it. */

import { formatDateUs } from '../../core/terms/dates.ts';
import type { NotificationLog, NotificationRow } from '../../core/terms/ports.ts';
import type { SubscriptionEvent } from '../../core/terms/subscription.ts';
import { requireFilter } from '../../filter/check.ts';
import { compileFilter, type ProductTest } from '../../filter/evaluate.ts';
import { isTooOld } from '../../filter/product-age.ts';
import { type ProductView, productView } from '../../filter/product-view.ts';
import { type ProductRecord, recordIn } from '../../filter/values.ts';

/** Future versions may add fields, but not remove any. Unknown values are null. Times are ISO 8601 UTC. */
export interface NotificationDocument {
  /** Unique, and the same for each attempt: the sink can use it to skip duplicates. */
  id: string;
  /** `id` of the notification's first delivery; differs from `id` in a replay. */
  notificationId: string;
  /** True for a replay (`earshot sinks replay`). */
  replay: boolean;
  /** True for a test delivery of `earshot sinks test`; otherwise absent. */
  test?: true;
  /** Name of the sink. */
  sink: string;
  /** Position in the log; increases in the order of receipt. */
  position: number;
  /** Name of the subscription, from the path of the push. */
  subscription: string | null;
  /** `created`, `modified`, `deleted`, or an unknown event; in lower case. */
  event: string;
  productId: string;
  productName: string | null;
  /** Id of the subscription in the catalogue. */
  subscriptionId: string | null;
  ackId: string | null;
  /** Time at which the catalogue created the notification. */
  notificationDate: string | null;
  receivedAt: string;
  /** `push`, or `reconcile` for a recovered notification. */
  source: string;
  /** Record of the product, as sent by the catalogue. */
  value: ProductRecord | null;
}

/**
 * Builds the document. The id includes the time of receipt, because positions start from 1 again in a new log, for
 * example on another machine.
 */
export function documentOf(options: {
  row: NotificationRow;
  record: ProductRecord | null;
  sink: string;
  replayId: number | null;
}): NotificationDocument {
  const { row, record, sink, replayId } = options;
  const notificationId = `n_${row.position}_${row.receivedAtUs.toString(36)}`;
  const { notificationDateUs } = row;
  return {
    id: replayId === null ? notificationId : `${notificationId}_replay_${replayId}`,
    notificationId,
    replay: replayId !== null,
    sink,
    position: row.position,
    subscription: row.subscription,
    event: row.event,
    productId: row.productId,
    productName: row.productName,
    subscriptionId: row.subscriptionId,
    ackId: row.ackId,
    notificationDate: notificationDateUs === null ? null : formatDateUs(notificationDateUs),
    receivedAt: formatDateUs(row.receivedAtUs),
    source: row.source,
    value: record,
  };
}

/** A document with a fictional product, for test deliveries. */
export const sampleDocument: NotificationDocument = {
  ...{ id: 'test', notificationId: 'test', replay: false, test: true, sink: 'test', position: 0 },
  ...{ subscription: 'test', event: 'created', source: 'push', subscriptionId: null, ackId: null },
  productId: '00000000-0000-4000-8000-000000000000',
  productName: 'EARSHOT_TEST_DELIVERY.SAFE',
  notificationDate: null,
  receivedAt: '2000-01-01T00:00:00.000000Z',
  value: {
    Id: '00000000-0000-4000-8000-000000000000',
    Name: 'EARSHOT_TEST_DELIVERY.SAFE',
  },
};

/** Returns null for a notification without a record. Bodies in the log are valid JSON. */
export function recordOf(
  body: Uint8Array,
  { bodyIndex }: Pick<NotificationRow, 'bodyIndex'>,
): ProductRecord | null {
  return recordIn(JSON.parse(new TextDecoder().decode(body)), bodyIndex);
}

/** Rules that select notifications. */
export interface MessageRules {
  /** Subscriptions whose notifications are selected; empty for all. */
  subscriptions: readonly string[];
  /** Events that are selected; empty for all. */
  events: readonly SubscriptionEvent[];
  /** A `$filter` expression of `Products` that the record must match; blank for every product. */
  filter: string;
  /** Maximum time from sensing to publication; null for any. */
  maxAgeUs: number | null;
}

/** `tooOld`: only the age is another one than the rules select. */
export type Match = 'selected' | 'tooOld' | 'other';

/** `read` is called if the rules depend on the record; by default it reads the body. Rejects as `read` does. */
export type Matcher = (
  row: NotificationRow,
  read?: () => Promise<ProductRecord | null>,
) => Promise<Match>;

/**
 * Compiles rules to a function. A filter applies to the record of the notification, not to the current state of the
 * product; a notification without a record only matches a blank filter, and has no age. Throws `invalid` for an invalid
 * filter.
 */
export function compileMatcher(
  { subscriptions, events, filter, maxAgeUs }: MessageRules,
  log: Pick<NotificationLog, 'body'>,
  /** Additional filter of a replay. */
  replayFilter = '',
): Matcher {
  const names = new Set<string | null>(subscriptions);
  const kinds = new Set<string>(events);
  const tests = [filter, replayFilter].flatMap(testsOf);
  return async (row, read = async () => recordOf(await log.body(row.position), row)) => {
    if (names.size > 0 && !names.has(row.subscription)) return 'other';
    if (kinds.size > 0 && !kinds.has(row.event)) return 'other';
    if (tests.length === 0 && maxAgeUs === null) return 'selected';
    const record = await read();
    if (record === null) return tests.length === 0 ? 'selected' : 'other';
    const view = productView({ Id: row.productId, Name: row.productName, ...record });
    if (!tests.every((test) => test(view))) return 'other';
    return isTooOld(view, maxAgeUs) ? 'tooOld' : 'selected';
  };
}

function testsOf(filter: string): ProductTest[] {
  const tree = requireFilter(filter, 'Products');
  return tree === null ? [] : [compileFilter(tree)];
}

/** Returns the view of the product in a document; also usable without a record. */
export function viewOf({ productId, productName, value }: NotificationDocument): ProductView {
  return productView({ Id: productId, Name: productName, ...value });
}
