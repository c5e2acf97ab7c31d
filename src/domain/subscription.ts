/** Subscriptions in their desired state, and the endpoints that identify them in the catalogue. */

/** Events of a product (specification, SubscriptionEvent). */
export const subscriptionEvents = ['created', 'modified', 'deleted'] as const;
export type SubscriptionEvent = (typeof subscriptionEvents)[number];

/** States that a user can request. The catalogue has a third one, `cancelled`. */
export const requestedStatuses = ['running', 'paused'] as const;
export type RequestedStatus = (typeof requestedStatuses)[number];

/** Form of a subscription name (design, section 4). */
export const subscriptionNamePattern = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** Name of the subscription when only one is used. */
export const defaultSubscriptionName = 'default';

/** Desired state of a subscription. */
export interface DesiredSubscription {
  name: string;
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
  return [...new Set(events)].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
}
