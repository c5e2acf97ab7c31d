/** Carries out the delivery of each published notification: its attempts, the waits between them, and its faults. */
import { setImmediate } from 'node:timers/promises';
import type { ProductView } from '../../filter/product-view.ts';
import {
  type EndpointAddress,
  type PushSubscription,
  pushSubscriptionsFor,
  type Subscriptions,
} from '../account.ts';
import { createRandom, type Random, type SandboxClock } from '../clock.ts';
import { type Deliverer, isSuccess, socketsMax } from './deliverer.ts';
import type { DeliveryEntry, DeliveryRecord } from './delivery-record.ts';
import {
  type AttemptPlan,
  type DeliveryPlan,
  defaultRetryDelaysMs,
  type RetryDelaysMs,
} from './faults.ts';
import {
  type AckIds,
  type BuiltNotification,
  createNotificationBuilder,
  type NotificationBuilder,
  type NotificationEvent,
} from './notification.ts';

export interface DispatcherOptions {
  readonly deliverer: Pick<Deliverer, 'deliver'>;
  readonly record: DeliveryRecord;
  readonly clock: SandboxClock;
  /** Ends everything: open notifications are given up and stay pending in the record. */
  readonly signal: AbortSignal;
  readonly retryDelaysMs?: RetryDelaysMs;
  /** Called once for each notification, when it is delivered or lost: by its last failure, else null. */
  readonly onSettled?: ((entry: DeliveryEntry, failure: AttemptFailure | null) => void) | undefined;
  /** Called after each attempt with why it failed; null when it did not. */
  readonly onAttempt?: ((failure: AttemptFailure | null) => void) | undefined;
}

/** Why an attempt failed. */
export interface AttemptFailure {
  readonly text: string;
  /** The endpoint's answer; null where none came. */
  readonly status: number | null;
  /** Code of Node's or OpenSSL's error; null where there is none. */
  readonly code: string | null;
  /** True for a fault that was set. */
  readonly isInjected: boolean;
}

/** What the dispatcher needs of a recipient. */
type Addressee = Pick<Recipient, 'address' | 'delivered'>;

interface Task {
  readonly sequence: number;
  readonly notification: Pick<BuiltNotification, 'body' | 'encoding' | 'changedBody'>;
  readonly plan: DeliveryPlan;
  readonly recipient: Addressee;
}

/** What the notifications of one recipient share: an endpoint that hangs delays no other. */
interface Lane {
  readonly limit: ReturnType<typeof createConcurrencyLimit>;
  readonly reordering: ReturnType<typeof createReordering>;
}

/** Counts a notification as idle until the wait is over. */
type IdleWait = <Value>(wait: Promise<Value>) => Promise<Value>;

/** Delay of the delivery with other content. */
const changedAfterMs = 50;

const closed: AttemptFailure = {
  text: 'not sent: the sandbox was closed',
  status: null,
  code: null,
  isInjected: false,
};

const noAttemptFaults: AttemptPlan = { connectionFails: false, answerLost: false };

export type Dispatcher = ReturnType<typeof createDispatcher>;

/** Creates a dispatcher with at most 8 attempts at the same time for each recipient. */
export function createDispatcher(options: DispatcherOptions) {
  const { record, signal } = options;
  const waiting = new Set<() => void>();
  const failures: unknown[] = [];
  let open = 0;
  let idle = 0;

  const wakeAll = () => {
    for (const wake of waiting) wake();
    waiting.clear();
  };
  const until = async (isReached: () => boolean) => {
    while (!isReached()) await new Promise<void>((resolve) => waiting.add(resolve));
    if (failures.length > 0) throw failures[0];
  };
  const idleWait: IdleWait = async (wait) => {
    idle += 1;
    wakeAll();
    try {
      return await wait;
    } finally {
      idle -= 1;
    }
  };
  const runDelivery = createDeliveryRunner(options, idleWait);

  return {
    /** Starts a delivery and returns at once: its sequence in the record. */
    dispatch: (
      notification: BuiltNotification,
      plan: DeliveryPlan,
      recipient: Addressee,
    ): number => {
      const sequence = record.open(notification);
      open += 1;
      void runDelivery({ sequence, notification, plan, recipient })
        .catch((error: unknown) => failures.push(error))
        .finally(() => {
          open -= 1;
          wakeAll();
        });
      return sequence;
    },
    /** Resolves when fewer than `openMax` notifications are open. Rejects with what `onSettled` threw. */
    capacity: (openMax: number) => until(() => signal.aborted || open < openMax),
    /** Resolves when no notification is open any more, duplicates included. Rejects as `capacity` does. */
    drained: () => until(() => open === 0),
    /** Resolves when all open ones wait for their time, such as that of the next attempt. Rejects as `capacity` does. */
    quiet: async () => {
      // Whatever has just become due continues first.
      await setImmediate();
      await until(() => open <= idle);
    },
  };
}

