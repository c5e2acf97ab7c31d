/**
 * Data that proves that no event is missing.
 *
 * Terms: an *event* is a change of a product in the catalogue, with the catalogue's date: created (PublicationDate),
 * modified (ModificationDate) or deleted (DeletionDate). A *definition* is the request of a subscription from some
 * time on. An event that was never pushed and was found by a comparison is *recovered*; its entry in the log has the
 * source `reconcile`. All times are microseconds since 1970, UTC.
 */

import { hourUs, minuteUs, shortDateUs } from '../../core/terms/dates.ts';
import type {
  CatalogueEvent,
  MissingEvent,
  SubscriptionEvent,
} from '../../core/terms/subscription.ts';

/**
 * Time from the end of an hour until it is compared, because records appear in the catalogue query results with a
 * delay and pushes arrive with a delay. A push that takes longer counts as `late`.
 */
export const settlingUs = hourUs / 2;

/** Age at which an hour is compared a second time, for records that appeared even later. */
export const recheckAfterUs = 24 * hourUs;

/** Maximum age of hours that are compared automatically. */
export const comparisonHorizonUs = 30 * 24 * hourUs;

/** A recovered event. */
export interface RecoveredEvent extends CatalogueEvent {
  position: number;
  /** Time of a later push of the event; null when there is none. */
  pushedAtUs: number | null;
}

/** Events and filter of a subscription, valid until the next definition of the same name. */
export interface Definition {
  subscription: string;
  /** Date of the first event it applies to; for a new subscription, `notificationDelayUs` before its registration. */
  fromUs: number;
  /** Empty once the subscription was removed. */
  events: readonly SubscriptionEvent[];
  filter: string;
}

/** A time span in which the receiver ran, up to its last heartbeat. */
export interface Uptime {
  fromUs: number;
  toUs: number;
}

/** Result of the comparison for one subscription, one kind of event and one hour of event dates. */
export interface HourCoverage {
  subscription: string;
  event: SubscriptionEvent;
  /** Start of the hour. */
  hourUs: number;
  /** Events shown by the catalogue: the sum of the four counts below. */
  expected: number;
  /** Pushed in time. */
  pushed: number;
  /** Pushed late, or after the event was recovered. */
  late: number;
  /** Recovered and not pushed. */
  recovered: number;
  /** Not in the log: the comparison was a dry run. */
  missing: number;
  comparedAtUs: number;
}

/** Notifications received or recovered within one hour. */
export interface HourStored {
  /** Subscription name in the URL path; null for a path without a name. */
  subscription: string | null;
  hourUs: number;
  notifications: number;
}

/** Read access, which never waits for the intake. All calls reject with `unavailable`. */
export interface CompletenessReader {
  /** Returns recovered events in any order. */
  recoveredEvents(options: {
    subscription: string;
    productIds: readonly string[];
  }): Promise<RecoveredEvent[]>;
  /** Returns the definitions, oldest first. */
  definitions(): Promise<Definition[]>;
  /** Returns the uptimes that end after `sinceUs`, oldest first, without overlaps. */
  uptimes(sinceUs: number): Promise<Uptime[]>;
  /** Returns the coverage of the hours in [sinceUs, untilUs), sorted by subscription, event and hour. */
  coverage(options: {
    sinceUs: number;
    untilUs: number;
    subscription?: string | undefined;
  }): Promise<HourCoverage[]>;
  /** Returns the notifications received or recovered in [sinceUs, untilUs), by hour. */
  stored(options: { sinceUs: number; untilUs: number }): Promise<HourStored[]>;
  /** Counts the entries of queues received since a time, for which neither they nor a recovered event has a record. */
  withoutRecord(sinceUs: number): Promise<number>;
  /**
   * Returns the start of the first hour of events without pruned notifications; 0 when nothing was pruned. Events
   * before it are never reported as missing or fetched.
   */
  unprunedSinceUs(): Promise<number>;
}

/** Write access. Each call is one transaction, on disk when it resolves. All reject with `unavailable`. */
export interface Completeness extends CompletenessReader {
  /**
   * Writes events of one subscription (at most 100) to the log, except known ones: already recovered, or pushed after
   * position `knownUpTo` (the caller has checked earlier ones). A later push of such an event is counted on its row.
   * Updates the counts of hours already compared. Resolves with the new positions; null for known events and for
   * those before `unprunedSinceUs`.
   */
  recover(options: {
    events: readonly MissingEvent[];
    knownUpTo: number;
    atUs: number;
  }): Promise<(number | null)[]>;
  /** Replaces the coverage of the same hours. */
  saveCoverage(hours: readonly HourCoverage[]): Promise<void>;
  /** Records that the receiver has run since `fromUs` and still does. */
  recordUptime(uptime: Uptime): Promise<void>;
}

/** Maximum age of the last heartbeat of a running receiver, which records one each minute. */
export const heartbeatMaxAgeUs = 2 * minuteUs;

/** Returns a sentence with a consequence, such as `nothing is checked`, if no receiver runs; otherwise null. */
export async function absenceNote(
  { uptimes }: Pick<CompletenessReader, 'uptimes'>,
  nowUs: number,
  consequence: string,
): Promise<string | null> {
  const last = (await uptimes(0)).at(-1);
  if (last !== undefined && nowUs - last.toUs <= heartbeatMaxAgeUs) return null;
  const absence =
    last === undefined
      ? 'No receiver has ever run on this data directory'
      : `No receiver has run since ${shortDateUs(last.toUs)} (UTC)`;
  return `${absence}, so ${consequence}. Start the receiver with \`earshot start\`.`;
}
