/** Sees each published notification through: its attempts, the waits between them, and its faults. */
import { setImmediate } from 'node:timers/promises';
import type { SandboxClock } from '../sandbox-clock.ts';
import { type ConcurrencyLimit, createConcurrencyLimit } from './concurrency-limit.ts';
import { type Attempt, type Deliverer, isSuccess, socketsMax } from './delivery.ts';
import type { DeliveryEntry, DeliveryRecord } from './delivery-record.ts';
import type { AttemptPlan, DeliveryPlan } from './fault-plan.ts';
import { createHoldBack, type HoldBack } from './hold-back.ts';
import type { BuiltNotification } from './notification.ts';
import type { Recipient } from './recipients.ts';
import { defaultRetryDelaysMs, type RetryDelaysMs } from './retry.ts';

export interface DispatcherOptions {
  readonly deliverer: Deliverer;
  readonly record: DeliveryRecord;
  readonly clock: SandboxClock;
  /** Ends everything: what is under way is given up and stays pending in the record. */
  readonly signal: AbortSignal;
  readonly retryDelaysMs?: RetryDelaysMs;
  /** Called once for each notification, when it is delivered or lost. */
  readonly onSettled?: (entry: DeliveryEntry) => void;
  /** Called after each attempt with why it failed; null when it did not. */
  readonly onAttempt?: (failure: string | null) => void;
}

export interface Dispatcher {
  /** Takes a notification in hand and returns at once: its sequence in the record. */
  dispatch(notification: BuiltNotification, plan: DeliveryPlan, recipient: Addressee): number;
  /** Resolves when fewer than `inHandMax` notifications are in hand. Rejects with what `onSettled` threw. */
  room(inHandMax: number): Promise<void>;
  /** Resolves when nothing is in hand any more, duplicates included. Rejects as `room` does. */
  drained(): Promise<void>;
  /** Resolves when all that is in hand waits for its time, such as that of the next attempt. Rejects as `room` does. */
  quiet(): Promise<void>;
}

/** What the dispatcher needs of a recipient. */
export type Addressee = Pick<Recipient, 'address' | 'delivered'>;

interface Task {
  readonly sequence: number;
  readonly notification: Pick<BuiltNotification, 'body' | 'encoding' | 'changedBody'>;
  readonly plan: DeliveryPlan;
  readonly recipient: Addressee;
}

/** What the notifications of one recipient share: an endpoint that hangs holds up no other's. */
interface Lane {
  readonly limit: ConcurrencyLimit;
  readonly holdBack: HoldBack;
}

/** Delay of the delivery with other content. */
const changedAfterMs = 50;

const undisturbed: AttemptPlan = { connectionFails: false, answerLost: false };

/** Creates a dispatcher with at most 8 attempts at the same time for each recipient. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { record, signal } = options;
  const waiting = new Set<() => void>();
  const failures: unknown[] = [];
  let inHand = 0;
  let resting = 0;

  const wakeAll = () => {
    for (const wake of waiting) wake();
    waiting.clear();
  };
  const until = async (isReached: () => boolean) => {
    while (!isReached()) await new Promise<void>((resolve) => waiting.add(resolve));
    if (failures.length > 0) throw failures[0];
  };
  const atMost = (count: number) => until(() => inHand <= count);
  const rest: Rest = async (wait) => {
    resting += 1;
    wakeAll();
    try {
      return await wait;
    } finally {
      resting -= 1;
    }
  };
  const seeThrough = createCourse(options, rest);

  return {
    dispatch: (notification, plan, recipient) => {
      const sequence = record.open(notification);
      inHand += 1;
      void seeThrough({ sequence, notification, plan, recipient })
        .catch((error: unknown) => failures.push(error))
        .finally(() => {
          inHand -= 1;
          wakeAll();
        });
      return sequence;
    },
    room: (inHandMax) => atMost(signal.aborted ? Number.POSITIVE_INFINITY : inHandMax - 1),
    drained: () => atMost(0),
    quiet: async () => {
      // Whatever has just become due goes on first.
      await setImmediate();
      await until(() => inHand <= resting);
    },
  };
}

/** Counts a notification as resting until the wait is over. */
type Rest = <Value>(wait: Promise<Value>) => Promise<Value>;

