/** The sandbox's own account of every notification: what was tried, what the endpoint answered, what became of it. */
import { type Attempt, isSuccess } from './delivery.ts';
import type { BuiltNotification } from './notification.ts';

export const deliveryOutcomes = ['pending', 'delivered', 'lost'] as const;
export type DeliveryOutcome = (typeof deliveryOutcomes)[number];

/** One attempt as the record keeps it. */
export interface RecordedAttempt extends Attempt {
  /** Start on the sandbox's clock, ms since 1970. */
  readonly startedAtMs: number;
  /** False when the sender never saw an answer, even if the endpoint gave one. */
  readonly answerSeen: boolean;
}

/** What identifies a notification; the body is not kept. */
export type NotificationKey = Omit<BuiltNotification, 'body' | 'encoding' | 'changedBody'>;

/** The account of one notification. */
export interface DeliveryEntry extends NotificationKey {
  /** 1 for the first notification published, then counting. */
  readonly sequence: number;
  readonly attempts: readonly RecordedAttempt[];
  readonly outcome: DeliveryOutcome;
  /** Why it was lost; null otherwise. */
  readonly reason: string | null;
  /** The endpoint's 2xx answers, those that the sender did not see included. */
  readonly timesReceivedOk: number;
}

export interface DeliveryTotals {
  readonly published: number;
  readonly delivered: number;
  readonly lost: number;
  readonly pending: number;
  /** Requests that were answered although the endpoint had accepted the same notification before. */
  readonly duplicatesSent: number;
  readonly attempts: number;
  /** Notifications the endpoint accepted at least once, whatever the sender knows of it. */
  readonly accepted: number;
  /** 2xx answers of the endpoint: `accepted`, and one more for every accepted duplicate. */
  readonly receivedOk: number;
}

/** Which entries a page has: those after a sequence, at most so many, of one outcome if told. */
export interface EntrySelection {
  readonly after: number;
  readonly limit: number;
  readonly outcome?: DeliveryOutcome;
}

export interface DeliveryRecord {
  /** Opens an entry with the outcome `pending`; returns its sequence. */
  open(key: NotificationKey): number;
  addAttempt(sequence: number, attempt: RecordedAttempt): void;
  /** Closes an entry; `reason` says why it was lost, null when it was delivered. Returns the entry. */
  settle(sequence: number, outcome: 'delivered' | 'lost', reason: string | null): DeliveryEntry;
  totals(): DeliveryTotals;
  /** All entries in the order of publication. */
  entries(): readonly DeliveryEntry[];
  /** Entries in the order of publication. */
  page(selection: EntrySelection): DeliveryEntry[];
}

type OpenEntry = { -readonly [Key in keyof DeliveryEntry]: DeliveryEntry[Key] } & {
  readonly attempts: RecordedAttempt[];
};

/** Creates an empty record, kept in memory. An unknown sequence throws RangeError. */
export function createDeliveryRecord(): DeliveryRecord {
  const entries: OpenEntry[] = [];
  const counts = {
    delivered: 0,
    lost: 0,
    duplicatesSent: 0,
    attempts: 0,
    accepted: 0,
    receivedOk: 0,
  };

  const entryOf = (sequence: number) => {
    const entry = entries[sequence - 1];
    if (entry === undefined) throw new RangeError(`There is no notification number ${sequence}.`);
    return entry;
  };

  return {
    open: ({ subscriptionId, event, ackId, productId, productName, notificationDate }) => {
      const sequence = entries.length + 1;
      const key = { subscriptionId, event, ackId, productId, productName, notificationDate };
      const state = { outcome: 'pending', reason: null, timesReceivedOk: 0 } as const;
      entries.push({ sequence, ...key, attempts: [], ...state });
      return sequence;
    },
    addAttempt: (sequence, attempt) => {
      const entry = entryOf(sequence);
      entry.attempts.push(attempt);
      counts.attempts += 1;
      if (attempt.status !== null && entry.timesReceivedOk > 0) counts.duplicatesSent += 1;
      if (!isSuccess(attempt.status)) return;
      if (entry.timesReceivedOk === 0) counts.accepted += 1;
      entry.timesReceivedOk += 1;
      counts.receivedOk += 1;
    },
    settle: (sequence, outcome, reason) => {
      const entry = entryOf(sequence);
      entry.outcome = outcome;
      entry.reason = reason;
      counts[outcome] += 1;
      return entry;
    },
    totals: () => {
      const published = entries.length;
      return { published, ...counts, pending: published - counts.delivered - counts.lost };
    },
    entries: () => entries,
    page: ({ after, limit, outcome }) => {
      const selected: DeliveryEntry[] = [];
      for (let index = after; index < entries.length && selected.length < limit; index += 1) {
        const entry = entries[index];
        if (entry && (outcome === undefined || entry.outcome === outcome)) selected.push(entry);
      }
      return selected;
    },
  };
}
