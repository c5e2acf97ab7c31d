/** Sample catalogue events, recovered or pushed. */

import { formatDateUs } from '../../src/core/terms/dates.ts';
import type { MissingEvent, SubscriptionEvent } from '../../src/core/terms/subscription.ts';
import { delivery, notification } from '../helpers/deliveries.ts';

export const hour = 3_600_000_000;
/** Start of an hour. */
export const atUs = 1_794_999_600_000_000;
export const subscription = 'alps';

const dateOf = {
  created: 'PublicationDate',
  modified: 'ModificationDate',
  deleted: 'DeletionDate',
} as const;

interface Fields {
  event?: SubscriptionEvent;
  eventUs?: number;
  subscription?: string;
}

/** Fields of a modification event. */
export const modified = (eventUs: number) => ({ event: 'modified', eventUs }) as const;

/** An event of the product with this number, one minute into the hour. */
export function missing(number: number, fields: Fields = {}): MissingEvent {
  const { event = 'created', eventUs = atUs + 60_000_000, ...rest } = fields;
  const { AckId: _, NotificationDate: __, ...body } = pushed(number, { event, eventUs });
  const productId = `product-${number}`;
  return {
    subscription,
    event,
    productId,
    eventUs,
    body: Buffer.from(JSON.stringify(body)),
    ...rest,
  };
}

/** The push of such an event. */
export function pushed(number: number, fields: Fields & Record<string, unknown> = {}) {
  const { event = 'created', eventUs = atUs + 60_000_000, ...rest } = fields;
  const made = notification(number, { SubscriptionEvent: event });
  const value = { ...Object(made.value), [dateOf[event]]: formatDateUs(eventUs) };
  return { ...made, NotificationDate: formatDateUs(eventUs + 30_000_000), value, ...rest };
}

/** Received ten minutes after the start of the hour by default. */
export const push = (body: unknown, fields: Parameters<typeof delivery>[1] = {}) =>
  delivery(body, { subscription, receivedAtUs: atUs + 600_000_000, ...fields });