/** The course of one notification, from being held back to its duplicate. */
function createCourse(options: DispatcherOptions, rest: Rest) {
  const { record, clock, signal, retryDelaysMs = defaultRetryDelaysMs, onSettled } = options;
  const attempt = createAttempts(options);
  const laneOf = createLanes(clock);

  const restUntil = (atMs: number) => {
    const wait = clock.waitUntil(atMs, signal);
    return clock.now() >= atMs ? wait : rest(wait);
  };
  const tryAll = async (task: Task, lane: Lane) => {
    const { sequence, plan } = task;
    for (const [index, attemptPlan] of plan.attempts.entries()) {
      const delayMs = index === 0 ? 0 : (retryDelaysMs[index - 1] ?? 0);
      if (!(await restUntil(clock.now() + delayMs))) return false;
      const delivered = await attempt(task, lane, {
        ...attemptPlan,
        connectionFails: plan.lost || attemptPlan.connectionFails,
      });
      if (index === 0) lane.holdBack.wentOut(sequence);
      if (delivered) return true;
    }
    return false;
  };

  return async (task: Task) => {
    const { sequence, plan, recipient } = task;
    const lane = laneOf(recipient);
    if (plan.heldBehind > 0) await rest(lane.holdBack.wait(sequence, plan.heldBehind, signal));
    const delivered = await tryAll(task, lane);
    // Closing cuts attempts short; calling those notifications lost would blame the endpoint.
    if (!delivered && signal.aborted) return;
    const reason = delivered ? null : describeLoss(record, sequence);
    const entry = record.settle(sequence, delivered ? 'delivered' : 'lost', reason);
    onSettled?.(entry);
    if (!delivered) return;
    if (plan.duplicateAfterMs !== null && (await restUntil(clock.now() + plan.duplicateAfterMs))) {
      await attempt(task, lane, undisturbed);
    }
    const { changedBody, encoding } = task.notification;
    if (changedBody === null || !(await restUntil(clock.now() + changedAfterMs))) return;
    const changed = { body: changedBody, encoding, changedBody: null };
    await attempt({ ...task, notification: changed }, lane, undisturbed);
  };
}

function createLanes(clock: SandboxClock) {
  const lanes = new WeakMap<Addressee, Lane>();
  return (recipient: Addressee): Lane => {
    const known = lanes.get(recipient);
    if (known) return known;
    const lane = { limit: createConcurrencyLimit(socketsMax), holdBack: createHoldBack(clock) };
    lanes.set(recipient, lane);
    return lane;
  };
}

/** One recorded attempt with its faults; true when the sender saw a success. */
function createAttempts({ deliverer, record, clock, signal, onAttempt }: DispatcherOptions) {
  return ({ sequence, notification, recipient }: Task, lane: Lane, plan: AttemptPlan) =>
    lane.limit.run(async () => {
      if (signal.aborted) return false;
      const startedAtMs = clock.now();
      const { body, encoding } = notification;
      const attempt = plan.connectionFails
        ? failedConnection
        : await deliverer.deliver(recipient.address(), body, signal, encoding);
      const answerSeen = attempt.status !== null && !plan.answerLost;
      const error = attempt.status !== null && plan.answerLost ? answerLostError : attempt.error;
      record.addAttempt(sequence, { ...attempt, startedAtMs, error, answerSeen });
      const delivered = answerSeen && isSuccess(attempt.status);
      if (delivered) recipient.delivered();
      onAttempt?.(delivered ? null : (error ?? `the endpoint answered ${attempt.status}`));
      return delivered;
    });
}

const failedConnection: Attempt = {
  durationMs: 0,
  status: null,
  error: 'the connection failed (played by the sandbox)',
};
const answerLostError = 'the answer was lost on its way (played by the sandbox)';

function describeLoss(record: DeliveryRecord, sequence: number): string {
  const attempts = record.page({ after: sequence - 1, limit: 1 })[0]?.attempts ?? [];
  const last = attempts.at(-1);
  const what = last?.error ?? `the endpoint answered ${last?.status}`;
  return `${attempts.length} attempts failed; the last one: ${what}`;
}
