/** Compares a page of events with the log, and records the missing ones. */

import type { ListedEvent } from '../../admin/listing.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import { millisecondOf } from '../../core/terms/dates.ts';
import type { NotificationLog } from '../../core/terms/ports.ts';
import { coversEvent, type SubscriptionEvent } from '../../core/terms/subscription.ts';
import type { Products } from '../../filter/products.ts';
import { type Completeness, settlingUs } from './completeness.ts';
import type { EventOutcome, ReconcileMode, ReconcileTask } from './tasks.ts';

/** Maximum number of events in one call of the store. */
const recoverMax = 100;

/** The store checks this many unindexed positions itself, and a few more. */
const lagMax = 3_000;

export interface CompareContext {
  completeness: Pick<
    Completeness,
    'recoveredEvents' | 'recover' | 'saveCoverage' | 'unprunedSinceUs'
  >;
  products: Pick<Products, 'pushedEvents' | 'indexedPosition'>;
  log: Pick<NotificationLog, 'lastPosition'>;
  /** The catalogue's clock, for its dates and for hours. */
  nowUs(): number;
  /** The local clock, for recorded entries, as for pushes. */
  ownNowUs(): number;
  /** Resolves after `ms`, or immediately when the signal is aborted. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

export interface CompareOptions {
  mode: ReconcileMode;
  signal: AbortSignal;
}

export interface ComparedEvent {
  listed: ListedEvent;
  /** Current state: a missing event that was recorded is `recovered`. */
  outcome: EventOutcome;
  /** True if the event was not in the log before. */
  wasMissing: boolean;
}

/**
 * Compares at most 1,000 expected events, in any order; skips those before the pruning horizon. In mode
 * `write`, missing events are on disk when it resolves. Rejects with `unavailable` when the store or its index
 * is, and with the signal's reason.
 */
export async function comparePage(
  task: ReconcileTask,
  listed: readonly ListedEvent[],
  context: CompareContext,
  options: CompareOptions,
): Promise<ComparedEvent[]> {
  const { mode, signal } = options;
  const compared: ComparedEvent[] = [];
  let open = listed;
  // Another round is rare: it has only events that arrived meanwhile, so it must see the newest events.
  for (let round = 1; open.length > 0; round += 1) {
    const lag = mode === 'write' && round === 1 ? lagMax : 0;
    const knownUpTo = await waitForIndex(context, lag, signal);
    const productIds = [...new Set(open.map(({ productId }) => productId))];
    const known = await lookUpProducts({ subscription: task.subscription, productIds }, context);
    // The index was replaced meanwhile, and the new one may lag.
    if ((await context.products.indexedPosition()) < knownUpTo) continue;
    // Read last: pruning removes a notification from the index after moving this horizon.
    const unprunedSinceUs = await unprunedSince(context);
    const missing: ListedEvent[] = [];
    for (const one of open) {
      if (one.eventUs < unprunedSinceUs) continue;
      const outcome = outcomeOf(task.event, one, known);
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

/** Uses the catalogue's clock: if it is ahead of ours, pushes are dated before their events. */
async function unprunedSince({ completeness, nowUs, ownNowUs }: CompareContext) {
  return (await completeness.unprunedSinceUs()) + Math.max(0, nowUs() - ownNowUs());
}

/** `undecided` events arrived meanwhile, or were not recorded because the log grew too fast. */
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
      const atUs = context.ownNowUs();
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

/** Log entries of products, for one subscription, by product id in lower case. */
type Known = Awaited<ReturnType<typeof lookUpProducts>>;

/** Takes at most 1,000 ids. */
async function lookUpProducts(
  question: { subscription: string; productIds: readonly string[] },
  context: CompareContext,
) {
  const [pushes, recovered] = await Promise.all([
    context.products.pushedEvents(question),
    context.completeness.recoveredEvents(question),
  ]);
  return { pushes: Map.groupBy(pushes, keyOf), recovered: Map.groupBy(recovered, keyOf) };
}

const keyOf = ({ productId }: Pick<ListedEvent, 'productId'>) => productId.toLowerCase();

/**
 * Returns false for a product that was never modified: its modification date equals its publication date, and
 * no notification was sent. Without a publication date a notification is expected, to miss none.
 */
export function isExpected(
  event: SubscriptionEvent,
  { eventUs, publicationDateUs }: ListedEvent,
): boolean {
  if (event !== 'modified' || publicationDateUs === null) return true;
  return millisecondOf(eventUs) > millisecondOf(publicationDateUs);
}

/** Compares one event with the log; a push counts as late if it came more than `settlingUs` after the event. */
function outcomeOf(event: SubscriptionEvent, listed: ListedEvent, known: Known): EventOutcome {
  const { eventUs } = listed;
  const key = keyOf(listed);
  const covering = known.pushes.get(key)?.filter((one) => coversEvent(one, { event, eventUs }));
  const recovered = (known.recovered.get(key) ?? []).filter(
    (one) =>
      one.event === event &&
      (event !== 'modified' || millisecondOf(one.eventUs) === millisecondOf(eventUs)),
  );
  const [push] = covering?.toSorted((a, b) => a.position - b.position) ?? [];
  if (push === undefined) {
    if (recovered.length === 0) return 'missing';
    return recovered.some(({ pushedAtUs }) => pushedAtUs !== null) ? 'late' : 'recovered';
  }
  const cameAfter = recovered.some(({ position }) => position < push.position);
  return cameAfter || push.receivedUs > eventUs + settlingUs ? 'late' : 'pushed';
}

const pauseMs = 200;

/** Time without progress of the index after which a comparison fails. */
const stalledMs = 600_000;

/**
 * Waits until the index lags by at most `lag` positions behind the log's current end, and resolves with its position.
 * Rejects with `unavailable` when the index makes no progress for ten minutes.
 */
async function waitForIndex(
  { products, log, pause }: CompareContext,
  lag: number,
  signal: AbortSignal,
): Promise<number> {
  const lastPosition = await log.lastPosition();
  let before: number | null = null;
  for (let waitedMs = 0; ; waitedMs += pauseMs) {
    signal.throwIfAborted();
    const position = await products.indexedPosition();
    if (position >= lastPosition - lag) return position;
    if (position !== before) waitedMs = 0;
    before = position;
    if (waitedMs >= stalledMs) {
      const message = `The product index has made no progress for ten minutes (lag in notifications: ${lastPosition - position}), so pushed events cannot be looked up.`;
      const advice = 'Check the log of `earshot start` for the cause, then retry.';
      throw new AppError('unavailable', message, { advice });
    }
    await pause(pauseMs, signal);
  }
}

/**
 * JSON without AckId and NotificationDate, because no push was sent (specification, "Push notification"). The record is
 * unchanged.
 */
function recoveredBody(
  { event, subscriptionId }: Pick<ReconcileTask, 'event' | 'subscriptionId'>,
  { productId, productName, record }: Pick<ListedEvent, 'productId' | 'productName' | 'record'>,
): Uint8Array {
  const fields = JSON.stringify({
    SubscriptionEvent: event,
    ProductId: productId,
    ProductName: productName,
    SubscriptionId: subscriptionId,
  });
  const parts = [`${fields.slice(0, -1)},"value":`, record ?? 'null', '}'];
  return Buffer.concat(parts.map((part) => Buffer.from(part)));
}

/** Returns true if the log can store the record, and the product's Id is read back unchanged. */
export function isRecordable({
  productId,
  record,
}: Pick<ListedEvent, 'productId' | 'record'>): boolean {
  const isReadBack = productId !== '' && productId.trim() === productId && productId.isWellFormed();
  return record !== null && isReadBack;
}
