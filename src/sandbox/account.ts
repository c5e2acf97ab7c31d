/** The account's push and pull subscriptions: their states, their limits, and what time does to them. */
import { z } from 'zod';
import { checkFilter, isBlankFilter } from '../filter/check.ts';
import { compileFilter, type ProductTest } from '../filter/evaluate.ts';
import type { Random, SandboxClock } from './clock.ts';
import { type NotificationEvent, notificationEvents } from './delivery/notification.ts';
import type { LiveServiceSettings, ServiceSettings } from './live-settings.ts';
import { isLoopbackHost } from './local-server.ts';

/** `cancelled` is no state that a subscription stays in: it is removed. */
export const subscriptionStatuses = ['running', 'paused', 'cancelled'] as const;
type SubscriptionStatus = Exclude<(typeof subscriptionStatuses)[number], 'cancelled'>;

/** Where notifications go; null credentials are not sent. */
export interface EndpointAddress {
  /** As it was registered, byte for byte. */
  readonly endpoint: string;
  readonly username: string | null;
  readonly password: string | null;
}

/** A subscription; times in ms since 1970, on the sandbox's clock. */
export interface Subscription {
  /** GUID; counts in any case. */
  readonly id: string;
  readonly events: readonly NotificationEvent[];
  readonly filter: string;
  /** Returns true for a product that the filter matches. */
  readonly matches: ProductTest;
  /** As it was sent; without any effect. */
  readonly stageOrder: boolean;
  readonly submittedMs: number;
  status: SubscriptionStatus;
  /** Time since when the status is what it is. */
  statusMs: number;
  /** The last order to run; null when it came with the creation. */
  resumedMs: number | null;
  lastNotificationMs: number | null;
  /** Null for a pull subscription. */
  address: EndpointAddress | null;
}

/** A subscription with an endpoint. */
export type PushSubscription = Subscription & { address: EndpointAddress };

/** What a subscription is made of; id and dates are created by default. */
export type NewSubscription = Pick<
  Subscription,
  'status' | 'events' | 'filter' | 'stageOrder' | 'address'
> & {
  /** GUID. */
  readonly id?: string | undefined;
  readonly submittedMs?: number | undefined;
  readonly lastNotificationMs?: number | undefined;
};

/** What may be changed; what is left out stays. Only the status of a pull subscription may. */
export interface SubscriptionChanges {
  readonly status?: SubscriptionStatus | undefined;
  readonly address?: Partial<EndpointAddress> | undefined;
}

/** Thrown before anything was changed; the message is what the service answers. */
export class SubscriptionRefusal extends Error {
  override readonly name = 'SubscriptionRefusal';
  readonly kind: 'filter' | 'request' | 'limit' | 'unknown-id';

