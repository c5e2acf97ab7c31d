/**
 * Events of products in the catalogue: created (PublicationDate), modified (ModificationDate) or deleted
 * (DeletionDate). Times are microseconds since 1970, UTC.
 */
import { millisecondOf } from './dates.ts';
import type { SubscriptionEvent } from './subscription.ts';

/**
 * Time between an event and its notification: 46 s and 48 s where it is known. Events published within this time
 * before the registration of a subscription are pushed after it, and expected.
 */
export const notificationDelayUs = 48_000_000;

/** An event of a product, expected by a subscription. */
export interface CatalogueEvent {
  /** Subscription name. */
  subscription: string;
  event: SubscriptionEvent;
  productId: string;
  /** Date of the event in the catalogue. */
  eventUs: number;
}

/** An event to be written to the log. */
export interface MissingEvent extends CatalogueEvent {
  /** JSON in the form of a notification, without AckId and NotificationDate; `value` is the record. */
  body: Uint8Array;
}

/** The part of a push that identifies an event. `event` is in lower case. */
interface PushedState {
  event: string;
  /** ModificationDate of its record; null without one. */
  stateUs: number | null;
  /** NotificationDate. */
  notificationUs: number | null;
}

/**
 * Returns the date of an event as written to the log; for modifications, in whole milliseconds. The catalogue once
 * changed from three to six digits, so one modification may be reported with either.
 */
export function writtenEventUs({ event, eventUs }: Pick<CatalogueEvent, 'event' | 'eventUs'>) {
  return event === 'modified' ? millisecondOf(eventUs) * 1000 : eventUs;
}

/**
 * Returns true when a push reports the event. A product is created and deleted once. A modification is reported by
 * any push whose record has this state or a later one, and by a push of a modification without a record that was sent
 * at that date or later.
 */
export function coversEvent(
  push: PushedState,
  { event, eventUs }: Pick<CatalogueEvent, 'event' | 'eventUs'>,
): boolean {
  if (event !== 'modified') return push.event === event;
  const { stateUs, notificationUs } = push;
  const isNewer = (us: number | null) => us !== null && millisecondOf(us) >= millisecondOf(eventUs);
  if (push.event === 'modified') return isNewer(stateUs ?? notificationUs);
  return push.event === 'created' && isNewer(stateUs);
}
