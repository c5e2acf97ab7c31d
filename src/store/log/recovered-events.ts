/** Recovered events: events in the catalogue without a push, and their later pushes. */

import type { Database } from 'better-sqlite3';
import { AppError } from '../../core/terms/app-error.ts';
import { hourOf, millisecondOf, readDateUs } from '../../core/terms/dates.ts';
import { type Notification, readNotifications } from '../../core/terms/notification.ts';
import type { Delivery, PublicationDelay } from '../../core/terms/ports.ts';
import {
  type CatalogueEvent,
  coversEvent,
  type MissingEvent,
  writtenEventUs,
} from '../../core/terms/subscription.ts';
import { recordIn } from '../../filter/values.ts';
import { type BodyWriter, bodyReader, createBodyWriter } from '../bodies/bodies.ts';
import { bodyDocument } from '../bodies/body-document.ts';
import { prepared } from '../engine/database.ts';
import { pruneHorizon } from '../pruning/prune-queries.ts';
import { unprunedSinceUs } from '../pruning/terms.ts';
import { dedupeKey, recoveredIdentityOf } from './dedupe-key.ts';
import { insertNotification, lastPosition } from './queries.ts';

export interface RecoverOptions {
  /** Events of one subscription, at most 100. */
  events: readonly MissingEvent[];
  /** Earlier pushes of these events were checked by the caller. */
  knownUpTo: number;
  atUs: number;
}

const eventsMax = 100;
/** Maximum rows of the log that are searched: intake waits during the search. */
const tailMax = 5_000;

/** The rows of recovered events with a product, event and subscription. */
const recoveredRows = `notification INDEXED BY notification_recovered
  WHERE source = 'reconcile' AND product_id COLLATE NOCASE = ? AND event = ? AND subscription = ?`;

/** Condition for the coverage row of an event's hour. No row matches an event from before the subscription. */
const hourOfEvent = `subscription = @subscription AND event = @event AND hour_us = @hourUs
  AND @eventUs >= (SELECT coalesce(min(from_us), 0) FROM subscription_definition
    WHERE subscription = @subscription)`;

/**
 * Writes recovered events and returns their positions; null for an event that needs no row. Throws `invalid`, and
 * `conflict` when the log has grown too much since `knownUpTo`.
 */
export function recover(
  database: Database,
  { events, knownUpTo, atUs }: RecoverOptions,
): (number | null)[] {
  const isMissing = missingIn(database, { events, knownUpTo });
  const bodies = createBodyWriter(database);
  const positions = events.map((event) =>
    isMissing(event) ? writeRecovered(database, bodies, event, { atUs, position: null }) : null,
  );
  bodies.end();
  return positions;
}

/**
 * Returns the function that returns true for an event that needs a row: neither recovered, nor pushed after the
 * position, nor before the pruned part of the log. Throws as `recover` does.
 */
export function missingIn(
  database: Database,
  { events, knownUpTo }: Pick<RecoverOptions, 'events' | 'knownUpTo'>,
): (event: CatalogueEvent) => boolean {
  const [first] = events;
  if (first === undefined) return () => false;
  requireOneSubscription(events, first);
  requireShortTail(lastPosition(database) - knownUpTo);
  const isPushed = pushedSince(database, knownUpTo, events);
  // The log may have been pruned since the lookup.
  const sinceUs = unprunedSinceUs(pruneHorizon(database));
  return (event) => event.eventUs >= sinceUs && !isRecovered(database, event) && !isPushed(event);
}

/** Writes a recovered event, by default (null) at the next position. Returns its position, null for a known event. */
export function writeRecovered(
  database: Database,
  bodies: BodyWriter,
  event: MissingEvent,
  { atUs, position }: { atUs: number; position: number | null },
): number | null {
  const eventUs = writtenEventUs(event);
  const key = dedupeKey(recoveredIdentityOf({ ...event, eventUs }));
  const received = { ...event, receivedAtUs: atUs, source: 'reconcile' as const };
  const { productId, event: name } = event;
  const own = { ackId: null, productId, event: name, notificationDateUs: null };
  const item = { ...requireOwnBody(event), ...own };
  const row = { position, key, bodyId: bodies.nextId(), eventUs };
  const written = insertNotification(database, received, item, row);
  if (written === null) return null;
  bodies.add(event.body);
  countRecovered(database, event);
  return written;
}

