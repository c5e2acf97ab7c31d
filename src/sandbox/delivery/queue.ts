/** Queues of pull subscriptions: entries stay, oldest first, until they are acknowledged or dropped. */
import { z } from 'zod';
import { isPush, refuse, type Subscription, type Subscriptions, toIso } from '../account.ts';
import { createRandom, type SandboxClock } from '../clock.ts';
import type { LiveServiceSettings } from '../live-settings.ts';
import type { StoredProduct } from '../publishing/record-archive.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import { type EntryShape, type LiveFaults, planEntryShape } from './faults.ts';
import {
  createNotificationBuilder,
  type NotificationEvent,
  notificationDocument,
} from './notification.ts';

/** An entry without its document, which is built at each read. The delivery record has its identity. */
interface QueueEntry {
  readonly atMs: number;
  readonly stored: StoredProduct;
  readonly shape: EntryShape;
}

/** State of the queue of one subscription. */
interface QueueState {
  /** By sequence in the delivery record, oldest first. A map removes the oldest fast; an array moves all others. */
  readonly entries: Map<number, QueueEntry>;
  /** Entries of the last Read, with their sequences. */
  lastPage: readonly (readonly [number, QueueEntry])[];
  readonly totals: {
    /** Returned entries; an entry counts each time that it is returned. */
    read: number;
    /** Entries acknowledged by Acks, and by other readers. */
    acknowledged: number;
    acknowledgedByOthers: number;
    /** Entries dropped because the queue was full, or on request. */
    dropped: number;
    /** Numbers of Reads and Acks, except those that a fault or an error prevented. */
    reads: number;
    acks: number;
  };
}

interface QueuesOptions {
  readonly record: DeliveryRecord;
  readonly clock: Pick<SandboxClock, 'now'>;
  readonly liveSettings: Pick<LiveServiceSettings, 'current'>;
  readonly faults: Pick<LiveFaults, 'current'>;
  /** 32-bit integer; determines the identities and shapes of the entries. */
  readonly seed: number;
}

const lossReasons = {
  full: 'dropped because the queue was full',
  deleted: 'the subscription was deleted',
  dropped: 'dropped from the queue (injected by the sandbox)',
  otherReader: 'acknowledged by another reader (injected by the sandbox)',
} as const;

export type Queue = ReturnType<typeof createQueue>;

export type Queues = ReturnType<typeof createQueues>;

/** Creates the queues of an account, each empty until an event is added. */
export function createQueues(options: QueuesOptions) {
  const queues = new WeakMap<Subscription, Queue>();
  return {
    /** Returns the queue of a pull subscription, within the current maximum length. */
    of: (subscription: Subscription): Queue => {
      const queue = queues.get(subscription) ?? createQueue(subscription, options);
      queues.set(subscription, queue);
      queue.limit();
      return queue;
    },
    /** Drops the queue of a deleted subscription. */
    remove: (subscription: Subscription): void => {
      queues.get(subscription)?.clear();
      queues.delete(subscription);
    },
  };
}

/** The seed is that of the subscription's id, so that draws do not depend on other subscriptions. */
function createQueue({ id: subscriptionId }: Subscription, options: QueuesOptions) {
  const { record, liveSettings, faults } = options;
  const seed = (options.seed ^ Number.parseInt(subscriptionId.slice(0, 8), 16)) | 0;
  const builder = createNotificationBuilder({ subscriptionId, random: createRandom(seed) });
  const random = createRandom(~seed);
  const state: QueueState = {
    entries: new Map(),
    lastPage: [],
    totals: { read: 0, acknowledged: 0, acknowledgedByOthers: 0, dropped: 0, reads: 0, acks: 0 },
  };
  const removal = createRemoval(state, options);
  return {
    /** Adds an entry. Returns its sequence in the delivery record. */
    add: (event: NotificationEvent, stored: StoredProduct, atMs: number): number => {
      const shape = planEntryShape(faults.current(), random);
      const identityShape = { ackIdGuid: shape.ackIdGuid, ackIdAbsent: false };
      const input = { event, product: stored.record, atMs, shape: identityShape };
      const sequence = record.open(builder.identify(input));
      state.entries.set(sequence, { atMs, stored, shape });
      removal.limit();
      return sequence;
    },
    ...createReading(state, options),
    ...removal,
    /** Returns length and totals. */
    state: () => {
      const [oldest] = state.entries.values();
      return {
        subscriptionId,
        length: state.entries.size,
        lengthMax: liveSettings.current().queueMax,
        /** Date of the oldest entry; null if the queue is empty. */
        oldestAt: oldest === undefined ? null : toIso(oldest.atMs),
        ...state.totals,
      };
    },
  };
}

