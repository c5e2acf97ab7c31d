/** The catalogue's events, each with what became of it for every subscription. */
import { readFilter } from '../account.ts';
import type { DeliveryOutcome, DeliveryRecord } from '../delivery/delivery-record.ts';
import { type NotificationEvent, notificationEvents } from '../delivery/notification.ts';
import type { Holdings } from './holdings.ts';
import type { StoredProduct } from './record-archive.ts';

/** What is known of an event from the start. */
interface EventFacts {
  /** 1 for the first event, then counting. */
  readonly sequence: number;
  readonly event: NotificationEvent;
  readonly productId: string;
  readonly productName: string;
  /** PublicationDate, ModificationDate or DeletionDate: µs since 1970; null where the record has none. */
  readonly dateUs: number | null;
}

/** An event as the ledger keeps it; a few hundred bytes. Times are ms since 1970. */
interface LedgerEntry extends EventFacts {
  /** When notifications of it were due, on the sandbox's clock. */
  readonly atMs: number;
  /** From when on the lists show it. */
  readonly shownFromMs: number;
  /** The product's record after it. */
  readonly stored: StoredProduct;
  /** Its notifications, by their sequences in the record of deliveries. */
  readonly deliveries: readonly number[];
  /** Ids of the subscriptions whose events and filter it matches, but that were paused. */
  readonly pausedIds: readonly string[];
}

/** Default of how many events are kept: more than a month of a busy subscription. */
export const eventsMaxDefault = 100_000;

export type EventLedger = ReturnType<typeof createEventLedger>;

/** Creates an empty ledger that keeps the last `eventsMax` events. */
export function createEventLedger(eventsMax = eventsMaxDefault) {
  const entries: LedgerEntry[] = [];
  let dropped = 0;
  return {
    add: (entry: Omit<LedgerEntry, 'sequence'>): void => {
      entries.push({ sequence: dropped + entries.length + 1, ...entry });
      // Not one by one, which would move all the others each time.
      if (entries.length < eventsMax * 1.1) return;
      dropped += entries.splice(0, entries.length - eventsMax).length;
    },
    /** Returns those after a sequence, oldest first. */
    after: function* (sequence: number): Iterable<LedgerEntry> {
      for (let place = Math.max(0, sequence - dropped); place < entries.length; place += 1) {
        const entry = entries[place];
        if (entry !== undefined) yield entry;
      }
    },
  };
}

/** What became of an event for one subscription. */
interface EventDelivery {
  readonly subscriptionId: string;
  /** `paused`: it matched, but nothing was sent. */
  readonly outcome: DeliveryOutcome | 'paused';
  /** Whether the endpoint accepted it at least once, whatever the sender knows of that. */
  readonly received: boolean;
  /** Why it was lost: an outage, or a fault that was played; null otherwise. */
  readonly reason: string | null;
}

/** An event of the catalogue, notified or not. Dates are ISO 8601 UTC. */
export interface CatalogueEvent extends EventFacts {
  /** When notifications of it were due. */
  readonly at: string;
  /** From when on the lists show it; `at`, unless it is late. */
  readonly shownFrom: string;
  /** Whether the lists show it now: not yet late ones, changed again, deleted or too old do not. */
  readonly shown: boolean;
  /** Empty when no subscription was there for it. */
  readonly subscriptions: readonly EventDelivery[];
}

/** Which events are selected; all of them by default. */
export interface EventSelection {
  readonly events?: readonly NotificationEvent[] | undefined;
  /** Only those of products that match, as they were after the event. */
  readonly filter?: string | undefined;
  /** Only those after this sequence. */
  readonly after?: number | undefined;
  readonly limit?: number | undefined;
}

interface EventSources {
  readonly ledger: EventLedger;
  readonly record: DeliveryRecord;
  readonly holdings: Pick<Holdings, 'find'>;
}

/**
 * Returns events, oldest first; the ledger has dropped those beyond its bound. Throws
 * SubscriptionRefusal (`filter`) for a filter that no subscription to these events could have.
 */
export function catalogueEvents(
  sources: EventSources,
  { events = notificationEvents, filter = '', after = 0, limit }: EventSelection = {},
): Iterable<CatalogueEvent> {
  const matches = readFilter(filter, events, null);
  const isSelected = ({ event, stored }: LedgerEntry) =>
    events.includes(event) && (filter === '' || matches(stored.view));
  return selectedEvents(sources, after, limit ?? Number.POSITIVE_INFINITY, isSelected);
}

function* selectedEvents(
  sources: EventSources,
  after: number,
  limit: number,
  isSelected: (entry: LedgerEntry) => boolean,
) {
  let count = 0;
  for (const entry of sources.ledger.after(after)) {
    if (count >= limit) return;
    if (!isSelected(entry)) continue;
    count += 1;
    yield toEvent(entry, sources);
  }
}

function toEvent(entry: LedgerEntry, { record, holdings }: EventSources): CatalogueEvent {
  const { sequence, event, productId, productName, dateUs, atMs, shownFromMs } = entry;
  const unsent = { outcome: 'paused', received: false, reason: null } as const;
  return {
    sequence,
    event,
    productId,
    productName,
    dateUs,
    at: new Date(atMs).toISOString(),
    shownFrom: new Date(shownFromMs).toISOString(),
    shown: isShown(entry, holdings),
    subscriptions: [
      ...entry.deliveries.map((delivery) => {
        const { subscriptionId, outcome, timesReceivedOk, reason } = record.find(delivery);
        return { subscriptionId, outcome, received: timesReceivedOk > 0, reason };
      }),
      ...entry.pausedIds.map((subscriptionId) => ({ subscriptionId, ...unsent })),
    ],
  };
}

/** A list by PublicationDate shows every product that is there; the others only the newest state. */
function isShown({ event, productId, stored }: LedgerEntry, holdings: Pick<Holdings, 'find'>) {
  const newest = holdings.find(event === 'deleted' ? 'DeletedProducts' : 'Products', productId);
  return event === 'created' ? newest !== undefined : newest === stored;
}
