/**
 * What earshot remembers of the catalogue account: which subscriptions it registered, what it did
 * and why, and when notifications may have been missed. All times are microseconds since 1970, UTC.
 */
import type { DesiredSubscription } from './subscription.ts';

/** A subscription that `register` applied: the desired state, and what is known of the real one. */
export interface Registration extends DesiredSubscription {
  /** Null while there is none at the catalogue, or none that we know of. */
  subscriptionId: string | null;
  /** A creation or replacement was begun, and is not known to be finished. */
  unfinished: boolean;
  /** A digest of the credentials the catalogue was given last; null when that is not known. */
  credentialsDigest: string | null;
  /** The last sign of life that we know of: a creation, resumption, or notification. */
  activityAtUs: number;
  /** The last notification that we know of, or was shown; until there is one, the creation. */
  notifiedAtUs: number;
  /** When it was last seen running at the catalogue; null when never. */
  runningSeenAtUs: number | null;
  /** When it was first seen paused, since it last ran; null while it runs. */
  pausedSeenAtUs: number | null;
  /** Why `maintain` leaves it as it is: our own command paused it, or a person changed it elsewhere. */
  heldBy: 'command' | 'person' | null;
  /** The last thing `maintain` reported about it, so that a report is not repeated; null for none. */
  reported: string | null;
}

export const historyActions = [
  'created',
  'adopted',
  'changed',
  'resumed',
  'paused',
  'replaced',
  'recreated',
  'deleted',
  'cancelled',
  'forgotten',
  'rotated',
  'noted',
] as const;

export type HistoryAction = (typeof historyActions)[number];

/** Who acted: a command of the user, or the program by itself. */
export const historyActors = ['register', 'maintain', 'subscriptions', 'credentials'] as const;

export type HistoryActor = (typeof historyActors)[number];

export interface HistoryEntry {
  atUs: number;
  /** The subscription's name. */
  subscription: string;
  subscriptionId: string | null;
  action: HistoryAction;
  actor: HistoryActor;
  /** One sentence for people. */
  reason: string;
}

/** A time in which events of a subscription were not sent, and must be looked up later. */
export interface Gap {
  id: number;
  subscription: string;
  events: readonly string[];
  filter: string;
  fromUs: number;
  /** Null while it lasts. */
  toUs: number | null;
  reason: string;
}

export type NewGap = Pick<Gap, 'subscription' | 'events' | 'filter' | 'fromUs' | 'reason'>;

/** What one step leaves behind: all of it in one transaction, in this order. */
export interface AdministrationChange {
  /** Forgets the registration of this name; its history and gaps stay. */
  removeRegistration?: string;
  save?: Registration;
  history?: readonly HistoryEntry[];
  /** Nothing happens when the subscription has a gap that still lasts. */
  openGap?: NewGap;
  /** Ends every gap of a subscription that still lasts. */
  closeGaps?: { subscription: string; toUs: number };
}

/** When a user name last delivered to a subscription's path. */
export interface DeliveryMark {
  /** Null for `/notifications` without a name. */
  subscription: string | null;
  username: string;
  lastAtUs: number;
}

/** The questions, which never wait for intake. */
export interface AdministrationReader {
  /** By name. */
  registrations(): Promise<Registration[]>;
  /** Newest first. */
  history(options: { subscription?: string; limit: number }): Promise<HistoryEntry[]>;
  /** Oldest first. */
  gaps(): Promise<Gap[]>;
  deliveryMarks(): Promise<DeliveryMark[]>;
}

export interface Administration extends AdministrationReader {
  /** On disk, all of it or nothing, when it resolves. Rejects with `unavailable`. */
  commit(change: AdministrationChange): Promise<void>;
  /** Keeps the latest time of each mark. Rejects with `unavailable`. */
  markDeliveries(marks: readonly DeliveryMark[]): Promise<void>;
}

/** What only one program may do at a time. */
export type LockName =
  | 'receiver'
  | 'account'
  | 'subscriptions'
  | 'certificate'
  | 'index'
  | 'summaries'
  | 'reconcile'
  | 'sinks'
  | 'prune'
  | 'compact'
  | 'backup';

/**
 * Takes a lock that ends with the process that holds it, however it ends. Resolves with what gives it
 * back. Rejects with `conflict` when another holds it for longer than `waitMs`, and with the signal's
 * reason when that ends the wait.
 */
export type AcquireLock = (
  name: LockName,
  options: { waitMs: number; signal?: AbortSignal },
) => Promise<() => void>;

/** By a login at the identity provider. */
export interface PasswordAccount {
  kind: 'password';
  tokenUrl: string;
  clientId: string;
  username: string;
  password: string;
  /** Six digits, or the shared secret (base32) that codes are made from; undefined without two-factor login. */
  totp: string | undefined;
}

/** With a token as it is, or by a login. */
export type Account = { kind: 'token'; accessToken: string } | PasswordAccount;

/** Tokens of the catalogue account for requests to the catalogue. */
export interface AccessTokens {
  /**
   * A token that is valid for some time yet. Rejects with `unauthorized` when the account cannot be
   * entered with what is configured, `unavailable` when the identity provider cannot be asked, and
   * `configuration` when what is configured is no identity provider, client or code.
   */
  get(): Promise<string>;
  /** The service has refused this token: it is not handed out again, and the next `get` finds another. */
  refused(token: string): Promise<void>;
}
