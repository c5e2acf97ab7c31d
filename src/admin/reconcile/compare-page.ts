/** Compares a page of events with the log, and writes those that are missing. */
import { AppError, isAppError } from '../../domain/app-error.ts';
import type { Completeness } from '../../domain/completeness.ts';
import type { Products } from '../../domain/products.ts';
import { lookUpProducts, outcomeOf } from './known-events.ts';
import type { ListedEvent } from './product-listing.ts';
import { type IndexWorld, reachedIndex } from './reached-index.ts';
import type { EventOutcome, ReconcileMode, ReconcileTask } from './reconcile-task.ts';
import { recoveredBody } from './recovered-body.ts';

/** What the port of the store takes at once. */
const recoverMax = 100;
/** The store itself looks through as many positions that are not indexed yet, and some more. */
const lagMax = 3_000;
/** Each round leaves only what became known while it ran, so that a second one is rare already. */
const roundsMax = 10;

export interface CompareWorld extends IndexWorld {
  completeness: Pick<Completeness, 'recoveredEvents' | 'recover' | 'wholeSinceUs'>;
  products: Pick<Products, 'pushedEvents' | 'indexedPosition'>;
  /** The catalogue's time, by which its dates are judged. */
  nowUs(): number;
  /** Our own time, by which entries are dated, as pushes are; that of `nowUs` unless told. */
  ownNowUs?: (() => number) | undefined;
}

export interface CompareOptions {
  mode: ReconcileMode;
  settlingUs: number;
  signal: AbortSignal;
}

export interface ComparedEvent {
  listed: ListedEvent;
  /** As it is now: what was missing and has been written is recovered. */
  outcome: EventOutcome;
  /** True for what was not in the log before. */
  wasMissing: boolean;
}

/**
 * Compares at most 1,000 events that are expected; in any order; those before the horizon of pruning are left out. In mode `write`, what was missing is on
 * disk when it resolves. Rejects with `unavailable` when the store or its index is, and with the signal's reason.
 */
export async function comparePage(
  task: ReconcileTask,
  listed: readonly ListedEvent[],
  world: CompareWorld,
  options: CompareOptions,
): Promise<ComparedEvent[]> {
  const { mode, settlingUs, signal } = options;
  const compared: ComparedEvent[] = [];
  let open = listed;
  for (let round = 1; open.length > 0; round += 1) {
    if (round > roundsMax) throw tooBusy();
    // Without a write nobody looks at what is not indexed yet; and what just became known must be seen.
    const isExact = mode !== 'write' || round > 1;
    const knownUpTo = await reachedIndex(world, { lagMax: isExact ? 0 : lagMax, signal });
    const productIds = [...new Set(open.map(({ productId }) => productId))];
    const known = await lookUpProducts({ subscription: task.subscription, productIds }, world);
    // Another index has taken the place of the one that was waited for, and may know less.
    if ((await world.products.indexedPosition()) < knownUpTo) continue;
    // Asked for last: what is known of a notification goes after it.
    const wholeSinceUs = await wholeSince(world);
    const missing: ListedEvent[] = [];
    for (const one of open) {
      if (one.eventUs < wholeSinceUs) continue;
      const outcome = outcomeOf(
        task.event,
        one,
        known.get(one.productId.toLowerCase()),
        settlingUs,
      );
      if (outcome === 'missing') missing.push(one);
      else compared.push({ listed: one, outcome, wasMissing: false });
    }
    if (mode !== 'write') return [...compared, ...missing.map(leftMissing)];
    const { recovered, undecided } = await recover(task, missing, knownUpTo, { world, signal });
    for (const one of recovered) {
      compared.push({ listed: one, outcome: 'recovered', wasMissing: true });
    }
    open = undecided;
  }
  return compared;
}

/** By the catalogue's clock: where it is ahead of ours, pushes were dated before their events. */
async function wholeSince({ completeness, nowUs, ownNowUs = nowUs }: CompareWorld) {
  return (await completeness.wholeSinceUs()) + Math.max(0, nowUs() - ownNowUs());
}

const leftMissing = (listed: ListedEvent): ComparedEvent => ({
  listed,
  outcome: 'missing',
  wasMissing: true,
});

/** `undecided` is what became known meanwhile, or was not tried since the log has grown too fast. */
async function recover(
  task: ReconcileTask,
  missing: readonly ListedEvent[],
  knownUpTo: number,
  { world, signal }: { world: CompareWorld; signal: AbortSignal },
): Promise<{ recovered: ListedEvent[]; undecided: ListedEvent[] }> {
  const { subscription, event } = task;
  const recovered: ListedEvent[] = [];
  const undecided: ListedEvent[] = [];
  for (let at = 0; at < missing.length; at += recoverMax) {
    signal.throwIfAborted();
    const batch = missing.slice(at, at + recoverMax);
    const events = batch.map((one) => {
      const { productId, eventUs } = one;
      return { subscription, event, productId, eventUs, body: recoveredBody(task, one) };
    });
    try {
      const atUs = world.ownNowUs?.() ?? world.nowUs();
      const positions = await world.completeness.recover({ events, knownUpTo, atUs });
      for (const [i, one] of batch.entries()) {
        (positions[i] === null ? undecided : recovered).push(one);
      }
    } catch (error) {
      if (!isAppError(error, 'conflict')) throw error;
      return { recovered, undecided: [...undecided, ...missing.slice(at)] };
    }
  }
  return { recovered, undecided };
}

function tooBusy(): AppError {
  return new AppError(
    'unavailable',
    'Notifications come in faster than they can be compared with the catalogue.',
    { advice: 'Try again when it is quieter: it goes on where it was.' },
  );
}
