/**
 * The shared log of several receivers. A *node* is a receiver with its own data directory. The log is a sequence of
 * *entries*, numbered from 1 without gaps, that all nodes apply in order to their own stores. An entry contains deliveries
 * or changes, and the decision of the log about each notification of its deliveries. A *lease* gives one node the right to
 * a job for a time.
 */

import type { LeaseTerm } from './leases.ts';

/** A notification that an entry adds, as far as the log decides about it. Keys and digests are hexadecimal text. */
export interface LogItem {
  key: string;
  /** Key of the same AckId in this subscription, used when another subscription has `key`. */
  subscriptionKey: string | null;
  /** Digest of the subscription id; null without one. */
  subscriptionId: string | null;
  /** Subscription name in the URL path. */
  subscription: string | null;
  /** Digest of the product id, in lower case. */
  product: string;
  event: string;
  /** Digest of the content of a push with an AckId; null if content is not compared. */
  content: string | null;
  /** True for a push, which may be that of a recovered event. */
  isPush: boolean;
  /** Date of the modification in its record, and date of the notification. */
  stateMs: number | null;
  notificationMs: number | null;
  /** Set for a recovered event: its date. */
  recoveredUs: number | null;
}

/** Decision about an item. */
export type ItemOutcome =
  /** A new notification, at this position. `inSubscription`: with its `subscriptionKey`. */
  | { outcome: 'stored'; position: number; inSubscription: boolean }
  /** The notification at this position was received again. `reused`: with different content. */
  | { outcome: 'duplicate' | 'reused'; position: number }
  /** The push of the recovered event at this position. */
  | { outcome: 'late'; position: number };

export interface NewEntry {
  /** Identifies the append, so that it can be repeated when its result is unknown. */
  batchId: string;
  /** The append is refused when another holder has the lease. */
  lease: LeaseTerm | null;
  /** Null for an entry without deliveries. */
  items: readonly LogItem[] | null;
  /** Refuses the append when a product of the items was received after this position. */
  checkedPosition: number | null;
  /** Refuses the append when an item is `reused`. */
  refusesReused: boolean;
  /** Content of the entry, which the log does not read, and its encoding. */
  payload: Uint8Array;
  encoding: string;
}

export interface AppendedEntry {
  number: number;
  outcomes: ItemOutcome[];
}

export interface LogEntry extends AppendedEntry {
  batchId: string;
  payload: Uint8Array;
  encoding: string;
}

/** Consecutive entries. */
export interface LogPart {
  /** Batch id of the entry before them; null when the log does not contain it. */
  lastBatchId: string | null;
  entries: LogEntry[];
}

/** End of the log. */
export interface LogHead {
  /** Identity of the log. */
  logId: string;
  /** `copying`: not yet complete. `moved`: in use elsewhere. Both refuse appends. */
  state: 'copying' | 'open' | 'moved';
  /** Number of the first entry that the log still contains; 1 for an empty log. */
  first: number;
  /** Number of the last entry. */
  number: number;
  /** Last position of a notification. */
  position: number;
}

/** Content that only nodes read, and its encoding. */
export interface EncodedContent {
  encoding: string;
  bytes: Uint8Array;
}

/**
 * A node reports every five seconds. Without a report for this time, it counts as stopped. `earshot.report` has the same
 * limit.
 */
export const nodeSilentMs = 20_000;
