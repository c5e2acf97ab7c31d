/** Record of every notification: its attempts, the endpoint's answers, and the outcome. */
import type { NotificationKey } from './notification.ts';

const deliveryOutcomes = ['pending', 'delivered', 'lost'] as const;
export type DeliveryOutcome = (typeof deliveryOutcomes)[number];

/** Record of one notification, without the body. */
export interface DeliveryEntry extends NotificationKey {
  /** Sequential number, starting at 1. */
  readonly sequence: number;
  /** Status of each attempt; null without an answer. */
  readonly attempts: readonly (number | null)[];
  readonly outcome: DeliveryOutcome;
  /** Reason for the loss; null if not lost. */
  readonly reason: string | null;
  /** Number of the endpoint's 2xx answers, including those that the sender did not receive. */
  readonly timesReceivedOk: number;
}

/** Returns true for 2xx, which counts as delivered. The statuses that the real service accepts are not known. */
export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status <= 299;
}

type OpenEntry = { -readonly [Key in keyof DeliveryEntry]: DeliveryEntry[Key] } & {
  readonly attempts: (number | null)[];
};

export type DeliveryRecord = ReturnType<typeof createDeliveryRecord>;

/** Creates an empty record in memory. Methods throw RangeError for an unknown sequence. */
export function createDeliveryRecord() {
  const entries: OpenEntry[] = [];
  const counts = {
    delivered: 0,
    lost: 0,
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
    open: ({ subscriptionId, event, ackId, notificationDate, ...product }: NotificationKey) => {
      const { productId, productName } = product;
      entries.push({
        ...{ sequence: entries.length + 1, subscriptionId, event, ackId, productId, productName },
        ...{ notificationDate, attempts: [], outcome: 'pending', reason: null, timesReceivedOk: 0 },
      });
      return entries.length;
    },
    addAttempt: (sequence: number, status: number | null): void => {
      const entry = find(sequence);
      entry.attempts.push(status);
      if (!isSuccess(status)) return;
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
  };
}
