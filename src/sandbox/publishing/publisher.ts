/** Publishes products at a steady rate and turns what happens to them into notifications. */
import { setImmediate } from 'node:timers/promises';
import type { Dispatcher } from '../delivery/dispatcher.ts';
import { planDelivery, planShape } from '../delivery/fault-plan.ts';
import type { FaultSettings, Faults } from '../delivery/faults.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import type { RecipientsOf } from '../delivery/recipients.ts';
import type { Random } from '../random.ts';
import type { SandboxClock } from '../sandbox-clock.ts';
import { createFollowUps, type FollowUps } from './follow-ups.ts';
import type { Holdings } from './holdings.ts';
import { createLiveProducts, type LiveProduct, type LiveProducts } from './live-products.ts';
import type { PublicationSource } from './publication-source.ts';

export interface PublisherOptions {
  readonly source: PublicationSource;
  readonly recipientsOf: RecipientsOf;
  /** Takes in all that is published. */
  readonly holdings: Pick<Holdings, 'note'>;
  readonly dispatcher: Dispatcher;
  readonly clock: SandboxClock;
  readonly random: Random;
  readonly faults: FaultSettings;
  readonly ratePerSecond: number;
  /** Products to publish; until the source ends, or for ever, unless told. */
  readonly count?: number | undefined;
  /** Shares (0 to 1) of the products that are modified and deleted some products later. */
  readonly modifiedShare: number;
  readonly deletedShare: number;
  /** Publishing by rate begins when this resolves; at once unless told. */
  readonly begins?: Promise<void>;
}

export interface Publisher {
  /** Publishes until the count is reached, the source ends or `signal` is aborted; then waits until all is drained. */
  run(signal: AbortSignal): Promise<void>;
  /** Resolves when no notification is in hand. */
  drained(): Promise<void>;
  /** Publishes at once, even when paused and beyond `count`; returns how many there were products for. */
  publishNow(count: number, event: NotificationEvent): Promise<number>;
  /** Stops publishing by rate; what is published already is still delivered. */
  pause(): void;
  resume(): void;
  paused(): boolean;
}

// The two documented bodies that allow the comparison came 46 and 48 s after the publication.
const catalogueDelayMs = { min: 46_000, max: 48_000 };
// A late timer is made good; a jump of the clock or a pause is not, as it would end in a flood.
const catchUpMaxMs = 100;
// Bodies wait in memory: with an endpoint that hangs, publishing waits too.
const inHandMax = 10_000;
const publishNowBatch = 100;

type Publish = (event: NotificationEvent, product: LiveProduct) => void;

/** Creates a publisher that publishes nothing before it is told to. */
export function createPublisher(options: PublisherOptions): Publisher {
  const { clock, dispatcher, ratePerSecond, begins } = options;
  const live = createLiveProducts();
  const followUps = createFollowUps(options);
  const publish = createPublish(options, live, followUps);
  const publishNext = createPublishNext(options, publish);
  const publishStep = createPublishStep(options, followUps, publish, publishNext);
  const gate = createGate();

  return {
    run: async (signal) => {
      if (begins !== undefined) await Promise.race([begins, aborted(signal)]);
      const intervalMs = 1_000 / ratePerSecond;
      let dueMs = clock.now();
      while (await clock.waitUntil(dueMs, signal)) {
        await gate.passed(signal);
        await dispatcher.room(inHandMax);
        if (signal.aborted || !publishStep()) break;
        dueMs = Math.max(dueMs, clock.now() - catchUpMaxMs) + intervalMs;
      }
      await dispatcher.drained();
    },
    drained: () => dispatcher.drained(),
    publishNow: (count, event) =>
      event === 'created'
        ? publishNewNow(count, publishNext)
        : publishChangesNow(count, event, live, publish),
    pause: gate.shut,
    resume: gate.open,
    paused: gate.isShut,
  };
}

function createPublish(
  options: PublisherOptions,
  live: LiveProducts,
  followUps: FollowUps,
): Publish {
  const { source, recipientsOf, holdings, dispatcher, clock, random, faults } = options;

  const changed = (event: NotificationEvent, product: LiveProduct, atMs: number) => {
    const changedMs = Math.max(atMs - product.delayMs, product.publishedMs + 1);
    if (event === 'deleted') return source.deleted(product.latest, changedMs);
    if (event === 'modified') product.latest = source.modified(product.latest, changedMs);
    return product.latest;
  };

  return (event, product) => {
    const atMs = Math.trunc(clock.now());
    // Drawn even when nobody is listening, so that subscriptions do not change what is published.
    const fate = drawFate(faults.current(), random);
    const notified = changed(event, product, atMs);
    live.remove(product);
    if (event === 'deleted') followUps.cancel(product);
    else live.add(product);
    const { view } = holdings.note(event, notified);
    for (const recipient of recipientsOf(event, view)) {
      const { shape, plan } = recipient.random
        ? drawFate(faults.current(), recipient.random)
        : fate;
      const notification = recipient.builder.build({ event, product: notified, atMs, shape });
      dispatcher.dispatch(notification, plan, recipient);
    }
  };
}

function drawFate(faults: Faults, random: Random) {
  return { shape: planShape(faults, random), plan: planDelivery(faults, random) };
}

/** Publishes the source's next product; undefined when there is none. */
function createPublishNext({ source, clock, random }: PublisherOptions, publish: Publish) {
  return (): LiveProduct | undefined => {
    const delayMs = random.integer(catalogueDelayMs.min, catalogueDelayMs.max);
    const publishedMs = Math.trunc(clock.now()) - delayMs;
    const latest = source.next(publishedMs);
    if (latest === undefined) return undefined;
    const product = { latest, publishedMs, delayMs };
    publish('created', product);
    return product;
  };
}

/** One step: the next product, if any, and the follow-ups that are due. False when nothing is left. */
function createPublishStep(
  { count = Number.POSITIVE_INFINITY }: PublisherOptions,
  followUps: FollowUps,
  publish: Publish,
  publishNext: () => LiveProduct | undefined,
) {
  let step = 0;
  let published = 0;
  return () => {
    const product = published < count ? publishNext() : undefined;
    if (product) {
      published += 1;
      step += 1;
      followUps.plan(product, step);
    } else {
      const nextStep = followUps.nextStep();
      if (nextStep === undefined) return false;
      step = Math.max(step + 1, nextStep);
    }
    for (const followUp of followUps.takeDue(step)) publish(followUp.event, followUp.product);
    return true;
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
  event: NotificationEvent,
  live: LiveProducts,
  publish: Publish,
) {
  let published = 0;
  while (published < count) {
    const batch = live.oldest(Math.min(count - published, publishNowBatch));
    if (batch.length === 0) break;
    for (const product of batch) publish(event, product);
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
