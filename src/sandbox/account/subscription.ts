/** A subscription of the account as the service keeps it, and the view of it that holds no secret. */
import type { ProductTest } from '../../filter/evaluate.ts';
import type { NotificationEvent } from '../delivery/notification.ts';

export const subscriptionTypes = ['pull', 'push'] as const;
export type SubscriptionType = (typeof subscriptionTypes)[number];

/** `cancelled` is no state that a subscription stays in: it is gone. */
export const subscriptionStatuses = ['running', 'paused', 'cancelled'] as const;
export type SubscriptionStatus = Exclude<(typeof subscriptionStatuses)[number], 'cancelled'>;

/** Where notifications go; null credentials are not sent. */
export interface EndpointAddress {
  /** As it was registered, byte for byte. */
  readonly endpoint: string;
  readonly username: string | null;
  readonly password: string | null;
}

/** What is known of a subscription; times in ms since 1970, on the sandbox's clock. */
export interface Subscription {
  /** GUID; counts in any case. */
  readonly id: string;
  readonly events: readonly NotificationEvent[];
  readonly filter: string;
  /** What the filter says of a product. */
  readonly matches: ProductTest;
  /** As it was sent; without any effect. */
  readonly stageOrder: boolean;
  readonly submittedMs: number;
  status: SubscriptionStatus;
  /** Since when the status is what it is. */
  statusMs: number;
  /** The last order to run; null when it came with the creation. */
  resumedMs: number | null;
  lastNotificationMs: number | null;
  /** Null for a pull subscription. */
  address: EndpointAddress | null;
}

/** A subscription with an endpoint. */
export type PushSubscription = Subscription & { address: EndpointAddress };

/** A copy for whoever looks on; dates are ISO 8601 in UTC. */
export interface SubscriptionView {
  readonly id: string;
  readonly type: SubscriptionType;
  readonly status: SubscriptionStatus;
  /** Since when; a pause for inactivity is dated to the end of the 60 days. */
  readonly statusDate: string;
  readonly events: readonly NotificationEvent[];
  readonly filter: string;
  /** Null for a pull subscription. */
  readonly endpoint: string | null;
  readonly submissionDate: string;
  readonly lastNotificationDate: string | null;
}

/** A push subscription has an endpoint, a pull subscription has none. */
export function isPush(subscription: Subscription): subscription is PushSubscription {
  return subscription.address !== null;
}

export function typeOf(subscription: Subscription): SubscriptionType {
  return isPush(subscription) ? 'push' : 'pull';
}

/** Copies what may be seen of a subscription: no credentials. */
export function viewOf(subscription: Subscription): SubscriptionView {
  const { id, status, statusMs, events, filter, address } = subscription;
  const { submittedMs, lastNotificationMs } = subscription;
  return {
    id,
    type: typeOf(subscription),
    status,
    statusDate: toIso(statusMs),
    events: [...events],
    filter,
    endpoint: address?.endpoint ?? null,
    submissionDate: toIso(submittedMs),
    lastNotificationDate: lastNotificationMs === null ? null : toIso(lastNotificationMs),
  };
}

/** ISO 8601, UTC, with milliseconds: `YYYY-MM-DDThh:mm:ss.sssZ`. */
export function toIso(ms: number): string {
  return new Date(ms).toISOString();
}
