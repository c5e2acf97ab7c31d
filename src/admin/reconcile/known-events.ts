/** What the log knows of events, and how it came to know. */
import type { Completeness, RecoveredEvent } from '../../domain/completeness.ts';
import type { Products, PushedEvent } from '../../domain/products.ts';
import type { SubscriptionEvent } from '../../domain/subscription.ts';
import { millisecondOf, tellsOf } from '../../domain/tells-of.ts';
import type { ListedEvent } from './product-listing.ts';
import type { EventOutcome } from './reconcile-task.ts';

/** What the log has of one product, for one subscription. */
export interface KnownOfProduct {
  pushes: PushedEvent[];
  recovered: RecoveredEvent[];
}

/** By product id in lower case; nothing for a product that is not known. At most 1,000 ids. */
export async function lookUpProducts(
  question: { subscription: string; productIds: readonly string[] },
  world: {
    completeness: Pick<Completeness, 'recoveredEvents'>;
    products: Pick<Products, 'pushedEvents'>;
  },
): Promise<Map<string, KnownOfProduct>> {
  const [pushes, recovered] = await Promise.all([
    world.products.pushedEvents(question),
    world.completeness.recoveredEvents(question),
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
export function outcomeOf(
  event: SubscriptionEvent,
  { eventUs }: Pick<ListedEvent, 'eventUs'>,
  known: KnownOfProduct | undefined,
  settlingUs: number,
): EventOutcome {
  const pushes = (known?.pushes ?? []).filter((push) => tellsOf(push, { event, eventUs }));
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
