/** The account's subscriptions: their states, their limits, and what time does to them. */

import type { ProductTest } from '../../filter/evaluate.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import type { Random } from '../random.ts';
import type { SandboxClock } from '../sandbox-clock.ts';
import type { ServiceKnobs } from '../services/service-settings.ts';
import { type EndpointRules, endpointFault } from './endpoint-rules.ts';
import {
  type EndpointAddress,
  isPush,
  type PushSubscription,
  type Subscription,
  type SubscriptionStatus,
  typeOf,
} from './subscription.ts';
import { readFilter } from './subscription-filter.ts';
import { isCancelledBy, pauseIfInactive } from './subscription-lapse.ts';
import { checkCreationLimits, permittedStatus } from './subscription-limits.ts';
import { SubscriptionRefusal } from './subscription-refusal.ts';

/** What a subscription is made of; id and dates are made unless told. */
export interface NewSubscription {
  readonly status: SubscriptionStatus;
  readonly events: readonly NotificationEvent[];
  readonly filter: string;
  readonly stageOrder: boolean;
  /** Null for a pull subscription. */
  readonly address: EndpointAddress | null;
  /** GUID. */
  readonly id?: string | undefined;
  readonly submittedMs?: number | undefined;
  readonly lastNotificationMs?: number | undefined;
}

/** What may be changed; what is left out stays. Only the status of a pull subscription may. */
export interface SubscriptionChanges {
  readonly status?: SubscriptionStatus | undefined;
  readonly address?: Partial<EndpointAddress> | undefined;
}

/** Every method first lets pass what time has done. Refusals are thrown as SubscriptionRefusal. */
export interface Subscriptions {
  /** Resolves when a push subscription runs for the first time. */
  readonly firstRunning: Promise<void>;
  /** All of them, oldest first. */
  list(): readonly Subscription[];
  /** Finds by id in any case. Refuses `unknown-id`. */
  find(id: string): Subscription;
  /** Refuses `filter`, `request` (the endpoint) and `limit`. */
  create(request: NewSubscription): Subscription;
  /** Changes all or nothing. Refuses `unknown-id`, `request` and `limit`. */
  edit(id: string, changes: SubscriptionChanges): Subscription;
  /** Cancelling and deleting are one: it is gone. Refuses `unknown-id`. */
  remove(id: string): void;
  /** The push subscriptions to which an event is owed if the product matches their filter. */
  listening(event: NotificationEvent): readonly PushSubscription[];
  /** The push subscriptions that would listen to an event, were they not paused. */
  paused(event: NotificationEvent): readonly PushSubscription[];
  /** Tells that the sender saw a success; without effect when the subscription is gone. */
  delivered(subscription: Subscription): void;
}

export interface SubscriptionsOptions {
  readonly clock: SandboxClock;
  readonly knobs: ServiceKnobs;
  readonly endpointRules: EndpointRules;
  /** Makes the ids. */
  readonly random: Random;
}

/** By id in small letters. */
type Account = Map<string, Subscription>;

/** Creates an account without subscriptions. */
export function createSubscriptions(options: SubscriptionsOptions): Subscriptions {
  const { clock, knobs, endpointRules } = options;
  const account: Account = new Map();
  const firstRunning = Promise.withResolvers<void>();

  const lapse = () => {
    const nowMs = Math.trunc(clock.now());
    for (const [key, subscription] of account) {
      if (isCancelledBy(subscription, nowMs)) account.delete(key);
      else pauseIfInactive(subscription, nowMs);
    }
    return nowMs;
  };
  const list = () => {
    lapse();
    return [...account.values()];
  };
  const noteRunning = (subscription: Subscription) => {
    if (subscription.status === 'running' && isPush(subscription)) firstRunning.resolve();
  };
  const find = (id: string) => {
    lapse();
    const subscription = account.get(id.toLowerCase());
    if (subscription !== undefined) return subscription;
    throw new SubscriptionRefusal('unknown-id', `Subscription with id ${id} not found.`);
  };

  return {
    firstRunning: firstRunning.promise,
    list,
    find,
    create: (request) => {
      const nowMs = lapse();
      const { filterRefusal } = knobs.current();
      const matches = readFilter(request.filter, request.events, filterRefusal);
      if (request.address) checkAddress(request.address, endpointRules);
      checkNewId(account, request);
      checkCreationLimits([...account.values()], request.status, knobs.current());
      const subscription = toSubscription(request, matches, options.random, nowMs);
      account.set(subscription.id.toLowerCase(), subscription);
      noteRunning(subscription);
      return subscription;
    },
    edit: (id, changes) => {
      const subscription = find(id);
      const address = changedAddress(subscription, changes, endpointRules);
      const others = [...account.values()].filter((other) => other !== subscription);
      const status = permittedStatus(others, subscription, changes.status, knobs.current());
      subscription.address = address;
      setStatus(subscription, status, Math.trunc(clock.now()));
      noteRunning(subscription);
      return subscription;
    },
    remove: (id) => void account.delete(find(id).id.toLowerCase()),
    listening: (event) => subscribed(list(), event, 'running'),
    paused: (event) => subscribed(list(), event, 'paused'),
    delivered: (subscription) => {
      // A subscription that time has cancelled is not brought back by an attempt still under way.
      subscription.lastNotificationMs = lapse();
    },
  };
}

function subscribed(
  account: readonly Subscription[],
  event: NotificationEvent,
  wanted: SubscriptionStatus,
): readonly PushSubscription[] {
  return account
    .filter(({ status, events }) => status === wanted && events.includes(event))
    .filter(isPush);
}

function checkAddress(address: EndpointAddress, rules: EndpointRules): void {
  const fault = endpointFault(address, rules);
  if (fault !== null) throw new SubscriptionRefusal('request', fault);
}

function checkNewId(account: Account, { id }: NewSubscription): void {
  if (id === undefined || !account.has(id.toLowerCase())) return;
  throw new SubscriptionRefusal('request', `There is a subscription with id ${id} already.`);
}

function toSubscription(
  request: NewSubscription,
  matches: ProductTest,
  random: Random,
  nowMs: number,
): Subscription {
  const { status, events, filter, stageOrder, address } = request;
  const { id = random.uuid(), submittedMs = nowMs, lastNotificationMs = null } = request;
  return {
    id,
    events: [...new Set(events)],
    filter,
    matches,
    stageOrder,
    submittedMs,
    status,
    statusMs: submittedMs,
    resumedMs: null,
    lastNotificationMs,
    address,
  };
}

function changedAddress(
  subscription: Subscription,
  { address: changes }: SubscriptionChanges,
  rules: EndpointRules,
): EndpointAddress | null {
  if (changes === undefined) return subscription.address;
  if (!isPush(subscription)) {
    throw new SubscriptionRefusal(
      'request',
      `A ${typeOf(subscription)} subscription has no endpoint that could be changed.`,
    );
  }
  const address = { ...subscription.address, ...changes };
  checkAddress(address, rules);
  return address;
}

function setStatus(
  subscription: Subscription,
  status: SubscriptionStatus | undefined,
  nowMs: number,
): void {
  if (status === undefined) return;
  if (status === 'running') subscription.resumedMs = nowMs;
  if (status === subscription.status) return;
  subscription.status = status;
  subscription.statusMs = nowMs;
}
