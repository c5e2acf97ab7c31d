/** Recovered events: those that the catalogue shows and no push told of, and pushes of them that come late. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../../domain/app-error.ts';
import {
  type CatalogueEvent,
  type Completeness,
  coversEvent,
  hourUs,
  type MissingEvent,
  millisecondOf,
  writtenEventUs,
} from '../../domain/completeness.ts';
import { type Notification, readNotifications } from '../../domain/notification.ts';
import { contentOf, type Delivery, type PublicationDelay } from '../../domain/ports.ts';
import { unprunedSinceUs } from '../../domain/pruning.ts';
import { type SubscriptionEvent, subscriptionEvents } from '../../domain/subscription.ts';
import { recordIn } from '../../filter/product-record.ts';
import { bodyReader, createBodyWriter } from '../bodies/bodies.ts';
import { prepared } from '../engine/database.ts';
import { bodyDocument, dateUs } from '../products/product-record.ts';
import { pruneHorizon } from '../pruning/prune-queries.ts';
import { dedupeKey, recoveredIdentityOf } from './dedupe-key.ts';
import { lastPosition } from './queries.ts';

const eventsMax = 100;
/** Maximum rows of the log that are searched: intake waits meanwhile. */
const tailMax = 5_000;

/** True of the row of an event, and of its product and subscription. */
const recoveredRows = `notification INDEXED BY notification_recovered
  WHERE source = 'reconcile' AND product_id COLLATE NOCASE = ? AND event = ? AND subscription = ?`;

/** Of the hour that an event is in: an event from before the subscription began is not expected, and changes nothing. */
const hourOfEvent = `subscription = @subscription AND event = @event AND hour_us = @hourUs
  AND @eventUs >= (SELECT coalesce(min(from_us), 0) FROM subscription_definition
    WHERE subscription = @subscription)`;

/** Throws `invalid`, and `conflict` when the log has grown too much since `knownUpTo`. */
export function recover(
  database: Database,
  { events, knownUpTo, atUs }: Parameters<Completeness['recover']>[0],
): (number | null)[] {
  const [first] = events;
  if (first === undefined) return [];
  requireOneSubscription(events, first);
  requireShortTail(lastPosition(database) - knownUpTo);
  const bodies = createBodyWriter(database);
  const isPushed = pushedSince(database, knownUpTo, events);
  // What was looked up may have been pruned since.
  const sinceUs = unprunedSinceUs(pruneHorizon(database));
  const positions = events.map((event) => {
    if (event.eventUs < sinceUs) return null;
    if (findRecovered(database, event) !== undefined || isPushed(event)) return null;
    const position = insert(database, event, { atUs, bodyId: bodies.nextId() });
    if (position === null) return null;
    bodies.keep(event);
    countRecovered(database, event);
    return position;
  });
  bodies.end();
  return positions;
}

/**
 * Returns the key of the row of an event, which is that of a push where one came late; undefined where there
 * is none. A product is created and deleted once, so that the date does not matter there; that of a modification
 * counts in whole milliseconds (`millisecondOf`).
 */
export function findRecovered(
  database: Database,
  { productId, event, subscription, eventUs }: CatalogueEvent,
): Uint8Array | undefined {
  return prepared<unknown[], Uint8Array>(
    database,
    `SELECT dedupe_key FROM ${recoveredRows} AND (event <> 'modified' OR event_us / 1000 = ?)`,
  )
    .pluck()
    .get(productId, event, subscription, millisecondOf(eventUs));
}

/**
 * Counts a push of an event that was recovered on the row of that event. Returns false where the push is of no such
 * event, or its key is known. Its body is not kept: the product index has read the recovered one. Each push pays for
 * one look-up in a small index, without an order: to prepare for sorting would cost ten times as much.
 */
export function claimRecovered(
  database: Database,
  { delivery, item, key }: { delivery: Delivery; item: Notification; key: Uint8Array },
): boolean {
  const { subscription, receivedAtUs } = delivery;
  const candidates = prepared<unknown[], Unclaimed>(
    database,
    `SELECT position, event_us AS eventUs FROM ${recoveredRows}
       AND event_us IS NOT NULL AND pushed_at_us IS NULL`,
  ).all(item.productId, item.event, subscription);
  if (candidates.length === 0) return false;
  const known = prepared(database, 'SELECT 1 FROM notification WHERE dedupe_key = ?').get(key);
  if (known !== undefined) return false;
  const same = sameEvent(candidates, item, contentOf(delivery));
  if (same === undefined) return false;
  const { position, eventUs } = same;
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
  return true;
}

/** A recovered event that no push has told of. */
interface Unclaimed {
  position: number;
  eventUs: number;
}

