/**
 * What it takes to know that nothing is missing.
 *
 * Words: an *event* is what happened to a product at the catalogue, at a date of the catalogue's: it was
 * created (PublicationDate), modified (ModificationDate) or deleted (DeletionDate). A *definition* is what
 * a subscription asked for from some moment on. An event that no push told of and that was looked up is
 * *recovered*; its entry in the log has the source `reconcile`. All times are microseconds since 1970, UTC.
 */
import type { SubscriptionEvent } from './subscription.ts';

/** An hour, the unit of coverage, in microseconds. */
export const hourUs = 3_600_000_000;

/**
 * Records appear late in the catalogue's lists, and pushes come late: an hour is compared when it has been over
 * for so long, and a push that takes longer counts as late.
 */
export const settlingUs = hourUs / 2;

/**
 * Time between an event and its notification: 46 s and 48 s where it is known. What was published so shortly before a
 * subscription is registered is pushed after it, and expected.
 */
export const notificationDelayUs = 48_000_000;

/** Compared once more when it is this old, for records that appeared later still. */
export const recheckAfterUs = 24 * hourUs;

/** The receiver by itself looks no further back. */
export const comparisonHorizonUs = 30 * 24 * hourUs;

/** One event of one product, owed to one subscription. */
export interface CatalogueEvent {
  /** The subscription's name. */
  subscription: string;
  event: SubscriptionEvent;
  productId: string;
  /** The catalogue's date of the event. */
  eventUs: number;
}

/** An event that is to be written into the log. */
export interface MissingEvent extends CatalogueEvent {
  /** JSON in the form of a notification, without AckId and NotificationDate, with the record as `value`. */
  body: Uint8Array;
}

/** An event that was recovered. */
export interface RecoveredEvent extends CatalogueEvent {
  position: number;
  /** When a push of it came after all; null when none did. */
  pushedAtUs: number | null;
}

/** What a subscription asked for, from a moment until the next definition of the same name. */
export interface Definition {
  subscription: string;
  /** The date of the first event it applies to: of a new subscription, `notificationDelayUs` before its registration. */
  fromUs: number;
  /** None from the moment on at which it was given up. */
  events: readonly SubscriptionEvent[];
  filter: string;
}

/** A time in which this program served, up to its last sign of life. */
export interface Uptime {
  fromUs: number;
  toUs: number;
}

/** What is known of the events of one subscription and one hour of their dates, once they were compared. */
export interface HourCoverage {
  subscription: string;
  event: SubscriptionEvent;
  /** The hour's beginning. */
  hourUs: number;
  /** Events that the catalogue shows: the sum of the four that follow. */
  expected: number;
  /** Told by a push in time. */
  pushed: number;
  /** Told by a push that came late, or after the event had been recovered. */
  late: number;
  /** Recovered; no push came. */
  recovered: number;
  /** Not in the log: the comparison was told not to write. */
  missing: number;
  comparedAtUs: number;
}

/** A wish to have a window compared, as a command states it: the same one again goes on where it was. */
export interface ReconcileRun {
  id: number;
  /** A canonical text of what was asked. */
  request: string;
  startedAtUs: number;
}

/** Pushes that arrived within an hour of receipt. */
export interface HourArrivals {
  /** Null for a path without a name. */
  subscription: string | null;
  hourUs: number;
  pushes: number;
  lastAtUs: number;
}

/** The questions, which never wait for intake. All reject with `unavailable`. */
export interface CompletenessReader {
  /** At most 1,000 product ids; in any order. */
  recoveredEvents(options: {
    subscription: string;
    productIds: readonly string[];
  }): Promise<RecoveredEvent[]>;
  /** Oldest first. */
  definitions(): Promise<Definition[]>;
  /** Those that end after `sinceUs`, oldest first; without overlaps. */
  uptimes(sinceUs: number): Promise<Uptime[]>;
  /** By subscription, event and hour; hours within [sinceUs, untilUs). */
  coverage(options: {
    sinceUs: number;
    untilUs: number;
    subscription?: string | undefined;
  }): Promise<HourCoverage[]>;
  /** Pushes received within [sinceUs, untilUs), at most 25 hours. */
  arrivals(options: { sinceUs: number; untilUs: number }): Promise<HourArrivals[]>;
  /**
   * The first whole hour of events of which nothing was pruned; 0 where nothing ever was. Of what came before,
   * nothing may be said to be missing, and nothing is fetched.
   */
  unprunedSinceUs(): Promise<number>;
}

/** The changes: each is one transaction, on disk when it resolves. All reject with `unavailable`. */
export interface Completeness extends CompletenessReader {
  /**
   * Writes events into the log, at most 100 of one subscription, unless they are known: recovered already, or
   * told by a push after position `knownUpTo` (what came before was looked up by the caller). A push that
   * comes later is taken for the same event and counted on its row. The counts of an hour that was compared move
   * along. Resolves with the positions given, null for what was known, and for what lies before `unprunedSinceUs`.
   */
  recover(options: {
    events: readonly MissingEvent[];
    knownUpTo: number;
    atUs: number;
  }): Promise<(number | null)[]>;
  /** Takes the place of what was known of the same hours. At most 1,000. */
  saveCoverage(hours: readonly HourCoverage[]): Promise<void>;
  /** Says that this program has served since `fromUs` and still does. */
  recordUptime(uptime: Uptime): Promise<void>;
  /** The run of this request that is not finished, or a new one. */
  beginRun(options: { request: string; atUs: number }): Promise<ReconcileRun>;
  endRun(options: { id: number; atUs: number }): Promise<void>;
}

/** What counts of a push. Its event is in lower case. */
interface ToldByPush {
  event: string;
  /** The ModificationDate of its record; null without one. */
  stateUs: number | null;
  /** Its NotificationDate. */
  notificationUs: number | null;
}

/**
 * The millisecond of a date in microseconds. The catalogue once went from three to six digits, so that one
 * modification may have been told with either: dates of modifications are compared by their milliseconds.
 */
export function millisecondOf(us: number): number {
  return Math.floor(us / 1000);
}

/** The date of an event as it is written into the log: of a modification, the whole millisecond. */
export function writtenEventUs({ event, eventUs }: Pick<CatalogueEvent, 'event' | 'eventUs'>) {
  return event === 'modified' ? millisecondOf(eventUs) * 1000 : eventUs;
}

/**
 * A product is created and deleted once. A modification is told by any push that shows the product in that state
 * or a later one; by one of a modification without a record, when it was sent at that date or later.
 */
export function coversEvent(
  push: ToldByPush,
  { event, eventUs }: Pick<CatalogueEvent, 'event' | 'eventUs'>,
): boolean {
  if (event !== 'modified') return push.event === event;
  const { stateUs, notificationUs } = push;
  const isNewer = (us: number | null) => us !== null && millisecondOf(us) >= millisecondOf(eventUs);
  if (push.event === 'modified') return isNewer(stateUs ?? notificationUs);
  return push.event === 'created' && isNewer(stateUs);
}
