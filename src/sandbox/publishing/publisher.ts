/** Publishes products at a steady rate and turns what happens to them into notifications. */
import { setImmediate } from 'node:timers/promises';
import type { Dispatcher } from '../delivery/dispatcher.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import type { SandboxClock } from '../sandbox-clock.ts';
import { createFollowUps, type FollowUpShares } from './follow-ups.ts';
import { createLiveProducts, type LiveProduct, type LiveProducts } from './live-products.ts';
import { createPublishEvent, type PublishEventOptions } from './publish-event.ts';
import { createPublishNext, createPublishStep, type Lateness } from './publish-step.ts';
import { createSimulatedTime, type SimulatedTime } from './simulated-time.ts';

export interface PublisherOptions extends PublishEventOptions, FollowUpShares, Lateness {
  readonly dispatcher: Dispatcher;
  readonly clock: SandboxClock;
  readonly ratePerSecond: number;
  /** Products to publish by rate; until the source ends, or for ever, unless told. */
  readonly count?: number | undefined;
  /** Publishing by rate begins when this resolves; at once unless told. */
  readonly begins?: Promise<void>;
}

export interface Publisher extends SimulatedTime {
  /** Publishes until the count is reached, the source ends or `signal` is aborted; then waits until all is drained. */
  run(signal: AbortSignal): Promise<void>;
  /** Resolves when all notifications in hand wait for their time. */
  quiet(): Promise<void>;
  /** Resolves when no notification is in hand. */
  drained(): Promise<void>;
  /** Publishes at once, even when paused and beyond `count`; returns how many there were products for. */
  publishNow(count: number, event: NotificationEvent): Promise<number>;
  /** Stops publishing by rate; what is published already is still delivered. */
  pause(): void;
  resume(): void;
  paused(): boolean;
}

// A late timer is made good; a jump of the clock or a pause is not, as it would end in a flood.
const catchUpMaxMs = 100;
// Bodies wait in memory: with an endpoint that hangs, publishing waits too.
const inHandMax = 10_000;
const publishNowBatch = 100;

/** Creates a publisher that publishes nothing before it is told to. */
export function createPublisher(options: PublisherOptions): Publisher {
  const { clock, dispatcher, begins, ratePerSecond, count = Number.POSITIVE_INFINITY } = options;
  const live = createLiveProducts();
  const followUps = createFollowUps(options);
  const publish = createPublishEvent(options, live, followUps);
  const publishNext = createPublishNext(options, publish);
  const publishStep = createPublishStep(followUps, publish, publishNext);
  const { publishPast, pass } = createSimulatedTime(publishStep, options);
  const gate = createGate();
  const present = () => ({ atMs: Math.trunc(clock.now()), past: false });

  return {
    run: async (signal) => {
      if (begins !== undefined) await Promise.race([begins, aborted(signal)]);
      const intervalMs = 1_000 / ratePerSecond;
      let dueMs = clock.now();
      let published = 0;
      while (await clock.waitUntil(dueMs, signal)) {
        await gate.passed(signal);
        await dispatcher.room(inHandMax);
        if (signal.aborted) break;
        const outcome = publishStep(present(), published < count);
        if (outcome === 'nothing') break;
        if (outcome === 'product') published += 1;
        dueMs = Math.max(dueMs, clock.now() - catchUpMaxMs) + intervalMs;
      }
      await dispatcher.drained();
    },
    publishNow: (wanted, event) =>
      event === 'created'
        ? publishNewNow(wanted, () => publishNext(present()))
        : publishChangesNow(wanted, live, (product) => publish(event, product, present())),
    publishPast,
    pass,
    quiet: dispatcher.quiet,
    drained: dispatcher.drained,
    pause: gate.shut,
    resume: gate.open,
    paused: gate.isShut,
  };
}

async function publishNewNow(count: number, publishNext: () => LiveProduct | undefined) {
  for (let published = 0; published < count; published += 1) {
    if (publishNext() === undefined) return published;
    if (published % publishNowBatch === 0) await setImmediate();
  }
  return count;
}

async function publishChangesNow(
  count: number,
  live: LiveProducts,
  publish: (product: LiveProduct) => void,
) {
  let published = 0;
  while (published < count) {
    const batch = live.oldest(Math.min(count - published, publishNowBatch));
    if (batch.length === 0) break;
    for (const product of batch) publish(product);
    published += batch.length;
    await setImmediate();
  }
  return published;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Lets the publisher pass unless it is shut. */
function createGate() {
  let opened = Promise.withResolvers<void>();
  let shut = false;
  return {
    isShut: () => shut,
    shut: () => {
      if (shut) return;
      shut = true;
      opened = Promise.withResolvers<void>();
    },
    open: () => {
      shut = false;
      opened.resolve();
    },
    passed: async (signal: AbortSignal) => {
      const giveUp = () => opened.resolve();
      signal.addEventListener('abort', giveUp, { once: true });
      while (shut && !signal.aborted) await opened.promise;
      signal.removeEventListener('abort', giveUp);
    },
  };
}