/**
 * Returns true for an event that was recovered before. The date of a creation or deletion is ignored: each happens once.
 * Dates of modifications are compared in whole milliseconds (`millisecondOf`).
 */
function isRecovered(
  database: Database,
  { productId, event, subscription, eventUs }: CatalogueEvent,
): boolean {
  const sql = `SELECT 1 FROM ${recoveredRows} AND (event <> 'modified' OR event_us / 1000 = ?)`;
  const known = prepared(database, sql);
  return known.get(productId, event, subscription, millisecondOf(eventUs)) !== undefined;
}

/**
 * Records the push of a recovered event in the row of that event. Returns false when there is no such event or the key
 * is already in the log. The body is not stored: the product index has read the recovered one. Costs each push one
 * lookup in a small index; without ORDER BY, which would cost ten times as much.
 */
export function recordPush(
  database: Database,
  { delivery, item, key }: { delivery: Delivery; item: Notification; key: Uint8Array },
): boolean {
  const { subscription } = delivery;
  const candidates = prepared<unknown[], Unpushed>(
    database,
    `SELECT position, event_us AS eventUs FROM ${recoveredRows}
       AND event_us IS NOT NULL AND pushed_at_us IS NULL`,
  ).all(item.productId, item.event, subscription);
  if (candidates.length === 0) return false;
  const known = prepared(database, 'SELECT 1 FROM notification WHERE dedupe_key = ?').get(key);
  if (known !== undefined) return false;
  const same = sameEvent(candidates, item, delivery.body);
  if (same === undefined) return false;
  writePush(database, { ...delivery, item, key }, same);
  return true;
}

/** Writes the push of a recovered event into the row of that event. */
export function writePush(
  database: Database,
  push: Pick<Delivery, 'subscription' | 'receivedAtUs'> & { item: Notification; key: Uint8Array },
  { position, eventUs }: Unpushed,
): void {
  const { subscription, receivedAtUs, item, key } = push;
  const { ackId, subscriptionId, notificationDateUs, event } = item;
  prepared(
    database,
    `UPDATE notification SET dedupe_key = @key, ack_id = @ackId,
       subscription_id = coalesce(@subscriptionId, subscription_id),
       notification_date_us = @notificationDateUs, pushed_at_us = @receivedAtUs,
       times_seen = times_seen + 1, last_seen_at_us = max(last_seen_at_us, @receivedAtUs)
     WHERE position = @position`,
  ).run({ key, ackId, subscriptionId, notificationDateUs, receivedAtUs, position });
  prepared(
    database,
    `UPDATE coverage SET recovered = recovered - 1, late = late + 1
     WHERE recovered > 0 AND ${hourOfEvent}`,
  ).run({ subscription, event, eventUs, hourUs: hourOf(eventUs) });
}

/** A recovered event without a push. */
export interface Unpushed {
  position: number;
  eventUs: number;
}

/** Finds the event of a push. For a modification, compares its record or, without one, its notification date. */
function sameEvent(
  candidates: readonly Unpushed[],
  { event, notificationDateUs: notificationUs, index }: Notification,
  body: Uint8Array,
): Unpushed | undefined {
  if (event !== 'modified') return candidates[0];
  const stateUs = modificationDateUs(body, index);
  if (stateUs !== null) {
    return candidates.find(({ eventUs }) => millisecondOf(eventUs) === millisecondOf(stateUs));
  }
  const allowed = candidates.filter(({ eventUs }) =>
    coversEvent({ event, stateUs, notificationUs }, { event, eventUs }),
  );
  return allowed.toSorted((a, b) => b.eventUs - a.eventUs)[0];
}

interface Pushed {
  productId: string;
  event: string;
  notificationUs: number | null;
  bodyId: number;
  bodyIndex: number;
}

/**
 * Reads the pushes after a position for the products of events of one subscription: the product index may not contain
 * them yet. The returned function returns true when an event was pushed.
 */
