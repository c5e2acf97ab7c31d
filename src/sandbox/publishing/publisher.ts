/** Publishes products and their changes: at a steady rate, at once, before the start, or while the clock is moved. */
import { setImmediate } from 'node:timers/promises';
import type { Random, SandboxClock } from '../clock.ts';
import type { Dispatcher } from '../delivery/dispatcher.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import type { CatalogueProduct, ProductGenerator } from '../products/product-generator.ts';
import type { Ledger } from './ledger.ts';

interface PublisherOptions {
  /** The generator, or a file of records; `next` returns undefined at its end. */
  readonly source: Omit<ProductGenerator, 'next'> & {
    next(publicationMs: number): CatalogueProduct | undefined;
  };
  readonly ledger: Pick<Ledger, 'add'>;
  /** Notifies the subscriptions of an event. */
  readonly notify: (entry: ReturnType<Ledger['add']>) => void;
  readonly dispatcher: Pick<Dispatcher, 'capacity' | 'drained' | 'quiet'>;
  readonly clock: SandboxClock;
  readonly random: Random;
  /** Probabilities that each publication modifies, and deletes, one of the products published last. */
  readonly modifiedShare: number;
  readonly deletedShare: number;
  /** Share of the products that query results show with a delay, and its maximum, ms. */
  readonly lateShare: number;
  readonly lateMaxMs: number;
  readonly ratePerSecond: number;
  /** Number of products to publish by rate (default: all of the source). */
  readonly count?: number | undefined;
  /** Publishing by rate begins when this resolves. */
  readonly startAfter: Promise<void>;
}

/** Products to publish before the start, or while the time moves forward. */
export interface SimulatedPeriod {
  readonly durationMs: number;
  /** Number of products, spread evenly, with changes of earlier ones. */
  readonly products: number;
}

/** A published product in its current state. Times are ms since 1970. */
interface LiveProduct {
  latest: CatalogueProduct;
  /** Time of its publication or latest change in the catalogue. */
  changedMs: number;
  /** Delay from a change in the catalogue to the notification. */
  readonly delayMs: number;
  /** Time from which query results contain it. */
  readonly shownFromMs: number;
}

// The two documented bodies that contain both times were sent 46 and 48 s after the publication.
const catalogueDelayMs = [46_000, 48_000] as const;
const liveMax = 1_000;
/** Changes are of one of this number of products. */
const recentMax = 20;
// Compensates timer delays, but not a clock jump or a pause, which would cause a burst.
const catchUpMaxMs = 100;
// Open bodies are in memory, so publishing waits if an endpoint hangs.
const openMax = 10_000;
const batch = 100;

/** Creates a publisher. Publishes nothing before a method is called. */
export function createPublisher(options: PublisherOptions) {
  const { clock, dispatcher, startAfter, ratePerSecond, count = Infinity } = options;
  const publication = createPublication(options);
  let resumed: PromiseWithResolvers<void> | null = null;

  return {
    /** Publishes until the count, the end of the source or an abort; then waits for the deliveries. */
    run: async (signal: AbortSignal): Promise<void> => {
      const aborted = new Promise((resolve) => {
        signal.addEventListener('abort', resolve, { once: true });
      });
      await Promise.race([startAfter, aborted]);
      let dueMs = clock.now();
      let published = 0;
      while (await clock.waitUntil(dueMs, signal)) {
        if (resumed !== null) await Promise.race([resumed.promise, aborted]);
        await dispatcher.capacity(openMax);
        // A rate that the machine does not reach must not keep all other work waiting.
        await setImmediate();
        if (signal.aborted) break;
        if (resumed !== null) continue;
        if (published >= count || !publication.next(clock.now())) break;
        published += 1;
        dueMs = Math.max(dueMs, clock.now() - catchUpMaxMs) + 1_000 / ratePerSecond;
      }
      await dispatcher.drained();
    },
    /** Publishes immediately, even when paused or beyond `count`. Returns the number of published events. */
    publishNow: async (requested: number, event: NotificationEvent): Promise<number> => {
      let published = 0;
      while (published < requested && publication.publish(event, clock.now())) {
        published += 1;
        if (published % batch === 0) await setImmediate();
      }
      return published;
    },
    ...createSimulatedTime(publication, options),
    /** Resolves when everything that is due has been sent. */
    quiet: dispatcher.quiet,
    /** Stops publishing by rate. Published notifications are still delivered. */
    pause: () => {
      resumed ??= Promise.withResolvers<void>();
    },
    resume: () => {
      resumed?.resolve();
      resumed = null;
    },
  };
}

