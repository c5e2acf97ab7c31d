/**
 * The queue of a pull subscription (facts, catalogue 1.3, row "Pull"): its entries are read oldest first, and removed
 * by an acknowledgement. The catalogue keeps one position for each queue, which all readers share.
 */

/** Maximum number of entries that one request reads. */
export const readEntriesMax = 20;

/** Maximum length of a queue, beyond which the catalogue drops the oldest entries, until an answer contains it. */
export const queueLengthMaxDefault = 100_000;

/** An entry of a queue. */
export interface QueueEntry {
  /** JSON, byte for byte as received. */
  bytes: Uint8Array;
  /** Null for an entry without one, which cannot be acknowledged alone. */
  ackId: string | null;
  /** NotificationDate; null without a valid one. */
  notificationUs: number | null;
}

/** Entries as read, oldest first, with the header names and values of the answer, alternating. */
export interface QueuePage {
  entries: QueueEntry[];
  headers: string[];
}

/** Answer to an acknowledgement. A number that the answer does not contain is null. */
export interface Acknowledgement {
  /** Number of remaining entries. */
  length: number | null;
  lengthMax: number | null;
}

/**
 * Requests to the queue of a subscription, each sent once. Calls reject with `not_found` for an unknown subscription
 * (or AckId), `too_many` (its fact `retryAfterMs` is the requested delay, or null), `unavailable`, `unauthorized` and
 * `invalid` when the service refuses the request, and as `AccessTokens` does.
 */
export interface PullQueue {
  /** Reads the oldest entries, at most `entriesMax` (up to `readEntriesMax`), and removes nothing. */
  read(options: { id: string; entriesMax: number; signal?: AbortSignal }): Promise<QueuePage>;
  /** Acknowledges an entry and all before it. After `unavailable`, it may have taken effect. */
  acknowledge(options: { id: string; ackId: string }): Promise<Acknowledgement>;
}

/** State of a queue as its reader knows it. Times are microseconds since 1970, UTC, on the local clock. */
export interface QueueState {
  /** Subscription name. */
  subscription: string;
  subscriptionId: string;
  /** Number of entries after the last answer; null before the first one. */
  length: number | null;
  lengthMax: number;
  /** NotificationDate of the oldest entry that was not acknowledged; null when there is none, or when unknown. */
  oldestAtUs: number | null;
  /** Last time that the queue was read to its end; null if it never was. */
  emptiedAtUs: number | null;
  /** Time of the last successful request; null before the first one. */
  readAtUs: number | null;
  /** Entries stored and acknowledged since the start. */
  entries: number;
  /** Reason of the last failure; null while requests succeed. */
  failure: string | null;
  /** Start of the failures; null while requests succeed. */
  failingSinceUs: number | null;
}

/** Without a newer answer, an empty queue counts as empty for some minutes. */
const emptyForUs = 300_000_000;

/** Returns the age of the oldest unread entry at `nowUs`: 0 when there is none, null while unknown. */
export function oldestEntryAgeUs(
  queue: Omit<QueueState, 'subscription' | 'subscriptionId'>,
  nowUs: number,
): number | null {
  const { oldestAtUs, emptiedAtUs, readAtUs, length } = queue;
  const isEmpty = oldestAtUs === null && length === 0;
  if (isEmpty && nowUs - (readAtUs ?? nowUs) < emptyForUs) return 0;
  // Entries that arrived after the queue was empty are younger than that.
  const fromUs = isEmpty ? emptiedAtUs : oldestAtUs;
  return fromUs === null ? null : Math.max(0, nowUs - fromUs);
}
