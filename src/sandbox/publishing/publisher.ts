/** Publishes products at a steady rate, immediately, before the start, or while the clock is moved. */
import { setImmediate } from 'node:timers/promises';
import type { SandboxClock } from '../clock.ts';
import type { Dispatcher } from '../delivery/dispatcher.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import { createPublication, type Publication, type PublicationOptions } from './publication.ts';

export interface PublisherOptions extends PublicationOptions {
  readonly dispatcher: Pick<Dispatcher, 'dispatch' | 'capacity' | 'drained' | 'quiet'>;
  readonly clock: SandboxClock;
  readonly ratePerSecond: number;
  /** Number of products to publish by rate (default: all of the source). */
  readonly count?: number | undefined;
  /** Publishing by rate begins when this resolves (default: immediately). */
  readonly startAfter?: Promise<void>;
}

/** Simulated past before the start. */
interface Past {
  readonly durationMs: number;
  readonly productsPerDay: number;
}

/** Products to publish while the time moves forward. */
export interface SimulatedPeriod {
  readonly durationMs: number;
  /** Number of products, spread evenly. Due changes of earlier products are published too. */
  readonly products: number;
  /** Number of equal steps (default: number of products). */
  readonly steps?: number | undefined;
}

const dayMs = 86_400_000;
// Compensates timer delays, but not a clock jump or a pause, which would cause a burst.
const catchUpMaxMs = 100;
// Open bodies are in memory, so publishing waits if an endpoint hangs.
const openMax = 10_000;
const batch = 100;

/** Returns the number of products in a past. */
export function pastProducts({ durationMs, productsPerDay }: Past): number {
  return Math.round((durationMs / dayMs) * productsPerDay);
}

export type Publisher = ReturnType<typeof createPublisher>;

/** Creates a publisher. Publishes nothing before a method is called. */
export function createPublisher(options: PublisherOptions) {
  const {
    clock,
    dispatcher,
    startAfter,
    ratePerSecond,
    count = Number.POSITIVE_INFINITY,
  } = options;
  const publication = createPublication(options);
  const gate = createGate();
  const present = () => ({ atMs: Math.trunc(clock.now()), past: false });

  return {
    /** Publishes until the count, the end of the source or an abort; then waits for the deliveries. */
    run: async (signal: AbortSignal): Promise<void> => {
      if (startAfter !== undefined) await Promise.race([startAfter, aborted(signal)]);
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
    /** Publishes immediately, even when paused or beyond `count`. Returns the number of published events. */
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
    /** Resolves when everything that is due has been sent. */
    quiet: dispatcher.quiet,
    /** Stops publishing by rate. Published notifications are still delivered. */
    pause: gate.close,
    resume: gate.open,
    paused: gate.isClosed,
  };
}

/** Creates the methods that publish in simulated time. */
function createSimulatedTime(publication: Publication, { clock, dispatcher }: PublisherOptions) {
  return {
    /**
     * Publishes a past that ends now, without notifications. Returns the number of products; fewer if the
     * source ended or `signal` was aborted.
     */
    publishPast: async (past: Past, signal: AbortSignal): Promise<number> => {
      const products = pastProducts(past);
      const startMs = Math.trunc(clock.now()) - past.durationMs;
      const intervalMs = past.durationMs / Math.max(1, products);
      let published = 0;
      for (let step = 1; !signal.aborted; step += 1) {
        // Remaining changes are published at the end.
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
     * Moves the time forward while publishing products. Each step waits until everything due has been sent,
     * so that each notification is sent at its own time. Returns the number of products. Without products,
     * each step publishes planned changes.
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

/** Creates a gate that pauses the publisher while it is closed. */
function createGate() {
  let opened: PromiseWithResolvers<void> | null = null;
  return {
    isClosed: () => opened !== null,
    close: () => {
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
