/** The catalogue's events, each with its deliveries to every subscription. */
import { readFilter } from '../account.ts';
import type { DeliveryOutcome, DeliveryRecord } from '../delivery/delivery-record.ts';
import { type NotificationEvent, notificationEvents } from '../delivery/notification.ts';
import type { Holdings } from './holdings.ts';
import type { StoredProduct } from './record-archive.ts';

/** Initial facts of an event. */
interface EventFacts {
  /** Sequential number, starting at 1. */
  readonly sequence: number;
  readonly event: NotificationEvent;
  readonly productId: string;
  readonly productName: string;
  /** PublicationDate, ModificationDate or DeletionDate: µs since 1970; null if the record has none. */
  readonly dateUs: number | null;
}

/** A stored event, a few hundred bytes. Times are ms since 1970. */
interface LedgerEntry extends EventFacts {
  /** Due time of its notifications, on the sandbox's clock. */
  readonly atMs: number;
  /** Time from which query results contain it. */
  readonly shownFromMs: number;
  /** The product's record after the event. */
  readonly stored: StoredProduct;
  /** Sequences of its notifications in the delivery record. */
  readonly deliveries: readonly number[];
  /** Ids of paused subscriptions whose events and filter match. */
  readonly pausedIds: readonly string[];
}

/** Default maximum number of stored events: more than a month of a busy subscription. */
export const eventsMaxDefault = 100_000;

export type EventLedger = ReturnType<typeof createEventLedger>;

/** Creates an empty ledger of the last `eventsMax` events. */
export function createEventLedger(eventsMax = eventsMaxDefault) {
  const entries: LedgerEntry[] = [];
  let dropped = 0;
  return {
    add: (entry: Omit<LedgerEntry, 'sequence'>): void => {
      entries.push({ sequence: dropped + entries.length + 1, ...entry });
      // Dropped in batches: each removal moves all remaining entries.
      if (entries.length < eventsMax * 1.1) return;
      dropped += entries.splice(0, entries.length - eventsMax).length;
    },
    /** Returns the events after a sequence, oldest first. */
    after: function* (sequence: number): Iterable<LedgerEntry> {
      for (let index = Math.max(0, sequence - dropped); index < entries.length; index += 1) {
        const entry = entries[index];
        if (entry !== undefined) yield entry;
      }
    },
  };
}

/** Delivery of an event to one subscription. */
interface EventDelivery {
  readonly subscriptionId: string;
  /** `paused`: the event matched, but was neither sent nor added to the queue. */
  readonly outcome: DeliveryOutcome | 'paused';
  /** True if it was acknowledged, or the endpoint accepted it at least once, even if its answer was lost. */
  readonly received: boolean;
  /** Reason for the loss: an outage or an injected fault; null if not lost. */
  readonly reason: string | null;
}

/** An event of the catalogue, notified or not. Dates are ISO 8601 UTC. */
export interface CatalogueEvent extends EventFacts {
  /** Due time of its notifications. */
  readonly at: string;
  /** Time from which query results contain it; `at` unless delayed. */
  readonly shownFrom: string;
  /** True if query results contain it now: not if delayed, changed again, deleted or dropped. */
  readonly shown: boolean;
  /** Empty if no subscription matched. */
  readonly subscriptions: readonly EventDelivery[];
}

/** Selection of events (default: all). */
export interface EventSelection {
  readonly events?: readonly NotificationEvent[] | undefined;
  /** Matches the product's record after the event. */
  readonly filter?: string | undefined;
  /** Excludes events up to this sequence. */
  readonly after?: number | undefined;
  readonly limit?: number | undefined;
}

interface EventSources {
  readonly ledger: EventLedger;
  readonly record: DeliveryRecord;
  readonly holdings: Pick<Holdings, 'find'>;
}

/**
 * Returns the stored events, oldest first. Throws SubscriptionRefusal (`filter`) for a filter that is
 * invalid for a subscription to these events.
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

/** A query by PublicationDate finds every stored product; other queries only its newest state. */
function isShown({ event, productId, stored }: LedgerEntry, holdings: Pick<Holdings, 'find'>) {
  const newest = holdings.find(event === 'deleted' ? 'DeletedProducts' : 'Products', productId);
  return event === 'created' ? newest !== undefined : newest === stored;
}
