/** What the catalogue shows of events, in the order of their dates: the port between walk and comparison. */
import type { SubscriptionEvent } from '../../domain/subscription.ts';

/** Events of one kind with a date within [fromUs, toUs), of products that match. */
export interface ListingQuery {
  event: SubscriptionEvent;
  /** A `$filter` expression of a subscription; blank for every product. */
  filter: string;
  fromUs: number;
  toUs: number;
}

export interface ListedEvent {
  productId: string;
  productName: string | null;
  /** PublicationDate, ModificationDate or DeletionDate, as the event says. */
  eventUs: number;
  /** The record's PublicationDate; null where it has none. */
  publicationUs: number | null;
  /** As the catalogue gives it, expanded. */
  record: Readonly<Record<string, unknown>>;
}

export interface ListingPage {
  /** Each product once in a listing, unless it changed meanwhile. */
  events: readonly ListedEvent[];
  /** Every event of the window with a date before this one has been given; `toUs` with the last page. */
  completeUpToUs: number;
  /** How many events the window has, as the catalogue counted at its beginning; null when it did not say. */
  total: number | null;
}

export interface ProductListing {
  /**
   * Asks politely, one request at a time. Rejects with `unavailable` and `too_many` when the catalogue
   * does not answer as it should within the budget, `invalid` when it refuses the question, `unauthorized`
   * as `AccessTokens` does, and with the signal's reason. What was given before stays good.
   */
  list(query: ListingQuery, signal: AbortSignal): AsyncGenerator<ListingPage>;
  /**
   * Requests sent so far, repeated ones too, and the time spent waiting for their answers; records that
   * were passed over, as they lack an id or a date; and events that were, as their records do not tell
   * whether the filter wants them.
   */
  spent(): {
    requests: number;
    answersMs: number;
    waitedMs: number;
    oddRecords: number;
    undecided: number;
  };
}
