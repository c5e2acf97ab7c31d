/** The JSON document that a sink is given for each notification. */
import { formatDateUs } from '../domain/dates.ts';
import type { NotificationLog, NotificationRow } from '../domain/ports.ts';
import type { SinkRules } from '../domain/sinks.ts';
import { requireFilter } from '../filter/check.ts';
import { compileFilter, type ProductTest } from '../filter/evaluate.ts';
import { type ProductRecord, recordIn } from '../filter/product-record.ts';
import { productView } from '../filter/product-view.ts';

/** Fields are only ever added; those that are not known are null. Times are ISO 8601 UTC. */
export interface SinkDocument {
  /** The same however often this is handed over, and no other's: what was seen already may be left out. */
  id: string;
  /** `id` of the notification's first hand-over; the two differ in a replay. */
  notificationId: string;
  /** True when a part of the past is handed over once more (`earshot replay`). */
  replay: boolean;
  /** True for a delivery of `earshot sinks test`, which reports nothing new; absent from all others. */
  test?: true;
  /** The sink's name. */
  sink: string;
  /** Place in the log; grows in the order of receipt. */
  position: number;
  /** The subscription's name, as in the path that it was delivered to. */
  subscription: string | null;
  /** `created`, `modified`, `deleted`, or a name that is not known yet; in small letters. */
  event: string;
  productId: string;
  productName: string | null;
  /** The subscription's id at the catalogue. */
  subscriptionId: string | null;
  ackId: string | null;
  /** When the catalogue made it. */
  notificationDate: string | null;
  receivedAt: string;
  /** `push`, or `reconcile` for one that was missing and was fetched. */
  source: string;
  /** The product's record as the catalogue sent it. */
  value: ProductRecord | null;
}

/**
 * Builds the document. The time of receipt is in the id for those who move to another machine: a new log counts
 * its positions from 1 again.
 */
export function documentOf(options: {
  row: NotificationRow;
  record: ProductRecord | null;
  sink: string;
  replayId: number | null;
}): SinkDocument {
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

/** Null where it came without one. A body of the log could be read when it was stored. */
export function recordOf(
  body: Uint8Array,
  { bodyIndex }: Pick<NotificationRow, 'bodyIndex'>,
): ProductRecord | null {
  return recordIn(JSON.parse(new TextDecoder().decode(body)), bodyIndex);
}

/** Rejects with `unavailable` when a body cannot be read. */
export type Wants = (row: NotificationRow) => Promise<boolean>;

/**
 * Makes the filters ready, so that they are read once and not for each product. A filter looks at the record
 * that came with the notification, and so at the product as it was then; one without a record passes blank
 * filters only. Throws `invalid` for a filter that is none.
 */
export function compileWants(
  definition: Pick<SinkRules, 'subscriptions' | 'events' | 'filter'>,
  log: Pick<NotificationLog, 'body'>,
  /** One more, of a replay, that must match as well. */
  replayFilter = '',
): Wants {
  const subscriptions = new Set<string | null>(definition.subscriptions);
  const events = new Set<string>(definition.events);
  const tests = [definition.filter, replayFilter].flatMap(testsOf);
  return async (row) => {
    if (subscriptions.size > 0 && !subscriptions.has(row.subscription)) return false;
    if (events.size > 0 && !events.has(row.event)) return false;
    if (tests.length === 0) return true;
    const record = recordOf(await log.body(row.position), row);
    if (record === null) return false;
    const view = productView({ Id: row.productId, Name: row.productName, ...record });
    return tests.every((test) => test(view));
  };
}

function testsOf(filter: string): ProductTest[] {
  const tree = requireFilter(filter, 'Products');
  return tree === null ? [] : [compileFilter(tree)];
}