function pushedSince(
  database: Database,
  position: number,
  events: readonly CatalogueEvent[],
): (event: CatalogueEvent) => boolean {
  const ids = JSON.stringify(events.map(({ productId }) => productId));
  const rows = prepared<unknown[], Pushed>(
    database,
    `SELECT product_id AS productId, event, notification_date_us AS notificationUs,
       body_id AS bodyId, body_index AS bodyIndex
     FROM notification NOT INDEXED
     WHERE position > ? AND subscription = ?
       AND (source = 'push' OR (source = 'pull' AND product_name IS NOT NULL))
       AND product_id COLLATE NOCASE IN (SELECT value FROM json_each(?))`,
  ).all(position, events[0]?.subscription, ids);
  const found = Map.groupBy(rows, ({ productId }) => productId.toLowerCase());
  const bodies = bodyReader(database);
  const stateUs = ({ bodyId, bodyIndex }: Pushed): number | null => {
    const body = bodies.body(bodyId);
    return body === undefined ? null : modificationDateUs(body, bodyIndex);
  };
  return (event) => {
    const pushes = found.get(event.productId.toLowerCase()) ?? [];
    // Reads bodies only for modifications: other events do not depend on the state of the product.
    const isDated = event.event === 'modified';
    return pushes.some((push) =>
      coversEvent({ ...push, stateUs: isDated ? stateUs(push) : null }, event),
    );
  };
}

function requireOneSubscription(events: readonly MissingEvent[], first: MissingEvent): void {
  const isOne = events.every(({ subscription }) => subscription === first.subscription);
  if (events.length <= eventsMax && isOne) return;
  throw new AppError(
    'invalid',
    `At most ${eventsMax} events of one subscription can be written at once.`,
  );
}

function requireShortTail(rows: number): void {
  if (rows <= tailMax) return;
  throw new AppError(
    'conflict',
    `The log has grown by more than ${tailMax} notifications since the comparison. Wait until the product index is up to date, then compare again.`,
  );
}

/**
 * Updates the counts of an hour that was compared before: one missing event is now recovered. When none was missing,
 * the catalogue now has one event more, and the expected count grows.
 */
function countRecovered(database: Database, { subscription, event, eventUs }: MissingEvent): void {
  prepared(
    database,
    `UPDATE coverage SET recovered = recovered + 1, missing = max(0, missing - 1),
       expected = expected + (missing = 0) WHERE ${hourOfEvent}`,
  ).run({ subscription, event, eventUs, hourUs: hourOf(eventUs) });
}

/** Reads a body that our own code created: any fault in it is a bug. */
export function requireOwnBody({ body, event, productId }: MissingEvent): Notification {
  const { notifications, faults } = readNotifications(body);
  const [notification, second] = notifications;
  const isMatch =
    notification?.event === event &&
    notification.productId.toLowerCase() === productId.toLowerCase();
  if (isMatch && second === undefined && faults.length === 0) return notification;
  throw new Error(`The body created for "${event}" of ${productId} contains a different event.`);
}

/** Returns the ModificationDate of a record in a readable body; null without a record or date. */
export function modificationDateUs(body: Uint8Array, index: number): number | null {
  return readDateUs(recordIn(bodyDocument(body), index)?.ModificationDate);
}

/** Maximum body size: reading it takes well below 1 ms. */
const bodyBytesMax = 64 * 2 ** 10;

/**
 * Returns the delay between the PublicationDate in a readable body and its receipt. Null for bodies without a created
 * product or a date, not pushed, or very large. A date in the future (another clock) counts as no delay.
 */
export function publicationDelay(delivery: Delivery): PublicationDelay | null {
  const body = delivery.body;
  const { subscription, receivedAtUs, source } = delivery;
  if (source === 'reconcile' || body.byteLength > bodyBytesMax) return null;
  const document = bodyDocument(body);
  const publishedUs = isCreated(document)
    ? readDateUs(recordIn(document, 0)?.PublicationDate)
    : null;
  if (publishedUs === null) return null;
  return { subscription, seconds: Math.max(0, receivedAtUs - publishedUs) / 1_000_000 };
}

function isCreated(document: unknown): boolean {
  const item: unknown = Array.isArray(document) ? document[0] : document;
  if (typeof item !== 'object' || item === null || !('SubscriptionEvent' in item)) return false;
  return String(item.SubscriptionEvent).toLowerCase() === 'created';
}