/** Creates the methods that return entries and remove none. */
function createReading(state: QueueState, { record, clock, liveSettings }: QueuesOptions) {
  const documentOf = ([sequence, { atMs, stored, shape }]: readonly [number, QueueEntry]) => {
    const isOld = clock.now() - atMs > liveSettings.current().queueRecordMaxAgeMs;
    const valueAbsent = shape.valueAbsent || isOld;
    return notificationDocument(record.find(sequence), stored.record, { ...shape, valueAbsent });
  };
  const readPage = (page: QueueState['lastPage']): object[] => {
    state.totals.reads += 1;
    state.totals.read += page.length;
    state.lastPage = page;
    return page.map(documentOf);
  };
  return {
    /** Returns the documents of up to `top` entries, oldest first. */
    read: (top: number): object[] => readPage([...firstOf(state.entries, top)]),
    /** Returns the documents of the last Read, even if they have left the queue since. */
    readAgain: (): object[] => readPage(state.lastPage),
    /** Returns true if entries of the last Read have left the queue since. */
    isLastReadOutdated: (): boolean => {
      const [first] = state.lastPage;
      return first !== undefined && !state.entries.has(first[0]);
    },
  };
}

/** Creates the methods that remove entries, oldest first, and record their outcome. */
function createRemoval({ entries, totals }: QueueState, options: QueuesOptions) {
  const { record, clock, liveSettings } = options;
  const lose = (count: number, reason: string): number => {
    const before = entries.size;
    for (const [sequence] of firstOf(entries, count)) {
      entries.delete(sequence);
      record.settle(sequence, reason);
    }
    return before - entries.size;
  };
  const findByAckId = (ackId: string): number | null => {
    for (const sequence of entries.keys()) {
      if (record.find(sequence).ackId === ackId) return sequence;
    }
    return null;
  };
  return {
    /** Acknowledges an entry and all before it. Returns their number; null if it is not in the queue. */
    acknowledge: (ackId: string): number | null => {
      totals.acks += 1;
      const last = findByAckId(ackId);
      if (last === null) return null;
      const before = entries.size;
      const attempt = { durationMs: 0, status: 200, error: null, answerSeen: true };
      for (const sequence of entries.keys()) {
        if (sequence > last) break;
        entries.delete(sequence);
        record.addAttempt(sequence, { ...attempt, startedAtMs: clock.now() });
        record.settle(sequence, null);
      }
      totals.acknowledged += before - entries.size;
      return before - entries.size;
    },
    /** Acknowledges up to `count` entries as another reader of the account. Returns their number. */
    acknowledgeByOther: (count: number): number => {
      const acknowledged = lose(count, lossReasons.otherReader);
      totals.acknowledgedByOthers += acknowledged;
      return acknowledged;
    },
    /** Drops up to `count` entries. */
    drop: (count: number): void => {
      totals.dropped += lose(count, lossReasons.dropped);
    },
    /** Drops the entries beyond the maximum length. */
    limit: (): void => {
      const excess = entries.size - liveSettings.current().queueMax;
      if (excess > 0) totals.dropped += lose(excess, lossReasons.full);
    },
    /** Drops all entries, for a deleted subscription. */
    clear: (): void => void lose(entries.size, lossReasons.deleted),
  };
}

function* firstOf<Item>(items: Iterable<Item>, count: number): Iterable<Item> {
  let taken = 0;
  for (const item of items) {
    if (taken >= count) return;
    taken += 1;
    yield item;
  }
}

const entryCount = z.int().min(1).max(1_000_000).optional();

/** A change of a queue; unknown names are an error. */
export const queueChangeSchema = z
  .strictObject({
    subscriptionId: z.guid(),
    /** Number of entries to drop, oldest first, as in an overflow. */
    drop: entryCount,
    /** Number of entries to acknowledge, oldest first, as another reader. */
    acknowledge: entryCount,
  })
  .refine(({ drop, acknowledge }) => (drop === undefined) !== (acknowledge === undefined), {
    error: 'exactly one of drop and acknowledge is required',
  });
export type QueueChange = z.output<typeof queueChangeSchema>;

interface QueuesOfAccount {
  readonly subscriptions: Subscriptions;
  readonly queues: Queues;
}

/** Returns length and totals of the queue of each pull subscription. */
export function queueStates({ subscriptions, queues }: QueuesOfAccount) {
  const pull = subscriptions.list().filter((subscription) => !isPush(subscription));
  return pull.map((subscription) => queues.of(subscription).state());
}

/** Changes a queue; returns its state. Refuses `unknown-id`, and `request` for a push subscription. */
export function changeQueue(
  { subscriptions, queues }: QueuesOfAccount,
  { subscriptionId, drop, acknowledge }: QueueChange,
) {
  const subscription = subscriptions.find(subscriptionId);
  if (isPush(subscription)) refuse(noQueue(subscriptionId));
  const queue = queues.of(subscription);
  if (drop !== undefined) queue.drop(drop);
  if (acknowledge !== undefined && queue.acknowledgeByOther(acknowledge) > 0) {
    subscriptions.delivered(subscription);
  }
  return queue.state();
}

/** Returns the message for a push subscription. */
export function noQueue(id: string): string {
  return `Subscription with id ${id} is not a pull subscription; it has no queue.`;
}
