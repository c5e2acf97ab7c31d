/** Listing of products in the catalogue, by the dates of their events. */
import type { SubscriptionEvent } from '../core/terms/subscription.ts';

/** Query for events of one kind with a date within [fromUs, toUs), of products that match. */
export interface ListingQuery {
  event: SubscriptionEvent;
  /** A `$filter` expression of a subscription; blank for every product. */
  filter: string;
  fromUs: number;
  toUs: number;
}

/** The event of a product whose record is requested. */
export interface EventOfProduct {
  event: SubscriptionEvent;
  productId: string;
}

export interface ListedEvent {
  productId: string;
  productName: string | null;
  /** PublicationDate, ModificationDate or DeletionDate, depending on the event. */
  eventUs: number;
  /** PublicationDate of the record; null if missing. */
  publicationDateUs: number | null;
  /** JSON as returned by the catalogue, expanded; null for a record that would be refused as a push. */
  record: Uint8Array | null;
}

export interface ListingPage {
  /** A listing returns each product once, unless it changed meanwhile. */
  events: readonly ListedEvent[];
  /** Events of the window with an earlier date were returned; `toUs` with the last page. */
  completeUpToUs: number;
  /** Number of events in the window, counted by the catalogue at the start; null if missing. */
  total: number | null;
}

export interface ProductListing {
  /**
   * Sends one rate-limited request at a time. Rejects with `unavailable` and `too_many` when the catalogue
   * returns no usable response within the budget, `invalid` when it rejects the query, `unauthorized` as
   * `AccessTokens` does, and with the signal's reason. Pages returned before remain valid.
   */
  list(query: ListingQuery, signal: AbortSignal): AsyncGenerator<ListingPage>;
  /**
   * Returns a product in its current state; for a deletion, the deleted product. Null if it does not exist. Sends one
   * request, and rejects as `list` does.
   */
  product(query: EventOfProduct, signal: AbortSignal): Promise<ListedEvent | null>;
  /**
   * Returns totals: requests including retries, time spent waiting, records skipped because they lack an id or a
   * date, and events skipped because their records lack a field that the filter needs.
   */
  spent(): {
    requests: number;
    answersMs: number;
    waitedMs: number;
    unreadableRecords: number;
    undecided: number;
  };
}
