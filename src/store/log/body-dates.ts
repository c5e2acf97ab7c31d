/** Dates in the records that bodies hold: of events, and of publication. */
import { type CatalogueEvent, writtenEventUs } from '../../domain/completeness.ts';
import type { Notification } from '../../domain/notification.ts';
import { contentOf, type Delivery, type PublicationDelay } from '../../domain/ports.ts';
import { type SubscriptionEvent, subscriptionEvents } from '../../domain/subscription.ts';
import { recordIn } from '../../filter/product-record.ts';
import { bodyDocument, dateUs } from '../products/product-record.ts';

const dateOf = {
  created: 'PublicationDate',
  modified: 'ModificationDate',
  deleted: 'DeletionDate',
} as const satisfies Record<SubscriptionEvent, string>;

function dateIn(body: Uint8Array, index: number, event: SubscriptionEvent): number | null {
  return dateUs(recordIn(bodyDocument(body), index)?.[dateOf[event]]);
}

/** The ModificationDate of a record in a body that could be read; null without a record, or without a date in it. */
export function modificationUs(body: Uint8Array, index: number): number | null {
  return dateIn(body, index, 'modified');
}

/** The event that another log had recovered and delivers; null for a delivery of any other kind. */
export function recoveredEvent(
  delivery: Delivery,
  { ackId, event: name, productId, index }: Notification,
): CatalogueEvent | null {
  const { source, subscription } = delivery;
  if (source !== 'reconcile' || subscription === null || ackId !== null) return null;
  const event = subscriptionEvents.find((known) => known === name);
  const eventUs = event === undefined ? null : dateIn(contentOf(delivery), index, event);
  if (event === undefined || eventUs === null) return null;
  return { subscription, event, productId, eventUs: writtenEventUs({ event, eventUs }) };
}

/** Reading a body of this size takes well below a millisecond. */
const bodyBytesMax = 64 * 2 ** 10;

/**
 * The delay from the PublicationDate in the body to its receipt. Null when it does not tell of a created product, has no
 * date, was not pushed, or is very large. Dates of other clocks may lie ahead: that is no delay. The body must
 * be one that could be read.
 */
export function publicationDelay(delivery: Delivery): PublicationDelay | null {
  const body = contentOf(delivery);
  const { subscription, receivedAtUs, source } = delivery;
  if (source !== 'push' || body.byteLength > bodyBytesMax) return null;
  const document = bodyDocument(body);
  const publishedUs = isCreated(document) ? dateUs(recordIn(document, 0)?.PublicationDate) : null;
  if (publishedUs === null) return null;
  return { subscription, seconds: Math.max(0, receivedAtUs - publishedUs) / 1_000_000 };
}

function isCreated(document: unknown): boolean {
  const item: unknown = Array.isArray(document) ? document[0] : document;
  if (typeof item !== 'object' || item === null || !('SubscriptionEvent' in item)) return false;
  return String(item.SubscriptionEvent).toLowerCase() === 'created';
}
