/** What the catalogue owed to subscriptions, told from the sandbox's ledger and what was asked for when. */
import { hourUs } from '../src/domain/coverage.ts';
import type { SubscriptionEvent } from '../src/domain/subscription.ts';
import type { Sandbox } from '../src/sandbox/sandbox.ts';

/** What a subscription asked for, until it asked for something else; µs since 1970. */
export interface Asked {
  subscription: string;
  events: readonly SubscriptionEvent[];
  filter: string;
  fromUs: number;
  toUs: number;
}

/** An event that was owed to a subscription. */
export interface OwedEvent {
  subscription: string;
  event: SubscriptionEvent;
  productId: string;
  dateUs: number;
  /** Whether a push of it was accepted at least once. */
  received: boolean;
  /** Whether the lists show it at the end. */
  shown: boolean;
  /** The lists show it within [shownFromMs, hiddenFromMs), unless that is empty. */
  shownFromMs: number;
  hiddenFromMs: number;
  /** What hid it; null while nothing has. */
  hiddenBy: 'modified' | 'deleted' | null;
}

/** Names an event: a product is created and deleted once, and modified at a date. */
export function eventKey(one: Omit<OwedEvent, keyof Fate>): string {
  const { subscription, event, productId, dateUs } = one;
  return `${subscription} ${event} ${productId.toLowerCase()} ${event === 'modified' ? dateUs : ''}`;
}

type Fate = Pick<OwedEvent, 'received' | 'shown' | 'shownFromMs' | 'hiddenFromMs' | 'hiddenBy'>;

/** Names the hour of its date, for one kind of events of a subscription. */
export function hourKey(one: Pick<OwedEvent, 'subscription' | 'event' | 'dateUs'>): string {
  const { subscription, event, dateUs } = one;
  return `${subscription} ${event} ${Math.floor(dateUs / hourUs) * hourUs}`;
}

/** Every event that was owed; `idsOf` gives the ids that a subscription has had at the catalogue. */
export function owedEvents(
  sandbox: Pick<Sandbox, 'events'>,
  asked: readonly Asked[],
  idsOf: (subscription: string) => ReadonlySet<string>,
): OwedEvent[] {
  const changes = changesOf(sandbox);
  return asked.flatMap(({ subscription, events, filter, fromUs, toUs }) => {
    const ids = idsOf(subscription);
    return [...sandbox.events({ events, filter })].flatMap((one) => {
      const { event, productId, dateUs, subscriptions, shown, shownFrom, sequence } = one;
      if (dateUs === null || dateUs < fromUs || dateUs >= toUs) return [];
      const hides = (change: Change) =>
        change.sequence > sequence && (change.event === 'deleted' || event === 'modified');
      const hiding = event === 'deleted' ? undefined : changes.get(productId)?.find(hides);
      const fate = {
        received: subscriptions.some((own) => ids.has(own.subscriptionId) && own.received),
        shown,
        shownFromMs: Date.parse(shownFrom),
        hiddenFromMs: hiding?.atMs ?? Number.POSITIVE_INFINITY,
        hiddenBy: hiding?.event ?? null,
      };
      return [{ subscription, event, productId, dateUs, ...fate }];
    });
  });
}

interface Change {
  sequence: number;
  event: 'modified' | 'deleted';
  atMs: number;
}

/** What happened to products after their publication, oldest first. */
function changesOf(sandbox: Pick<Sandbox, 'events'>): Map<string, Change[]> {
  const changes = new Map<string, Change[]>();
  for (const { event, productId, sequence, at } of sandbox.events()) {
    if (event === 'created') continue;
    const change = { sequence, event, atMs: Date.parse(at) };
    const known = changes.get(productId);
    if (known === undefined) changes.set(productId, [change]);
    else known.push(change);
  }
  return changes;
}
