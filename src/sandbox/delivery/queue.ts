/** Queues of pull subscriptions: entries stay, oldest first, until they are acknowledged or dropped. */
import type { Subscription } from '../account.ts';
import { createRandom, type SandboxClock } from '../clock.ts';
import type { StoredProduct } from '../publishing/ledger.ts';
import type { LiveFaults, LiveServiceSettings } from '../settings.ts';
import {
  createIdentify,
  type DeliveryRecord,
  type NotificationEvent,
  notificationDocument,
  planShape,
  type Shape,
} from './notification.ts';

/** An entry without its document, which is built at each read. The delivery record has its identity. */
interface QueueEntry {
  readonly atMs: number;
  readonly product: StoredProduct;
  readonly shape: Shape;
}

interface QueuesOptions {
  readonly record: DeliveryRecord;
  readonly clock: Pick<SandboxClock, 'now'>;
  readonly liveSettings: Pick<LiveServiceSettings, 'current'>;
  readonly faults: Pick<LiveFaults, 'current'>;
  /** 32-bit integer; determines the identities and shapes of the entries. */
  readonly seed: number;
}

/** Age from which an entry is returned without the product and ProductName (facts, catalogue 1). */
const recordMaxAgeMs = 3 * 86_400_000;

export type Queues = ReturnType<typeof createQueues>;

/** Creates the queues of an account, each empty until an event is added. */
export function createQueues(options: QueuesOptions) {
  const queues = new WeakMap<Subscription, ReturnType<typeof createQueue>>();
  return {
    /** Returns the queue of a pull subscription, within the current maximum length. */
    of: (subscription: Subscription) => {
      const queue = queues.get(subscription) ?? createQueue(subscription, options);
      queues.set(subscription, queue);
      queue.limit();
      return queue;
    },
    /** Drops the queue of a deleted subscription. */
    remove: (subscription: Subscription): void => {
      queues.get(subscription)?.lose(Infinity, 'the subscription was deleted');
      queues.delete(subscription);
    },
  };
}

/** The seed is that of the subscription's id, so that draws do not depend on other subscriptions. */
function createQueue({ id: subscriptionId }: Subscription, options: QueuesOptions) {
  const { record, clock, liveSettings, faults } = options;
  const random = createRandom((options.seed ^ Number.parseInt(subscriptionId.slice(0, 8), 16)) | 0);
  const identify = createIdentify(subscriptionId, random);
  // By sequence in the delivery record, oldest first. A map removes the oldest fast; an array moves all others.
  const entries = new Map<number, QueueEntry>();
  let lastPage: [number, QueueEntry][] = [];
  let acknowledged = 0;

  const lose = (count: number, reason: string) => {
    for (const sequence of entries.keys().take(count)) {
      entries.delete(sequence);
      record.settle(sequence, reason);
    }
  };
  const limit = () => {
    lose(
      Math.max(0, entries.size - liveSettings.current().queueMax),
      'dropped because the queue was full',
    );
  };
  const readPage = (page: typeof lastPage): object[] => {
    lastPage = page;
    return page.map(([sequence, { atMs, product, shape }]) => {
      const valueAbsent = clock.now() - atMs > recordMaxAgeMs;
      return notificationDocument(record.find(sequence), product.record, { ...shape, valueAbsent });
    });
  };
  return {
    limit,
    lose,
    /** Adds an entry. Returns its sequence in the delivery record. */
    add: (event: NotificationEvent, product: StoredProduct, atMs: number): number => {
      const shape = { ...planShape(faults.current(), random), ackIdAbsent: false };
      const sequence = record.open(identify({ event, product: product.record, atMs, shape }));
      entries.set(sequence, { atMs, product, shape });
      limit();
      return sequence;
    },
    /** Returns the documents of up to `top` entries, oldest first. */
    read: (top: number): object[] => readPage(entries.entries().take(top).toArray()),
    /** Returns the documents of the last Read, even if they have left the queue since. */
    readAgain: (): object[] => readPage(lastPage),
    /** Returns true if entries of the last Read have left the queue since. */
    isLastReadOutdated: (): boolean => lastPage[0] !== undefined && !entries.has(lastPage[0][0]),
    /** Acknowledges an entry and all before it. Returns their number: 0 if it is not in the queue. */
    acknowledge: (ackId: string): number => {
      const before = entries.size;
      const last = entries.keys().find((sequence) => record.find(sequence).ackId === ackId);
      for (const sequence of entries.keys()) {
        if (last === undefined || sequence > last) break;
        entries.delete(sequence);
        record.addAttempt(sequence, 200);
        record.settle(sequence, null);
      }
      acknowledged += before - entries.size;
      return before - entries.size;
    },
    /** Returns length and total. */
    state: () => ({ subscriptionId, length: entries.size, acknowledged }),
  };
}
