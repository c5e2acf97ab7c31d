/** Subscriptions as their user states them, and the endpoints that tell them apart at the catalogue. */

/** What can happen to a product (specification, SubscriptionEvent). */
export const subscriptionEvents = ['created', 'modified', 'deleted'] as const;
export type SubscriptionEvent = (typeof subscriptionEvents)[number];

/** States a user may ask for; the catalogue has a third, `cancelled`. */
export const requestedStatuses = ['running', 'paused'] as const;
export type RequestedStatus = (typeof requestedStatuses)[number];

/** The form of a subscription's name (design, section 4). */
export const subscriptionNamePattern = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** The name of the one subscription of those who need no names. */
export const defaultSubscriptionName = 'default';

/** A subscription as its user wants it. */
export interface DesiredSubscription {
  name: string;
  /** At least one, each once. */
  events: readonly SubscriptionEvent[];
  /** A `$filter` expression; empty for every product. Kept byte by byte. */
  filter: string;
  status: RequestedStatus;
}

/**
 * Where the catalogue delivers a subscription to. A subscription has no name at the catalogue, so
 * the path carries it (facts, catalogue 1.3). `publicUrl` is an origin.
 */
export function endpointOf(publicUrl: string, name: string): string {
  return `${publicUrl}/notifications/${name}`;
}

/** The name in an endpoint under a public URL; null for any other URL. */
export function nameInEndpoint(publicUrl: string, endpoint: string): string | null {
  const url = URL.parse(endpoint);
  if (url === null || url.origin !== new URL(publicUrl).origin) return null;
  if (url.search !== '' || url.hash !== '') return null;
  const name = /^\/notifications\/([^/]+)\/?$/.exec(url.pathname)?.[1];
  return name !== undefined && subscriptionNamePattern.test(name) ? name : null;
}

/** Events in the order of the specification, each once: equal lists are equal subscriptions. */
export function sortedEvents<Event extends string>(events: readonly Event[]): Event[] {
  const known: readonly string[] = subscriptionEvents;
  const rank = (event: string) => known.indexOf(event);
  return [...new Set(events)].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
}
