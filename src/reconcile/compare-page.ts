/** Compares a page of events with the log, and writes those that are missing. */
import { AppError, isAppError } from '../domain/app-error.ts';
import {
  type Completeness,
  coversEvent,
  millisecondOf,
  type RecoveredEvent,
} from '../domain/completeness.ts';
import type { NotificationLog } from '../domain/ports.ts';
import type { Products, PushedEvent } from '../domain/products.ts';
import type { SubscriptionEvent } from '../domain/subscription.ts';
import type { EventOutcome, ListedEvent, ReconcileMode, ReconcileTask } from './tasks.ts';

/** What the port of the store takes at once. */
const recoverMax = 100;

/** The store itself looks through as many positions that are not indexed yet, and some more. */
const lagMax = 3_000;

/** Each round leaves only what became known while it ran, so that a second one is rare already. */
const roundsMax = 10;

export interface CompareContext {
  completeness: Pick<
    Completeness,
    'recoveredEvents' | 'recover' | 'coverage' | 'saveCoverage' | 'unprunedSinceUs'
  >;
  products: Pick<Products, 'pushedEvents' | 'indexedPosition'>;
  log: Pick<NotificationLog, 'lastPosition'>;
  /** The catalogue's time, by which its dates are judged, and hours dated. */
  nowUs(): number;
  /** Our own time, by which entries are dated, as pushes are; by default that of `nowUs`. */
  ownNowUs?: (() => number) | undefined;
  /** Resolves after a time, or at once when the signal is aborted. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

export interface CompareOptions {
  mode: ReconcileMode;
  /** How long after its event a push is late. */
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
  context: CompareContext,
  options: CompareOptions,
): Promise<ComparedEvent[]> {
  const { mode, settlingUs, signal } = options;
  const compared: ComparedEvent[] = [];
  let open = listed;
  for (let round = 1; open.length > 0; round += 1) {
    if (round > roundsMax) throw tooBusy();
    // Without a write nobody looks at what is not indexed yet; and what just became known must be seen.
    const isExact = mode !== 'write' || round > 1;
    const knownUpTo = await reachedIndex(context, { lagMax: isExact ? 0 : lagMax, signal });
    const productIds = [...new Set(open.map(({ productId }) => productId))];
    const known = await lookUpProducts({ subscription: task.subscription, productIds }, context);
    // Another index has taken the place of the one that was waited for, and may know less.
    if ((await context.products.indexedPosition()) < knownUpTo) continue;
    // Asked for last: what is known of a notification goes after it.
    const unprunedSinceUs = await wholeSince(context);
    const missing: ListedEvent[] = [];
    for (const one of open) {
      if (one.eventUs < unprunedSinceUs) continue;
      const outcome = outcomeOf(
        task.event,
        one,
        known.get(one.productId.toLowerCase()),
        settlingUs,
      );
      if (outcome === 'missing') missing.push(one);
      else compared.push({ listed: one, outcome, wasMissing: false });
    }
    const wereMissing = (some: readonly ListedEvent[], outcome: EventOutcome) =>
      compared.push(...some.map((one) => ({ listed: one, outcome, wasMissing: true })));
    if (mode !== 'write') {
      wereMissing(missing, 'missing');
      break;
    }
    const { recovered, undecided } = await recover(task, missing, knownUpTo, { context, signal });
    wereMissing(recovered, 'recovered');
    open = undecided;
  }
  return compared;
}

/** By the catalogue's clock: where it is ahead of ours, pushes were dated before their events. */
async function wholeSince({ completeness, nowUs, ownNowUs = nowUs }: CompareContext) {
  return (await completeness.unprunedSinceUs()) + Math.max(0, nowUs() - ownNowUs());
}

