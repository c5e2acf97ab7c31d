/** The truth about the catalogue's events: each with what became of it, for whoever wants to compare. */
import { readFilter } from '../account/subscription-filter.ts';
import type { DeliveryOutcome, DeliveryRecord } from '../delivery/delivery-record.ts';
import { type NotificationEvent, notificationEvents } from '../delivery/notification.ts';
import type { EventLedger, LedgerEntry } from './event-ledger.ts';
import type { Holdings } from './holdings.ts';

/** What became of an event for one subscription. */
export interface EventFate {
  readonly subscriptionId: string;
  /** `paused`: it matched, but nothing was sent. */
  readonly outcome: DeliveryOutcome | 'paused';
  /** Whether the endpoint accepted it at least once, whatever the sender knows of that. */
  readonly received: boolean;
  /** Why it was lost: an outage, or a fault that was played; null otherwise. */
  readonly reason: string | null;
}

/** An event of the catalogue, whoever was told of it. */
export interface CatalogueEvent {
  /** 1 for the first event, then counting. */
  readonly sequence: number;
  readonly event: NotificationEvent;
  readonly productId: string;
  readonly productName: string;
  /** PublicationDate, ModificationDate or DeletionDate: µs since 1970; null where the record has none. */
  readonly dateUs: number | null;
  /** When notifications of it were due, ISO 8601 UTC. */
  readonly at: string;
  /** From when on the lists show it, ISO 8601 UTC; `at`, unless it is late. */
  readonly shownFrom: string;
  /** Whether the lists show it now: not yet late ones, changed again, deleted or too old do not. */
  readonly shown: boolean;
  /** Empty when no subscription was there for it. */
  readonly subscriptions: readonly EventFate[];
}

/** Which events are wanted; all of them unless told. */
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
 * Gives events, oldest first; the ledger has forgotten those beyond its bound. Throws
 * SubscriptionRefusal (`filter`) for a filter that no subscription to these events could have.
 */
export function catalogueEvents(
  sources: EventSources,
  { events = notificationEvents, filter = '', after = 0, limit }: EventSelection = {},
): Iterable<CatalogueEvent> {
  const matches = readFilter(filter, events, null);
  return selectedEvents(
    sources,
    after,
    limit ?? Number.POSITIVE_INFINITY,
    ({ event, held }) => events.includes(event) && (filter === '' || matches(held.view)),
  );
}

function* selectedEvents(
  sources: EventSources,
  after: number,
  limit: number,
  isWanted: (entry: LedgerEntry) => boolean,
) {
  let given = 0;
  for (const entry of sources.ledger.after(after)) {
    if (given >= limit) return;
    if (!isWanted(entry)) continue;
    given += 1;
    yield toEvent(entry, sources);
  }
}

function toEvent(entry: LedgerEntry, { record, holdings }: EventSources): CatalogueEvent {
  const { sequence, event, productId, productName, dateUs, atMs, shownFromMs } = entry;
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
      ...entry.deliveries.flatMap((delivery) => deliveryFate(record, delivery)),
      ...entry.pausedIds.map(
        (subscriptionId) =>
          ({ subscriptionId, outcome: 'paused', received: false, reason: null }) as const,
      ),
    ],
  };
}

function deliveryFate(record: DeliveryRecord, sequence: number): EventFate[] {
  return record.page({ after: sequence - 1, limit: 1 }).map((entry) => {
    const { subscriptionId, outcome, timesReceivedOk, reason } = entry;
    return { subscriptionId, outcome, received: timesReceivedOk > 0, reason };
  });
}

/** A list by PublicationDate shows every product that is there; the others only the newest state. */
function isShown({ event, productId, held }: LedgerEntry, holdings: Pick<Holdings, 'find'>) {
  const newest = holdings.find(event === 'deleted' ? 'DeletedProducts' : 'Products', productId);
  return event === 'created' ? newest !== undefined : newest === held;
}