/** Creates the course of one notification, from being held back to its duplicate. */
function createDeliveryRunner(options: DispatcherOptions, idleWait: IdleWait) {
  const { record, clock, signal, retryDelaysMs = defaultRetryDelaysMs, onSettled } = options;
  const attempt = createAttempts(options);
  const lanes = new WeakMap<Addressee, Lane>();
  const laneOf = (recipient: Addressee): Lane => {
    const known = lanes.get(recipient);
    const lane = known ?? { limit: createConcurrencyLimit(), reordering: createReordering(clock) };
    lanes.set(recipient, lane);
    return lane;
  };
  const idleFor = (delayMs: number) => {
    const atMs = clock.now() + delayMs;
    const wait = clock.waitUntil(atMs, signal);
    return clock.now() >= atMs ? wait : idleWait(wait);
  };
  /** Returns the last failure; null for a success. */
  const attemptAll = async (task: Task, lane: Lane) => {
    const { sequence, plan } = task;
    let failure: AttemptFailure | null = closed;
    for (const [index, { answerLost, connectionFails }] of plan.attempts.entries()) {
      if (!(await idleFor(retryDelaysMs[index - 1] ?? 0))) break;
      const faults = { answerLost, connectionFails: plan.lost || connectionFails };
      failure = await attempt(task, lane, faults);
      if (index === 0) lane.reordering.wentOut(sequence);
      if (failure === null) break;
    }
    return failure;
  };

  return async (task: Task) => {
    const { sequence, plan, recipient } = task;
    const { changedBody, encoding } = task.notification;
    const lane = laneOf(recipient);
    if (plan.overtakenBy > 0)
      await idleWait(lane.reordering.wait(sequence, plan.overtakenBy, signal));
    const failure = await attemptAll(task, lane);
    // Closing cuts attempts short; calling those notifications lost would blame the endpoint.
    if (failure && signal.aborted) return;
    const { length } = record.find(sequence).attempts;
    const reason = failure && `${length} attempts failed; the last one: ${failure.text}`;
    const entry = record.settle(sequence, reason);
    onSettled?.(entry, failure);
    if (failure) return;
    if (plan.duplicateAfterMs !== null && (await idleFor(plan.duplicateAfterMs))) {
      await attempt(task, lane, noAttemptFaults);
    }
    if (changedBody === null || !(await idleFor(changedAfterMs))) return;
    const changed = { body: changedBody, encoding, changedBody: null };
    await attempt({ ...task, notification: changed }, lane, noAttemptFaults);
  };
}

/** Makes one recorded attempt with its faults; returns why it failed, null when the sender saw a success. */
function createAttempts({ deliverer, record, clock, signal, onAttempt }: DispatcherOptions) {
  const connectionFailed = {
    durationMs: 0,
    status: null,
    error: 'the connection failed (played by the sandbox)',
    code: null,
  };
  return ({ sequence, notification, recipient }: Task, lane: Lane, plan: AttemptPlan) =>
    lane.limit(async () => {
      if (signal.aborted) return closed;
      const startedAtMs = clock.now();
      const { body, encoding } = notification;
      const { code, ...sent } = plan.connectionFails
        ? connectionFailed
        : await deliverer.deliver(recipient.address(), body, signal, encoding);
      const { status } = sent;
      const isAnswerLost = status !== null && plan.answerLost;
      const error = isAnswerLost
        ? 'the answer was lost on its way (played by the sandbox)'
        : sent.error;
      const answerSeen = status !== null && !isAnswerLost;
      record.addAttempt(sequence, { ...sent, startedAtMs, error, answerSeen });
      const isDelivered = answerSeen && isSuccess(status);
      if (isDelivered) recipient.delivered();
      const text = error ?? `the endpoint answered ${status}`;
      const isInjected = plan.connectionFails || isAnswerLost;
      const failure = isDelivered ? null : { text, status, code, isInjected };
      onAttempt?.(failure);
      return failure;
    });
}

