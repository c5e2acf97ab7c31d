/** What the records in bodies say of the state of their products. */
import { type CatalogueEvent, writtenEventUs } from '../domain/coverage.ts';
import { contentOf } from '../domain/delivery-content.ts';
import type { Notification } from '../domain/notification.ts';
import type { Delivery } from '../domain/ports.ts';
import { type SubscriptionEvent, subscriptionEvents } from '../domain/subscription.ts';
import { recordIn } from '../filter/product-record.ts';
import { bodyDocument, dateUs } from './products/product-record.ts';

/** For bodies that were read before: what is asked of one is the place of a notification in it. */
export interface BodyState {
  /** The ModificationDate of the record; null without a record, or without a date in it. */
  modificationUs(body: Uint8Array, index: number): number | null;
  /** The event that another log had recovered and hands over; null for a delivery of any other kind. */
  recovered(delivery: Delivery, item: Notification): CatalogueEvent | null;
}

const dateOf = {
  created: 'PublicationDate',
  modified: 'ModificationDate',
  deleted: 'DeletionDate',
} as const satisfies Record<SubscriptionEvent, string>;

/** Keeps the last body as it was parsed: there may be thousands of notifications in it. */
export function createBodyState(): BodyState {
  let last: { body: Uint8Array; document: unknown } | undefined;
  function dateIn(body: Uint8Array, index: number, event: SubscriptionEvent): number | null {
    if (last?.body !== body) last = { body, document: bodyDocument(body) };
    const record = recordIn(last.document, index);
    return record === null ? null : dateUs(record[dateOf[event]]);
  }
  return {
    modificationUs: (body, index) => dateIn(body, index, 'modified'),
    recovered: (delivery, { ackId, event: name, productId, index }) => {
      const { source, subscription } = delivery;
      if (source !== 'reconcile' || subscription === null || ackId !== null) return null;
      const event = subscriptionEvents.find((known) => known === name);
      const eventUs = event === undefined ? null : dateIn(contentOf(delivery), index, event);
      if (event === undefined || eventUs === null) return null;
      return { subscription, event, productId, eventUs: writtenEventUs({ event, eventUs }) };
    },
  };
}