/** `undecided` is what became known meanwhile, or was not tried since the log has grown too fast. */
async function recover(
  task: ReconcileTask,
  missing: readonly ListedEvent[],
  knownUpTo: number,
  { context, signal }: { context: CompareContext; signal: AbortSignal },
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
      const atUs = context.ownNowUs?.() ?? context.nowUs();
      const positions = await context.completeness.recover({ events, knownUpTo, atUs });
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

/** What the log has of one product, for one subscription. */
interface KnownOfProduct {
  pushes: PushedEvent[];
  recovered: RecoveredEvent[];
}

/** By product id in lower case; nothing for a product that is not known. At most 1,000 ids. */
async function lookUpProducts(
  question: { subscription: string; productIds: readonly string[] },
  context: CompareContext,
): Promise<Map<string, KnownOfProduct>> {
  const [pushes, recovered] = await Promise.all([
    context.products.pushedEvents(question),
    context.completeness.recoveredEvents(question),
  ]);
  const known = new Map<string, KnownOfProduct>();
  const ofProduct = (productId: string) => {
    const key = productId.toLowerCase();
    const there = known.get(key) ?? { pushes: [], recovered: [] };
    known.set(key, there);
    return there;
  };
  for (const push of pushes) ofProduct(push.productId).pushes.push(push);
  for (const event of recovered) ofProduct(event.productId).recovered.push(event);
  return known;
}

/**
 * A product that was never changed since has the date of its publication as that of its modification;
 * then no modification was told of. Without a date of publication one is expected: rather one too many.
 */
export function isExpected(
  event: SubscriptionEvent,
  { eventUs, publicationUs }: ListedEvent,
): boolean {
  if (event !== 'modified' || publicationUs === null) return true;
  return millisecondOf(eventUs) > millisecondOf(publicationUs);
}

/** How the log stands to an event; `settlingUs` after its date, a push is late. */
function outcomeOf(
  event: SubscriptionEvent,
  { eventUs }: Pick<ListedEvent, 'eventUs'>,
  known: KnownOfProduct | undefined,
  settlingUs: number,
): EventOutcome {
  const pushes = (known?.pushes ?? []).filter((push) => coversEvent(push, { event, eventUs }));
  const recovered = (known?.recovered ?? []).filter(
    (one) =>
      one.event === event &&
      (event !== 'modified' || millisecondOf(one.eventUs) === millisecondOf(eventUs)),
  );
  const [push] = pushes.toSorted((a, b) => a.position - b.position);
  if (push === undefined) {
    if (recovered.length === 0) return 'missing';
    return recovered.some(({ pushedAtUs }) => pushedAtUs !== null) ? 'late' : 'recovered';
  }
  const cameAfter = recovered.some(({ position }) => position < push.position);
  return cameAfter || push.receivedUs > eventUs + settlingUs ? 'late' : 'pushed';
}

const pauseMs = 200;

const waitMaxMs = 600_000;

/**
 * Resolves with the position that is indexed, once no more than `lagMax` positions are missing to what is
 * the log's end now. Rejects with `unavailable` when the index stands still for ten minutes.
 */
async function reachedIndex(
  { products, log, pause }: CompareContext,
  { lagMax, signal }: { lagMax: number; signal: AbortSignal },
): Promise<number> {
  const lastPosition = await log.lastPosition();
  let reached: number | null = null;
  for (let waitedMs = 0; ; waitedMs += pauseMs) {
    signal.throwIfAborted();
    const position = await products.indexedPosition();
    if (position >= lastPosition - lagMax) return position;
    if (position !== reached) waitedMs = 0;
    reached = position;
    if (waitedMs >= waitMaxMs) throw behind(lastPosition - position);
    await pause(pauseMs, signal);
  }
}

function behind(lag: number): AppError {
  return new AppError(
    'unavailable',
    `The product index is ${lag} notifications behind the log and has not moved for ten minutes, so that what was pushed cannot be looked up.`,
    {
      advice:
        'Look in the log of `earshot start` for what keeps it back, then try again: it goes on where it was.',
    },
  );
}

const encoder = new TextEncoder();

/** Compact JSON without AckId and NotificationDate: nobody sent one (specification, "Push notification"). */
function recoveredBody(
  { event, subscriptionId }: Pick<ReconcileTask, 'event' | 'subscriptionId'>,
  { productId, productName, record }: Pick<ListedEvent, 'productId' | 'productName' | 'record'>,
): Uint8Array {
  return encoder.encode(
    JSON.stringify({
      SubscriptionEvent: event,
      ProductId: productId,
      ProductName: productName,
      SubscriptionId: subscriptionId,
      value: record,
    }),
  );
}

/** True when the log can tell the product from others: its Id is read as it is written. */
export function isRecordable({ productId }: Pick<ListedEvent, 'productId'>): boolean {
  return productId !== '' && productId.trim() === productId && productId.isWellFormed();
}
