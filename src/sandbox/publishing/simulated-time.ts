/** Publishes without waiting: what happened before the start, and what happens while time is made to pass. */
import { setImmediate } from 'node:timers/promises';
import type { Dispatcher } from '../delivery/dispatcher.ts';
import type { SandboxClock } from '../sandbox-clock.ts';
import type { PublishStep } from './publish-step.ts';

/** A past of so long, at so many products a day. */
export interface Past {
  readonly durationMs: number;
  readonly productsPerDay: number;
}

/** What is to happen while the time moves on. */
export interface Passage {
  readonly durationMs: number;
  /** Products, spread evenly; what is planned to become of earlier ones happens with them. */
  readonly products: number;
  /** The time moves in so many equal steps; as many as there are products unless told. */
  readonly steps?: number | undefined;
}

export interface SimulatedTime {
  /**
   * Publishes a past that ends now and tells nobody of it: it is in the lists, as if no endpoint had been
   * there. Returns how many products there were; fewer when the source ended, or `signal` was aborted.
   */
  publishPast(past: Past, signal: AbortSignal): Promise<number>;
  /**
   * Moves the time forward while products are published. Each step waits until all that is due was sent,
   * so that a notification leaves at its own time. Returns how many products there were. Without products,
   * each step goes on to changes that are planned.
   */
  pass(passage: Passage, signal: AbortSignal): Promise<number>;
}

const dayMs = 86_400_000;
const pastBatch = 100;

/** How many products a past has. */
export function pastProducts({ durationMs, productsPerDay }: Past): number {
  return Math.round((durationMs / dayMs) * productsPerDay);
}

export function createSimulatedTime(
  publishStep: PublishStep,
  { clock, dispatcher }: { clock: SandboxClock; dispatcher: Pick<Dispatcher, 'quiet'> },
): SimulatedTime {
  return {
    publishPast: async (past, signal) => {
      const products = pastProducts(past);
      const endMs = Math.trunc(clock.now());
      const intervalMs = past.durationMs / Math.max(1, products);
      let published = 0;
      for (let step = 1; !signal.aborted; step += 1) {
        // Changes that are left at the end come with the last products.
        const sinceMs = Math.min(step * intervalMs, past.durationMs);
        const moment = { atMs: Math.trunc(endMs - past.durationMs + sinceMs), past: true };
        const outcome = publishStep(moment, published < products);
        if (outcome === 'nothing') break;
        if (outcome === 'product') published += 1;
        if (step % pastBatch === 0) await setImmediate();
      }
      return published;
    },
    pass: async ({ durationMs, products, steps = products }, signal) => {
      let published = 0;
      for (let step = 1; step <= Math.max(1, steps) && !signal.aborted; step += 1) {
        clock.advance(durationMs / Math.max(1, steps));
        const moment = { atMs: Math.trunc(clock.now()), past: false };
        const due = Math.floor((step * products) / Math.max(1, steps));
        if (products === 0) publishStep(moment, false);
        for (; published < due; published += 1) {
          if (publishStep(moment, true) !== 'product') return published;
        }
        await dispatcher.quiet();
      }
      return published;
    },
  };
}