/** Creates a limit of tasks at a time; the others wait in line, first come first served. */
function createConcurrencyLimit() {
  const line: (() => void)[] = [];
  let running = 0;
  return async <Result>(task: () => Promise<Result>): Promise<Result> => {
    // A task that ends passes its place to the first in line, so that no newcomer slips in between.
    if (running >= socketsMax) await new Promise<void>((resolve) => line.push(resolve));
    else running += 1;
    try {
      return await task();
    } finally {
      const next = line.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

// At the end of a run there may be no later notifications left to wait for.
const reorderMaxMs = 2_000;

/** Creates the fault that changes the order: it keeps a notification back until later ones have gone out. */
export function createReordering(clock: Pick<SandboxClock, 'now' | 'waitUntil'>) {
  const delayed = new Set<{ sequence: number; remaining: number; released: AbortController }>();
  return {
    /** Waits until `remaining` notifications published after this one have gone out, or for two seconds. */
    wait: async (sequence: number, remaining: number, signal: AbortSignal): Promise<void> => {
      const own = { sequence, remaining, released: new AbortController() };
      delayed.add(own);
      const either = AbortSignal.any([signal, own.released.signal]);
      await clock.waitUntil(clock.now() + reorderMaxMs, either);
      delayed.delete(own);
    },
    /** Notes that a notification's first attempt has ended. */
    wentOut: (sequence: number): void => {
      for (const one of delayed) {
        if (one.sequence > sequence) continue;
        one.remaining -= 1;
        if (one.remaining <= 0) one.released.abort();
      }
    },
  };
}

/** The receiver of a notification. */
export interface Recipient {
  readonly builder: NotificationBuilder;
  /** Draws the content of the bodies. */
  readonly contentRandom: Random;
  /** Draws the fates; null: they are those that the publisher draws for every event. */
  readonly random: Random | null;
  /**
   * Returns the address now: an edit shows between two attempts. When the subscription is gone, the last
   * one that it had, so that open attempts are finished. Whether the real service does so is not known.
   */
  address(): EndpointAddress;
  /** Notes for the subscription that the sender saw a success. */
  delivered(): void;
}

/** Returns the recipients of an event of a product. */
export type RecipientsOf = (event: NotificationEvent, product: ProductView) => readonly Recipient[];

// Any odd number does; this one spreads well (2^32 divided by the golden ratio).
const seedStep = 0x9e37_79b9;

const contentSeed = 0x51ed_270b;

/** Creates the view over an account. `seed` is that of the bodies. */
export function createRecipients(subscriptions: Subscriptions, seed: number): RecipientsOf {
  const recipients = new WeakMap<PushSubscription, Recipient>();
  const ackIds: AckIds = new Map();
  let count = 0;

  const create = (subscription: PushSubscription): Recipient => {
    const bodySeed = (seed + count * seedStep) | 0;
    // The first one has what a sandbox with one subscription has, so that a seed brings the same there.
    const random = count === 0 ? null : createRandom(~bodySeed);
    const bodyRandom = createRandom(bodySeed);
    count += 1;
    return {
      builder: createNotificationBuilder({
        subscriptionId: subscription.id,
        random: bodyRandom,
        ackIds,
      }),
      contentRandom: createRandom(bodySeed ^ contentSeed),
      random,
      address: () => subscription.address,
      delivered: () => subscriptions.delivered(subscription),
    };
  };

  return (event, product) => {
    const matchesByFilter = new Map<string, boolean>();
    return pushSubscriptionsFor(subscriptions.list(), event, 'running').flatMap((subscription) => {
      // Created before the filter is asked, so that what a seed brings does not depend on filters.
      const recipient = recipients.get(subscription) ?? create(subscription);
      recipients.set(subscription, recipient);
      const { filter, matches } = subscription;
      // Subscriptions with the same filter share the work.
      const isMatch = matchesByFilter.get(filter) ?? matches(product);
      matchesByFilter.set(filter, isMatch);
      return isMatch ? [recipient] : [];
    });
  };
}
