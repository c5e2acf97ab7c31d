/** Record of every notification: its attempts, the endpoint's answers, and the outcome. */
import { type Attempt, isSuccess } from './deliverer.ts';
import type { NotificationKey } from './notification.ts';

export const deliveryOutcomes = ['pending', 'delivered', 'lost'] as const;
export type DeliveryOutcome = (typeof deliveryOutcomes)[number];

/** A recorded attempt. */
export interface RecordedAttempt extends Attempt {
  /** Start on the sandbox's clock, ms since 1970. */
  readonly startedAtMs: number;
  /** False if the sender received no answer, even if the endpoint sent one. */
  readonly answerSeen: boolean;
}

/** Record of one notification, without the body. */
export interface DeliveryEntry extends NotificationKey {
  /** Sequential number, starting at 1. */
  readonly sequence: number;
  readonly attempts: readonly RecordedAttempt[];
  readonly outcome: DeliveryOutcome;
  /** Reason for the loss; null if not lost. */
  readonly reason: string | null;
  /** Number of the endpoint's 2xx answers, including those that the sender did not receive. */
  readonly timesReceivedOk: number;
}

type OpenEntry = { -readonly [Key in keyof DeliveryEntry]: DeliveryEntry[Key] } & {
  readonly attempts: RecordedAttempt[];
};

export type DeliveryRecord = ReturnType<typeof createDeliveryRecord>;

/** Creates an empty record in memory. Methods throw RangeError for an unknown sequence. */
export function createDeliveryRecord() {
  const entries: OpenEntry[] = [];
  const counts = {
    delivered: 0,
    lost: 0,
    /** Answered requests with a notification that the endpoint had accepted before. */
    duplicatesSent: 0,
    attempts: 0,
    /** Notifications that the endpoint accepted at least once, even if the sender received no answer. */
    accepted: 0,
    /** 2xx answers of the endpoint: `accepted` plus accepted duplicates. */
    receivedOk: 0,
  };
  const find = (sequence: number) => {
    const entry = entries[sequence - 1];
    if (entry === undefined) throw new RangeError(`Notification ${sequence} does not exist.`);
    return entry;
  };
  return {
    /** Adds an entry with the outcome `pending`; returns its sequence. */
    open: (key: NotificationKey): number => {
      const { subscriptionId, event, ackId, productId, productName, notificationDate } = key;
      const sequence = entries.length + 1;
      const kept = { subscriptionId, event, ackId, productId, productName, notificationDate };
      const state = { outcome: 'pending', reason: null, timesReceivedOk: 0 } as const;
      entries.push({ sequence, ...kept, attempts: [], ...state });
      return sequence;
    },
    addAttempt: (sequence: number, attempt: RecordedAttempt): void => {
      const entry = find(sequence);
      entry.attempts.push(attempt);
      counts.attempts += 1;
      if (attempt.status !== null && entry.timesReceivedOk > 0) counts.duplicatesSent += 1;
      if (!isSuccess(attempt.status)) return;
      if (entry.timesReceivedOk === 0) counts.accepted += 1;
      entry.timesReceivedOk += 1;
      counts.receivedOk += 1;
    },
    /** Sets the outcome: lost for a `reason`, or delivered if null. Returns the entry. */
    settle: (sequence: number, reason: string | null): DeliveryEntry => {
      const outcome = reason === null ? 'delivered' : 'lost';
      counts[outcome] += 1;
      return Object.assign(find(sequence), { outcome, reason });
    },
    totals: () => {
      const published = entries.length;
      return { published, ...counts, pending: published - counts.delivered - counts.lost };
    },
    find: (sequence: number): DeliveryEntry => find(sequence),
    /** Returns all entries in the order of publication. */
    entries: (): readonly DeliveryEntry[] => entries,
    /** Returns up to `limit` entries after a sequence, optionally with one outcome. */
    page: ({
      after,
      limit,
      outcome,
    }: {
      after: number;
      limit: number;
      outcome?: DeliveryOutcome | undefined;
    }): DeliveryEntry[] => {
      const selected: DeliveryEntry[] = [];
      for (let index = after; index < entries.length && selected.length < limit; index += 1) {
        const entry = entries[index];
        if (entry && (outcome === undefined || entry.outcome === outcome)) selected.push(entry);
      }
      return selected;
    },
  };
}
