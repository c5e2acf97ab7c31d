/**
 * Stored state of the catalogue account: registered subscriptions, the history of changes with their reasons, and the
 * times in which notifications may have been missed. All times are microseconds since 1970, UTC.
 */

import { dayUs } from '../core/terms/dates.ts';
import type { DesiredSubscription } from '../core/terms/subscription.ts';
import type { QueueState } from './pull-queue.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

/** A subscription applied by `register`: the desired state, and what is known of the actual one. */
export interface Registration extends DesiredSubscription {
  /** Id in the catalogue; null while there is none, or none is known. */
  subscriptionId: string | null;
  /** Ids of earlier subscriptions of the name that its replacement has not deleted yet. */
  earlierIds: readonly string[];
  /** True while a change has started and is not known to be complete. */
  unfinished: boolean;
  /** The place of its configuration: `earshot.config.ts`, or the flags of `register`. */
  origin: 'file' | 'flags';
  /** Digest of the credentials last sent to the catalogue; null when not known. */
  credentialsDigest: string | null;
  /** Time of the last known activity: a creation, resumption or notification. */
  activityAtUs: number;
  /**
   * Time of the last known notification, ours or shown by the catalogue; before the first one, the time of creation.
   */
  notifiedAtUs: number;
  /** Last time it was seen running in the catalogue; null if never. */
  runningSeenAtUs: number | null;
  /** First time it was seen paused since it last ran; null while it runs. */
  pausedSeenAtUs: number | null;
  /** True if a person changed its status in the catalogue, which `maintain` then keeps. */
  changedByPerson: boolean;
}

export const historyActions = [
  'created',
  'adopted',
  'changed',
  'resumed',
  'paused',
  'replaced',
  'deleted',
  'removed',
  'rotated',
] as const;

export type HistoryAction = (typeof historyActions)[number];

/** Origin of a change: a command of the user, or automatic maintenance. */
export const historyActors = ['register', 'maintain', 'subscriptions', 'credentials'] as const;

export type HistoryActor = (typeof historyActors)[number];

export interface HistoryEntry {
  atUs: number;
  /** Subscription name. */
  subscription: string;
  subscriptionId: string | null;
  action: HistoryAction;
  actor: HistoryActor;
  /** Readable reason, in one sentence. */
  reason: string;
}

/** A time span in which events of a subscription were not pushed, so that they must be fetched later. */
export interface Gap {
  id: number;
  subscription: string;
  events: readonly string[];
  filter: string;
  fromUs: number;
  /** Null while the gap is open. */
  toUs: number | null;
  reason: string;
}

export type NewGap = Pick<Gap, 'subscription' | 'events' | 'filter' | 'fromUs' | 'reason'>;

/** Changes of one step, applied in this order in one transaction. */
export interface AdministrationChange {
  /** Name of the registration to remove; its history and gaps stay. */
  removeRegistration?: string;
  save?: Registration;
  /** Time from which the saved definition is in effect; by default that of the history, else of the last activity. */
  definedAtUs?: number;
  history?: readonly HistoryEntry[];
  /** Ignored when the subscription already has an open gap. */
  openGap?: NewGap;
  /** Closes all open gaps of a subscription. */
  closeGaps?: { subscription: string; toUs: number };
}

/** Last time that a user name delivered to the path of a subscription; for a queue, without a user name. */
export interface DeliveryMark {
  /** Subscription name; null for `/notifications` without a name. */
  subscription: string | null;
  username: string;
  lastAtUs: number;
}

/** Read access, which never waits for the intake. */
export interface AdministrationReader {
  /** Returns the registrations, sorted by name. */
  registrations(): Promise<Registration[]>;
  /** Returns entries, newest first. */
  history(options: { subscription?: string; limit: number }): Promise<HistoryEntry[]>;
  /** Returns the gaps, oldest first. */
  gaps(): Promise<Gap[]>;
  deliveryMarks(): Promise<DeliveryMark[]>;
  /** Returns the latest known states of the queues of pull subscriptions, sorted by subscription. */
  queues(): Promise<QueueState[]>;
}

export interface Administration extends AdministrationReader {
  /** Applies a change atomically; it is on disk when it resolves. Rejects with `unavailable`. */
  commit(change: AdministrationChange): Promise<void>;
  /** Stores the marks; of each, the latest time wins. Rejects with `unavailable`. */
  markDeliveries(marks: readonly DeliveryMark[]): Promise<void>;
  /** Replaces the states of all queues. Rejects with `unavailable`. */
  saveQueues(states: readonly QueueState[]): Promise<void>;
}

/** Credentials for a login at the identity provider. */
export interface PasswordAccount {
  kind: 'password';
  tokenUrl: string;
  clientId: string;
  username: string;
  password: string;
  /** Six digits, or the shared secret (base32) that codes are derived from; undefined without two-factor login. */
  totp: string | undefined;
}

/** Access to the catalogue account: a fixed access token, or a login. */
export type Account = { kind: 'token'; accessToken: string } | PasswordAccount;

/** Access tokens for requests to the catalogue. */
export interface AccessTokens {
  /**
   * Returns a token that stays valid for a while. Rejects with `unauthorized` when the login is refused,
   * `unavailable` when the identity provider cannot be reached, and `configuration` when the configured identity
   * provider, client or code is wrong.
   */
  get(): Promise<string>;
  /** Discards a token that the service has refused; the next `get` returns another one. */
  refused(token: string): Promise<void>;
}

/** Time without activity after which a running subscription is paused. */
const inactivityPauseUs = 60 * dayUs;

/** Time after the last notification when a subscription is deleted. */
const cancellationUs = 365 * dayUs;

export type Lifetime = ReturnType<typeof lifetimeOf>;

/**
 * Computes the lifetime from the catalogue's fields, else from the store: the specification does not guarantee
 * `LastNotificationDate`. `lastDeliveryAtUs` is its last delivery to the receiver.
 */
export function lifetimeOf(input: {
  listed: CatalogueSubscription | null;
  registration: Registration | undefined;
  lastDeliveryAtUs: number | null;
  nowUs: number;
}) {
  const { listed, registration, lastDeliveryAtUs, nowUs } = input;
  const latest = (times: (number | null | undefined)[]) => Math.max(...times.map((us) => us ?? 0));
  const notifiedAtUs = listed?.lastNotificationAtUs ?? lastDeliveryAtUs;
  const known = [notifiedAtUs, listed?.submittedAtUs, registration?.notifiedAtUs];
  const lastNotificationAtUs = latest(known) || nowUs;
  const lastActivityAtUs = latest([lastNotificationAtUs, registration?.activityAtUs]);
  return {
    lastActivityAtUs,
    /** Time of the last known notification; of the creation when there was none. */
    lastNotificationAtUs,
    pausesAtUs: lastActivityAtUs + inactivityPauseUs,
    cancelsAtUs: lastNotificationAtUs + cancellationUs,
  };
}

/**
 * Returns the time of the last delivery to a subscription's path, with any credentials. Ignores times in the future,
 * from a clock that was ahead.
 */
export function lastDeliveryOf(
  name: string,
  marks: readonly DeliveryMark[],
  nowUs: number,
): number | null {
  const times = marks
    .filter((mark) => mark.subscription === name && mark.lastAtUs <= nowUs)
    .map((mark) => mark.lastAtUs);
  return times.length === 0 ? null : Math.max(...times);
}