/** Creates the methods that publish in simulated time. */
function createSimulatedTime(
  publication: ReturnType<typeof createPublication>,
  { clock, dispatcher }: PublisherOptions,
) {
  return {
    /** Publishes a past that ends now. */
    publishPast: async ({ durationMs, products }: SimulatedPeriod, signal: AbortSignal) => {
      const startMs = clock.now() - durationMs;
      for (let published = 1; published <= products && !signal.aborted; published += 1) {
        if (!publication.next(startMs + (published * durationMs) / products)) break;
        if (published % batch === 0) await setImmediate();
      }
    },
    /**
     * Moves the time forward while publishing products. Each step waits until everything due has been sent,
     * so that each notification is sent at its own time.
     */
    pass: async ({ durationMs, products }: SimulatedPeriod, signal: AbortSignal) => {
      const steps = Math.max(1, products);
      for (let step = 1; step <= steps && !signal.aborted; step += 1) {
        clock.advance(durationMs / steps);
        if (products > 0 && !publication.next(clock.now())) return;
        await dispatcher.quiet();
      }
    },
  };
}

/** Creates the publication of products, one at a time, and their changes. */
function createPublication(options: PublisherOptions) {
  const { source, random, ledger, notify, lateShare, lateMaxMs } = options;
  const { modifiedShare, deletedShare } = options;
  /** Recently published or modified products, oldest first. */
  const live: LiveProduct[] = [];

  const publishEvent = (event: NotificationEvent, product: LiveProduct, atMs: number) => {
    const record = changedRecord(event, product, atMs, source);
    if (event !== 'deleted') live.push(product);
    if (live.length > liveMax) live.shift();
    const shownFromMs = event === 'deleted' ? atMs : Math.max(atMs, product.shownFromMs);
    notify(ledger.add(event, record, { atMs, shownFromMs }));
  };
  /** Changes the live product at an index. Returns false if there is none. */
  const change = (event: 'modified' | 'deleted', index: number, atMs: number): boolean => {
    const [product] = live.splice(index, 1);
    if (product !== undefined) publishEvent(event, product, atMs);
    return product !== undefined;
  };
  const create = (atMs: number): boolean => {
    const delayMs = random.integer(...catalogueDelayMs);
    const changedMs = atMs - delayMs;
    const latest = source.next(changedMs);
    if (latest === undefined) return false;
    const shownFromMs = atMs + (random.chance(lateShare) ? random.integer(1, lateMaxMs) : 0);
    publishEvent('created', { latest, changedMs, delayMs, shownFromMs }, atMs);
    return true;
  };

  return {
    /** Publishes a product, or changes the oldest recent one. Returns false if there is none. */
    publish: (event: NotificationEvent, nowMs: number): boolean => {
      const atMs = Math.trunc(nowMs);
      return event === 'created' ? create(atMs) : change(event, 0, atMs);
    },
    /** Publishes a product, and perhaps changes of recent ones. Returns false at the end of the source. */
    next: (nowMs: number): boolean => {
      const atMs = Math.trunc(nowMs);
      if (!create(atMs)) return false;
      const shares = { modified: modifiedShare, deleted: deletedShare };
      for (const event of ['modified', 'deleted'] as const) {
        if (!random.chance(shares[event])) continue;
        change(event, -random.integer(1, recentMax), atMs);
      }
      return true;
    },
  };
}

/** Returns the record after a change, which happens before the notification. */
function changedRecord(
  event: NotificationEvent,
  product: LiveProduct,
  atMs: number,
  source: PublisherOptions['source'],
): CatalogueProduct {
  if (event === 'created') return product.latest;
  product.changedMs = Math.max(atMs - product.delayMs, product.changedMs + 1);
  if (event === 'deleted') return source.deleted(product.latest, product.changedMs);
  product.latest = source.modified(product.latest, product.changedMs);
  return product.latest;
}
