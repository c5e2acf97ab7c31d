/** Delivers each published notification: attempts, delays between them, and injected faults. */
import { setImmediate } from 'node:timers/promises';
import type { ProductView } from '../../filter/product-view.ts';
import {
  type EndpointAddress,
  isPush,
  type PushSubscription,
  type Subscriptions,
  subscriptionsFor,
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
  /** Stops the dispatcher: open notifications are abandoned and stay pending in the record. */
  readonly signal: AbortSignal;
  readonly retryDelaysMs?: RetryDelaysMs;
  /** Called once per push notification when it is delivered (failure: null) or lost (its last failure). */
  readonly onSettled?: ((entry: DeliveryEntry, failure: AttemptFailure | null) => void) | undefined;
  /** Called after each attempt with its failure, or null if it succeeded. */
  readonly onAttempt?: ((failure: AttemptFailure | null) => void) | undefined;
}

/** Cause of a failed attempt. */
export interface AttemptFailure {
  readonly text: string;
  /** The endpoint's status; null if there was no answer. */
  readonly status: number | null;
  /** Error code of Node or OpenSSL; null if there is none. */
  readonly code: string | null;
  /** True for an injected fault. */
  readonly isInjected: boolean;
}

/** The part of a recipient that the dispatcher uses. */
type Addressee = Pick<Recipient, 'address' | 'delivered'>;

interface Task {
  readonly sequence: number;
  readonly notification: Pick<BuiltNotification, 'body' | 'encoding' | 'changedBody'>;
  readonly plan: DeliveryPlan;
  readonly recipient: Addressee;
}

/** Queue of one recipient, so that an endpoint that hangs delays no other. */
interface Lane {
  readonly limit: ReturnType<typeof createConcurrencyLimit>;
  readonly reordering: ReturnType<typeof createReordering>;
}

/** Counts a notification as idle while it waits. */
type IdleWait = <Value>(wait: Promise<Value>) => Promise<Value>;

/** Delay of the delivery with changed content. */
const changedAfterMs = 50;

const closed: AttemptFailure = {
  text: 'not sent: the sandbox was closed',
  status: null,
  code: null,
  isInjected: false,
};

const noAttemptFaults: AttemptPlan = { connectionFails: false, answerLost: false };

export type Dispatcher = ReturnType<typeof createDispatcher>;

/** Creates a dispatcher with a maximum of 8 concurrent attempts per recipient. */
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
    /** Starts a delivery without waiting; returns its sequence in the record. */
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
    /** Resolves when fewer than `openMax` notifications are open. Rejects with an error thrown by `onSettled`. */
    capacity: (openMax: number) => until(() => signal.aborted || open < openMax),
    /** Resolves when no notification or duplicate is open. Rejects like `capacity`. */
    drained: () => until(() => open === 0),
    /** Resolves when all open notifications are idle, e.g. wait for a retry. Rejects like `capacity`. */
    quiet: async () => {
      // Lets deliveries that have just become due continue first.
      await setImmediate();
      await until(() => open <= idle);
    },
  };
}

/** Creates the function that delivers one notification, including reordering and duplicates. */
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
      if (index === 0) lane.reordering.sent(sequence);
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
    // Closing aborts attempts; the endpoint is not the cause, so these notifications are not lost.
    if (failure && signal.aborted) return;
    const { length } = record.find(sequence).attempts;
    const reason = failure && `${length} attempts failed; last failure: ${failure.text}`;
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

/** Creates the function that makes and records one attempt; it returns the failure, or null for a success. */
function createAttempts({ deliverer, record, clock, signal, onAttempt }: DispatcherOptions) {
  const connectionFailed = {
    durationMs: 0,
    status: null,
    error: 'connection failed (injected by the sandbox)',
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
      const error = isAnswerLost ? 'answer lost (injected by the sandbox)' : sent.error;
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

/** Creates a limit for concurrent tasks; the others wait in a FIFO queue. */
function createConcurrencyLimit() {
  const queue: (() => void)[] = [];
  let running = 0;
  return async <Result>(task: () => Promise<Result>): Promise<Result> => {
    // A finished task passes its slot to the first in the queue, so that no new task overtakes it.
    if (running >= socketsMax) await new Promise<void>((resolve) => queue.push(resolve));
    else running += 1;
    try {
      return await task();
    } finally {
      const next = queue.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

// Bounds the wait: at the end of a run there may be no later notifications.
const reorderMaxMs = 2_000;

/** Creates the `outOfOrder` fault: delays a notification until later ones have been sent. */
export function createReordering(clock: Pick<SandboxClock, 'now' | 'waitUntil'>) {
  const delayed = new Set<{ sequence: number; remaining: number; released: AbortController }>();
  return {
    /** Waits until `remaining` later notifications have been sent, but at most two seconds. */
    wait: async (sequence: number, remaining: number, signal: AbortSignal): Promise<void> => {
      const own = { sequence, remaining, released: new AbortController() };
      delayed.add(own);
      const either = AbortSignal.any([signal, own.released.signal]);
      await clock.waitUntil(clock.now() + reorderMaxMs, either);
      delayed.delete(own);
    },
    /** Reports that a notification's first attempt has ended. */
    sent: (sequence: number): void => {
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
  /** Draws content faults of the bodies. */
  readonly contentRandom: Random;
  /** Draws shapes and delivery faults; null: uses those that the publisher draws for the event. */
  readonly random: Random | null;
  /**
   * Returns the current address, so that an edit applies between two attempts. For a removed subscription,
   * returns the last address, to finish open deliveries. The real service's behaviour is not known.
   */
  address(): EndpointAddress;
  /** Records a successful delivery in the subscription. */
  delivered(): void;
}

/** Returns the recipients of a product's event. */
export type RecipientsOf = (event: NotificationEvent, product: ProductView) => readonly Recipient[];

// Any odd number works; this one spreads well (2^32 divided by the golden ratio).
const seedStep = 0x9e37_79b9;

const contentSeed = 0x51ed_270b;

/** Creates the lookup of recipients in an account. `seed` determines the bodies. */
export function createRecipients(subscriptions: Subscriptions, seed: number): RecipientsOf {
  const recipients = new WeakMap<PushSubscription, Recipient>();
  const ackIds: AckIds = new Map();
  let count = 0;

  const create = (subscription: PushSubscription): Recipient => {
    const bodySeed = (seed + count * seedStep) | 0;
    // The first subscription gets the same draws as the only one of another sandbox with this seed.
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
    const running = subscriptionsFor(subscriptions.list(), event, 'running');
    return running.filter(isPush).flatMap((subscription) => {
      // Created before the filter is evaluated, so that draws do not depend on filters.
      const recipient = recipients.get(subscription) ?? create(subscription);
      recipients.set(subscription, recipient);
      const { filter, matches } = subscription;
      // Evaluated once per filter.
      const isMatch = matchesByFilter.get(filter) ?? matches(product);
      matchesByFilter.set(filter, isMatch);
      return isMatch ? [recipient] : [];
    });
  };
}