/** A product is created and deleted once; which of its modifications is meant, its record or its own date says. */
function sameEvent(
  candidates: readonly Unclaimed[],
  { event, notificationDateUs: notificationUs, index }: Notification,
  body: Uint8Array,
): Unclaimed | undefined {
  if (event !== 'modified') return candidates[0];
  const stateUs = modificationUs(body, index);
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
 * Reads what was pushed after a position about the products of events of one subscription, which the product index may
 * not know yet. The function says whether a push told of an event.
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
     WHERE position > ? AND source = 'push' AND subscription = ?
       AND product_id COLLATE NOCASE IN (SELECT value FROM json_each(?))`,
  ).all(position, events[0]?.subscription, ids);
  const found = Map.groupBy(rows, ({ productId }) => productId.toLowerCase());
  const bodies = bodyReader(database);
  const stateUs = ({ bodyId, bodyIndex }: Pushed): number | null => {
    const body = bodies.content(bodyId);
    return body === undefined ? null : modificationUs(body, bodyIndex);
  };
  return (event) => {
    const pushes = found.get(event.productId.toLowerCase()) ?? [];
    // Bodies are read for modifications alone: nothing else depends on the state of the product.
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
    `The log has grown by more than ${tailMax} notifications since the events were looked up. Wait until the index has caught up, and look again.`,
  );
}

function insert(
  database: Database,
  missing: MissingEvent,
  place: { atUs: number; bodyId: number },
): number | null {
  const { productName, subscriptionId } = notificationIn(missing);
  const { productId, event, subscription } = missing;
  const eventUs = writtenEventUs(missing);
  const key = dedupeKey(recoveredIdentityOf({ ...missing, eventUs }));
  const names = { productId, productName, event, subscription, subscriptionId };
  const { changes, lastInsertRowid } = prepared(
    database,
    `INSERT INTO notification (dedupe_key, product_id, product_name, event, subscription,
       subscription_id, received_at_us, source, times_seen, last_seen_at_us, body_id, body_index,
       event_us)
     VALUES (@key, @productId, @productName, @event, @subscription,
       @subscriptionId, @atUs, 'reconcile', 1, @atUs, @bodyId, 0, @eventUs)
     ON CONFLICT (dedupe_key) DO NOTHING`,
  ).run({ key, ...names, ...place, eventUs });
  return changes === 1 ? Number(lastInsertRowid) : null;
}

/**
 * Updates the counts of an hour that was compared before: a missing event is recovered now. Where nothing is
 * missing, the catalogue shows one more than it did then.
 */
function countRecovered(database: Database, { subscription, event, eventUs }: MissingEvent): void {
  prepared(
    database,
    `UPDATE coverage SET recovered = recovered + 1, missing = max(0, missing - 1),
       expected = expected + (missing = 0) WHERE ${hourOfEvent}`,
  ).run({ subscription, event, eventUs, hourUs: hourOf(eventUs) });
}

function hourOf(timeUs: number): number {
  return Math.floor(timeUs / hourUs) * hourUs;
}

/** What the body says; it was made by our own code, so that any fault in it is a bug. */
function notificationIn({ body, event, productId }: MissingEvent): Notification {
  const { notifications, faults } = readNotifications(body);
  const [notification, second] = notifications;
  const isRight =
    notification?.event === event &&
    notification.productId.toLowerCase() === productId.toLowerCase();
  if (isRight && second === undefined && faults.length === 0) return notification;
  throw new Error(`The body made for "${event}" of ${productId} does not say so.`);
}

const dateOf = {
  created: 'PublicationDate',
  modified: 'ModificationDate',
  deleted: 'DeletionDate',
} as const satisfies Record<SubscriptionEvent, string>;

function dateIn(body: Uint8Array, index: number, event: SubscriptionEvent): number | null {
  return dateUs(recordIn(bodyDocument(body), index)?.[dateOf[event]]);
}

/** The ModificationDate of a record in a body that could be read; null without a record, or without a date in it. */
export function modificationUs(body: Uint8Array, index: number): number | null {
  return dateIn(body, index, 'modified');
}

/** The event that another log had recovered and delivers; null for a delivery of any other kind. */
export function recoveredEvent(
  delivery: Delivery,
  { ackId, event: name, productId, index }: Notification,
): CatalogueEvent | null {
  const { source, subscription } = delivery;
  if (source !== 'reconcile' || subscription === null || ackId !== null) return null;
  const event = subscriptionEvents.find((known) => known === name);
  const eventUs = event === undefined ? null : dateIn(contentOf(delivery), index, event);
  if (event === undefined || eventUs === null) return null;
  return { subscription, event, productId, eventUs: writtenEventUs({ event, eventUs }) };
}

/** Reading a body of this size takes well below a millisecond. */
const bodyBytesMax = 64 * 2 ** 10;

/**
 * The delay from the PublicationDate in the body to its receipt. Null when it does not tell of a created product, has no
 * date, was not pushed, or is very large. Dates of other clocks may lie ahead: that is no delay. The body must
 * be one that could be read.
 */
export function publicationDelay(delivery: Delivery): PublicationDelay | null {
  const body = contentOf(delivery);
  const { subscription, receivedAtUs, source } = delivery;
  if (source !== 'push' || body.byteLength > bodyBytesMax) return null;
  const document = bodyDocument(body);
  const publishedUs = isCreated(document) ? dateUs(recordIn(document, 0)?.PublicationDate) : null;
  if (publishedUs === null) return null;
  return { subscription, seconds: Math.max(0, receivedAtUs - publishedUs) / 1_000_000 };
}

function isCreated(document: unknown): boolean {
  const item: unknown = Array.isArray(document) ? document[0] : document;
  if (typeof item !== 'object' || item === null || !('SubscriptionEvent' in item)) return false;
  return String(item.SubscriptionEvent).toLowerCase() === 'created';
}
