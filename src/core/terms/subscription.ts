/** Subscriptions in their desired state, and the endpoints that identify them in the catalogue. */
import { AppError } from './app-error.ts';
import { millisecondOf } from './dates.ts';

/** Events of a product (specification, SubscriptionEvent). */
export const subscriptionEvents = ['created', 'modified', 'deleted'] as const;
export type SubscriptionEvent = (typeof subscriptionEvents)[number];

/** States that a user can request. The catalogue has a third one, `cancelled`. */
export const requestedStatuses = ['running', 'paused'] as const;
export type RequestedStatus = (typeof requestedStatuses)[number];

/**
 * Types of a subscription (specification, SubscriptionType). `push`: the catalogue sends each notification to an
 * endpoint. `pull`: the catalogue keeps a queue, which earshot reads and acknowledges.
 */
export const subscriptionTypes = ['push', 'pull'] as const;
export type SubscriptionType = (typeof subscriptionTypes)[number];

/** Form of a subscription name (design, section 4). */
export const subscriptionNamePattern = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** Name of the subscription when only one is used. */
export const defaultSubscriptionName = 'default';

/** Desired state of a subscription. */
export interface DesiredSubscription {
  name: string;
  type: SubscriptionType;
  /** At least one, without duplicates. */
  events: readonly SubscriptionEvent[];
  /** A `$filter` expression, kept byte for byte; empty for every product. */
  filter: string;
  status: RequestedStatus;
}

/**
 * Returns the endpoint of a subscription. The path contains the name, because a subscription has no name at the
 * catalogue (facts, catalogue 1.3). `publicUrl` is an origin.
 */
export function endpointOf(publicUrl: string, name: string): string {
  return `${publicUrl}/notifications/${name}`;
}

/** Returns the endpoint of a push subscription; null for a pull subscription. Throws as `requirePublicUrl` does. */
export function endpointFor(
  publicUrl: string | null,
  { name, type }: Pick<DesiredSubscription, 'name' | 'type'>,
): string | null {
  return type === 'pull' ? null : endpointOf(requirePublicUrl(publicUrl), name);
}

/** Throws `configuration` without a public URL, which push subscriptions need. */
export function requirePublicUrl(publicUrl: string | null): string {
  if (publicUrl !== null) return publicUrl;
  throw new AppError('configuration', 'EARSHOT_PUBLIC_URL is not set.', {
    advice:
      'Set EARSHOT_PUBLIC_URL to the https URL at which the catalogue reaches the receiver. Without a public host, use a pull subscription: `earshot register --pull`.',
  });
}

/** Returns the name in an endpoint under a public URL; null for any other URL. */
export function nameInEndpoint(publicUrl: string, endpoint: string): string | null {
  const url = URL.parse(endpoint);
  if (url === null || url.origin !== new URL(publicUrl).origin) return null;
  if (url.search !== '' || url.hash !== '') return null;
  const name = /^\/notifications\/([^/]+)\/?$/.exec(url.pathname)?.[1];
  return name !== undefined && subscriptionNamePattern.test(name) ? name : null;
}

/**
 * Returns events in the order of the specification, without duplicates, so that equal lists mean equal subscriptions.
 */
export function sortedEvents<Event extends string>(events: readonly Event[]): Event[] {
  const known: readonly string[] = subscriptionEvents;
  const rank = (event: string) => known.indexOf(event);
  return [...new Set(events)].sort().sort((a, b) => rank(a) - rank(b));
}

/** Describes the filter of a subscription. */
export const filterText = (filter: string) => filter || '(none: all products)';

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