  constructor(kind: SubscriptionRefusal['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Which endpoints are allowed: by default HTTPS on this machine. */
export interface EndpointRules {
  /** Allows an endpoint on another machine. */
  readonly allowRemote?: boolean;
  /** Allows `http://`, for an endpoint behind a proxy that does the TLS. */
  readonly allowPlainHttp?: boolean;
}

const dayMs = 86_400_000;

/** Specification, Limits: inactivity before the automatic pause. */
const inactivityMaxMs = 60 * dayMs;

/** Specification, Limits: time after the last notification before the automatic cancellation. */
const silenceMaxMs = 365 * dayMs;

/** Every method first applies what time has done. Refusals are thrown as SubscriptionRefusal. */
export type Subscriptions = ReturnType<typeof createSubscriptions>;

/** Creates an account without subscriptions; `random` draws the ids. */
export function createSubscriptions(options: {
  readonly clock: SandboxClock;
  readonly liveSettings: LiveServiceSettings;
  readonly endpointRules: EndpointRules;
  readonly random: Random;
}) {
  const { clock, liveSettings, endpointRules, random } = options;
  /** By id in lower case. */
  const account = new Map<string, Subscription>();
  const firstRunning = Promise.withResolvers<void>();

  const refresh = () => {
    const nowMs = Math.trunc(clock.now());
    expireSubscriptions(account, nowMs);
    return nowMs;
  };
  const list = (): readonly Subscription[] => {
    refresh();
    return [...account.values()];
  };
  const signalRunning = ({ status, address }: Subscription) => {
    if (status === 'running' && address !== null) firstRunning.resolve();
  };
  const find = (id: string): Subscription => {
    refresh();
    const subscription = account.get(id.toLowerCase());
    if (subscription !== undefined) return subscription;
    throw new SubscriptionRefusal('unknown-id', `Subscription with id ${id} not found.`);
  };

  return {
    /** Resolves when a push subscription runs for the first time. */
    firstRunning: firstRunning.promise,
    /** Returns all of them, oldest first. */
    list,
    /** Finds by id in any case. Refuses `unknown-id`. */
    find,
    /** Refuses `filter`, `request` (the endpoint) and `limit`. */
    create: (request: NewSubscription): Subscription => {
      const nowMs = refresh();
      const settings = liveSettings.current();
      const { id, status, address, submittedMs = nowMs, lastNotificationMs = null } = request;
      const matches = readFilter(request.filter, request.events, settings.filterRefusal);
      if (address) checkEndpoint(address, endpointRules);
      if (id !== undefined && account.has(id.toLowerCase())) {
        refuse(`There is a subscription with id ${id} already.`);
      }
      checkCreationLimits([...account.values()], status, settings);
      const dates = { submittedMs, statusMs: submittedMs, resumedMs: null, lastNotificationMs };
      const events = [...new Set(request.events)];
      // Drawn last: a refused creation must not change the ids that a seed brings.
      const subscription = { ...request, ...dates, id: id ?? random.uuid(), events, matches };
      account.set(subscription.id.toLowerCase(), subscription);
      signalRunning(subscription);
      return subscription;
    },
    /** Changes all or nothing. Refuses `unknown-id`, `request` and `limit`. */
    edit: (id: string, changes: SubscriptionChanges): Subscription => {
      const subscription = find(id);
      const address = changedAddress(subscription, changes, endpointRules);
      const others = [...account.values()].filter((other) => other !== subscription);
      const status = allowedStatus(others, subscription, changes.status, liveSettings.current());
      subscription.address = address;
      setStatus(subscription, status, Math.trunc(clock.now()));
      signalRunning(subscription);
      return subscription;
    },
    /** Cancels, which is the same as deleting. Refuses `unknown-id`. */
    remove: (id: string) => void account.delete(find(id).id.toLowerCase()),
    /** Notes that the sender saw a success; one that was cancelled meanwhile is not brought back. */
    delivered: (subscription: Subscription) => {
      subscription.lastNotificationMs = refresh();
    },
  };
}

/** Returns the push subscriptions to an event that have a status, of any filter. */
export function pushSubscriptionsFor(
  account: readonly Subscription[],
  event: NotificationEvent,
  required: SubscriptionStatus,
): PushSubscription[] {
  const all = account.filter(({ status, events }) => status === required && events.includes(event));
  return all.filter(isPush);
}

/** Throws SubscriptionRefusal (`request`). */
export function refuse(message: string): never {
  throw new SubscriptionRefusal('request', message);
}

/**
 * Pauses and removes what has lapsed by `nowMs`. What counts as inactivity, and from when on a
 * subscription without any notification is counted, is not specified: here it is the latest of
 * submission, last notification and last order to run; and the submission.
 */
function expireSubscriptions(account: Map<string, Subscription>, nowMs: number): void {
  for (const [key, subscription] of account) {
    const { submittedMs, lastNotificationMs, resumedMs, status } = subscription;
    const pauseMs =
      Math.max(submittedMs, lastNotificationMs ?? 0, resumedMs ?? 0) + inactivityMaxMs;
    if (nowMs >= (lastNotificationMs ?? submittedMs) + silenceMaxMs) account.delete(key);
    else if (status === 'running' && nowMs >= pauseMs) {
      // As of the end of the 60 days, however late it is noticed.
      Object.assign(subscription, { status: 'paused', statusMs: pauseMs });
    }
  }
}

/** Throws SubscriptionRefusal (`limit`) when the account may not have one more of that status. */
function checkCreationLimits(
  account: readonly Subscription[],
  status: SubscriptionStatus,
  { runningMax, totalMax }: ServiceSettings,
): void {
  if (account.length >= totalMax) {
    throw new SubscriptionRefusal(
      'limit',
      `The maximum number of subscriptions (${totalMax}) has been reached. Delete one first.`,
    );
  }
  if (status === 'running' && countRunning(account) >= runningMax) throw tooManyRunning(runningMax);
}

/**
 * Returns the status that an edit leads to; undefined when it stays. What the real service does when
 * two run already is not known: the settings say whether it refuses (`limit`) or does nothing.
 */
function allowedStatus(
  others: readonly Subscription[],
  subscription: Subscription,
  requested: SubscriptionStatus | undefined,
  { runningMax, resumeBeyondLimit }: ServiceSettings,
): SubscriptionStatus | undefined {
  if (requested !== 'running' || subscription.status === 'running') return requested;
  if (countRunning(others) < runningMax) return requested;
  if (resumeBeyondLimit === 'refuse') throw tooManyRunning(runningMax);
  return undefined;
}

function countRunning(account: readonly Subscription[]): number {
  return account.filter(({ status }) => status === 'running').length;
}

function tooManyRunning(runningMax: number): SubscriptionRefusal {
  return new SubscriptionRefusal(
    'limit',
    `The maximum number of running subscriptions (${runningMax}) has been reached. Pause one first, or leave this one paused.`,
  );
}

function setStatus(
  subscription: Subscription,
  status: SubscriptionStatus | undefined,
  nowMs: number,
): void {
  if (status === 'running') subscription.resumedMs = nowMs;
  if (status === undefined || status === subscription.status) return;
  subscription.status = status;
  subscription.statusMs = nowMs;
}

function changedAddress(
  subscription: Subscription,
  { address: changes }: SubscriptionChanges,
  rules: EndpointRules,
): EndpointAddress | null {
  if (changes === undefined) return subscription.address;
  if (!isPush(subscription)) {
    return refuse('A pull subscription has no endpoint that could be changed.');
  }
  const address = { ...subscription.address, ...changes };
  checkEndpoint(address, rules);
  return address;
}

/** Throws SubscriptionRefusal (`request`) for an endpoint that is not allowed; credentials are not repeated. */
function checkEndpoint({ endpoint, username }: EndpointAddress, rules: EndpointRules): void {
  const url = URL.parse(endpoint);
  if (url === null) refuse('The endpoint is not a URL; it must begin with https://.');
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && rules.allowPlainHttp)) {
    refuse(
      `The endpoint begins with ${url.protocol}; it must begin with https://, as the catalogue delivers to nothing else.`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    refuse('The endpoint has credentials in its URL; give them as user name and password.');
  }
  if (username?.includes(':')) {
    refuse('The user name has a colon, which Basic Authentication cannot carry; choose another.');
  }
  if (rules.allowRemote || isLoopbackHost(url.hostname)) return;
  refuse(
    `The endpoint ${url.host} is not on this machine. The sandbox stays on localhost, 127.0.0.0/8 and [::1] so that nobody is flooded by mistake; add --allow-remote if this one is yours.`,
  );
}

/**
 * Reads a FilterParam. Throws SubscriptionRefusal (`filter`) for one that a query for the products of the
 * events could not have: deleted ones for `deleted`, else published ones (specification, FilterParam).
 * A blank filter is every product. `refusal` is the answer to all others; null: none.
 */
export function readFilter(
  filter: string,
  events: readonly NotificationEvent[],
  refusal: string | null,
): ProductTest {
  if (isBlankFilter(filter)) return () => true;
  const isDeletion = (event: NotificationEvent) => event === 'deleted';
  const checked = [
    ...(events.every(isDeletion) ? [] : [checkFilter(filter, 'Products')]),
    ...(events.some(isDeletion) ? [checkFilter(filter, 'DeletedProducts')] : []),
  ];
  const error = checked
    .flatMap(({ findings }) => findings)
    .find(({ severity }) => severity === 'error');
  const tree = checked[0]?.tree;
  if (refusal === null && error === undefined && tree != null) return compileFilter(tree);
  const { code, start = 0, end = 0, message = 'It says nothing.' } = error ?? {};
  const isField = code === 'unknown-field' || code === 'field-of-other-entity';
  const place = error === undefined ? '' : ` (at character ${start + 1})`;
  // `Invalid field` is what the catalogue says of an unknown one; no other text of it is known.
  const problem = isField ? `Invalid field: ${filter.slice(start, end)}` : `${message}${place}`;
  throw new SubscriptionRefusal('filter', `Invalid filter: ${refusal ?? problem}`);
}

export function isPush(subscription: Subscription): subscription is PushSubscription {
  return subscription.address !== null;
}

/** Returns a copy of a subscription without credentials; dates are ISO 8601 in UTC. */
export function viewOf(subscription: Subscription) {
  const { id, status, statusMs, events, filter, address } = subscription;
  const { submittedMs, lastNotificationMs } = subscription;
  return {
    id,
    type: isPush(subscription) ? ('push' as const) : ('pull' as const),
    status,
    /** Since when; a pause for inactivity is dated to the end of the 60 days. */
    statusDate: toIso(statusMs),
    events: [...events],
    filter,
    /** Null for a pull subscription. */
    endpoint: address?.endpoint ?? null,
    submissionDate: toIso(submittedMs),
    lastNotificationDate: lastNotificationMs === null ? null : toIso(lastNotificationMs),
  };
}

/** Writes ISO 8601 in UTC with milliseconds. */
export function toIso(ms: number): string {
  return new Date(ms).toISOString();
}

const dateMs = z.iso
  .datetime({ error: 'expected a date like 2026-05-01T12:00:00.000Z' })
  .transform((iso) => Date.parse(iso))
  .optional();

/** A subscription that is added from outside, as another client of the account would; unknown names are an error. */
export const addedSubscriptionSchema = z
  .strictObject({
    type: z.enum(['pull', 'push']).default('push'),
    status: z.enum(['running', 'paused']).default('running'),
    events: z.array(z.enum(notificationEvents)).min(1).default(['created']),
    filter: z.string().default(''),
    /** Under the same rules as an endpoint that is registered. */
    endpoint: z.string().optional(),
    username: z.string().nullable().default(null),
    password: z.string().nullable().default(null),
    /** Drawn by default. */
    id: z.guid().optional(),
    /** ISO 8601, UTC; now by default. */
    submissionDate: dateMs,
    lastNotificationDate: dateMs,
  })
  .refine(({ type, endpoint }) => (type === 'push') === (endpoint !== undefined), {
    path: ['endpoint'],
    error: 'a push subscription needs one, a pull subscription has none',
  })
  .transform(
    ({ endpoint, username, password, submissionDate, lastNotificationDate, ...added }) => ({
      ...added,
      stageOrder: false,
      address: endpoint === undefined ? null : { endpoint, username, password },
      submittedMs: submissionDate,
      lastNotificationMs: lastNotificationDate,
    }),
  );
export type AddedSubscription = z.input<typeof addedSubscriptionSchema>;
