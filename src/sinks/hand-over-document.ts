/** The JSON document that a sink is given for each notification. */
import { formatDateUs } from '../domain/notification-date.ts';
import type { NotificationRow } from '../domain/ports.ts';
import type { ProductRecord } from '../filter/product-record.ts';

/** Fields are only ever added; those that are not known are null. Times are ISO 8601 UTC. */
export interface HandOver {
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
export function handOverOf(options: {
  row: NotificationRow;
  record: ProductRecord | null;
  sink: string;
  replayId: number | null;
}): HandOver {
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
