/** Publishes products at a steady rate, at once, before the start, or while time is made to pass. */
import { setImmediate } from 'node:timers/promises';
import type { SandboxClock } from '../clock.ts';
import type { Dispatcher } from '../delivery/dispatcher.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import { createPublication, type Publication, type PublicationOptions } from './publication.ts';

export interface PublisherOptions extends PublicationOptions {
  readonly dispatcher: Pick<Dispatcher, 'dispatch' | 'capacity' | 'drained' | 'quiet'>;
  readonly clock: SandboxClock;
  readonly ratePerSecond: number;
  /** Products to publish by rate; by default until the source ends. */
  readonly count?: number | undefined;
  /** Publishing by rate begins when this resolves; by default at once. */
  readonly begins?: Promise<void>;
}

/** A past of some length, and its products a day. */
interface Past {
  readonly durationMs: number;
  readonly productsPerDay: number;
}

/** What is to happen while the time moves forward. */
export interface SimulatedPeriod {
  readonly durationMs: number;
  /** Products, spread evenly; the changes planned for earlier ones happen with them. */
  readonly products: number;
  /** Number of equal steps; by default that of the products. */
  readonly steps?: number | undefined;
}

const dayMs = 86_400_000;
// A late timer is compensated; a jump of the clock or a pause is not, as it would end in a flood.
const catchUpMaxMs = 100;
// Bodies wait in memory: with an endpoint that hangs, publishing waits too.
const openMax = 10_000;
const batch = 100;

/** Returns how many products a past has. */
export function pastProducts({ durationMs, productsPerDay }: Past): number {
  return Math.round((durationMs / dayMs) * productsPerDay);
}

export type Publisher = ReturnType<typeof createPublisher>;

/** Creates a publisher that publishes nothing before one of its methods is called. */
export function createPublisher(options: PublisherOptions) {
  const { clock, dispatcher, begins, ratePerSecond, count = Number.POSITIVE_INFINITY } = options;
  const publication = createPublication(options);
  const gate = createGate();
  const present = () => ({ atMs: Math.trunc(clock.now()), past: false });

  return {
    /** Publishes until the count is reached, the source ends or `signal` is aborted; then waits for the deliveries. */
    run: async (signal: AbortSignal): Promise<void> => {
      if (begins !== undefined) await Promise.race([begins, aborted(signal)]);
      const intervalMs = 1_000 / ratePerSecond;
      let dueMs = clock.now();
      let published = 0;
      while (await clock.waitUntil(dueMs, signal)) {
        await gate.passed(signal);
        await dispatcher.capacity(openMax);
        if (signal.aborted) break;
        const outcome = publication.step(present(), published < count);
        if (outcome === 'nothing') break;
        if (outcome === 'product') published += 1;
        dueMs = Math.max(dueMs, clock.now() - catchUpMaxMs) + intervalMs;
      }
      await dispatcher.drained();
    },
    /** Publishes at once, even when paused and beyond `count`; returns how many there were products for. */
    publishNow: async (requested: number, event: NotificationEvent): Promise<number> => {
      let published = 0;
      while (published < requested) {
        const done = publication.publish(event, Math.min(requested - published, batch), present);
        if (done === 0) break;
        published += done;
        await setImmediate();
      }
      return published;
    },
    ...createSimulatedTime(publication, options),
    /** Resolves when all open notifications wait for their time. */
    quiet: dispatcher.quiet,
    /** Stops publishing by rate; what is published already is still delivered. */
    pause: gate.shut,
    resume: gate.open,
    paused: gate.isShut,
  };
}

/** Creates the methods that publish without waiting, before the start or while time passes. */
function createSimulatedTime(publication: Publication, { clock, dispatcher }: PublisherOptions) {
  return {
    /**
     * Publishes a past that ends now, without notifications, as if no endpoint had been there. Returns how
     * many products there were; fewer when the source ended, or `signal` was aborted.
     */
    publishPast: async (past: Past, signal: AbortSignal): Promise<number> => {
      const products = pastProducts(past);
      const startMs = Math.trunc(clock.now()) - past.durationMs;
      const intervalMs = past.durationMs / Math.max(1, products);
      let published = 0;
      for (let step = 1; !signal.aborted; step += 1) {
        // Changes that are left at the end come with the last products.
        const sinceMs = Math.min(step * intervalMs, past.durationMs);
        const moment = { atMs: Math.trunc(startMs + sinceMs), past: true };
        const outcome = publication.step(moment, published < products);
        if (outcome === 'nothing') break;
        if (outcome === 'product') published += 1;
        if (step % batch === 0) await setImmediate();
      }
      return published;
    },
    /**
     * Moves the time forward while products are published. Each step waits until all that is due was sent,
     * so that a notification leaves at its own time. Returns how many products there were. Without products,
     * each step continues with changes that are planned.
     */
    pass: async (period: SimulatedPeriod, signal: AbortSignal): Promise<number> => {
      const { durationMs, products } = period;
      const steps = Math.max(1, period.steps ?? products);
      let published = 0;
      for (let step = 1; step <= steps && !signal.aborted; step += 1) {
        clock.advance(durationMs / steps);
        const moment = { atMs: Math.trunc(clock.now()), past: false };
        if (products === 0) publication.step(moment, false);
        for (const due = Math.floor((step * products) / steps); published < due; published += 1) {
          if (publication.step(moment, true) !== 'product') return published;
        }
        await dispatcher.quiet();
      }
      return published;
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Creates a gate that lets the publisher pass unless it is shut. */
function createGate() {
  let opened: PromiseWithResolvers<void> | null = null;
  return {
    isShut: () => opened !== null,
    shut: () => {
      opened ??= Promise.withResolvers<void>();
    },
    open: () => {
      opened?.resolve();
      opened = null;
    },
    passed: async (signal: AbortSignal) => {
      while (opened !== null && !signal.aborted) {
        await Promise.race([opened.promise, aborted(signal)]);
      }
    },
  };
}
