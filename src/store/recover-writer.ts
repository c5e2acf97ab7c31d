/** Writes events into the log that the catalogue shows and no push told of. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import { hourUs, type MissingEvent, writtenEventUs } from '../domain/coverage.ts';
import { recoveredIdentityOf } from '../domain/identity.ts';
import { type Notification, readNotifications } from '../domain/notification.ts';
import { wholeSinceUs } from '../domain/pruning.ts';
import { createBodyWriter } from './bodies/body-writer.ts';
import type { CompletenessChange } from './completeness-messages.ts';
import { dedupeKey } from './dedupe-key.ts';
import { prepareFindRecovered } from './find-recovered.ts';
import { pruneHorizon } from './pruning/prune-queries.ts';
import { preparePushedSince } from './pushed-since.ts';

type RecoverOptions = Extract<CompletenessChange, { kind: 'recover' }>['options'];

const eventsMax = 100;
/** Rows of the log that are looked through at most: it is done while intake waits for its turn. */
const tailMax = 5_000;

/** The function throws `invalid`, and `conflict` when the log has grown too much since `knownUpTo`. */
export function prepareRecover(database: Database) {
  const bodies = createBodyWriter(database);
  const lastPosition = database
    .prepare('SELECT coalesce(max(position), 0) FROM notification')
    .pluck();
  const findRecovered = prepareFindRecovered(database);
  const pushedSince = preparePushedSince(database);
  const insert = prepareInsert(database);
  const countRecovered = prepareCountRecovered(database);
  return ({ events, knownUpTo, atUs }: RecoverOptions): (number | null)[] => {
    const [first] = events;
    if (first === undefined) return [];
    requireOneSubscription(events, first);
    requireShortTail(Number(lastPosition.get()) - knownUpTo);
    bodies.begin();
    const isPushed = pushedSince(knownUpTo, events);
    // What was looked up may have been pruned since.
    const sinceUs = wholeSinceUs(pruneHorizon(database));
    const positions = events.map((event) => {
      if (event.eventUs < sinceUs) return null;
      if (findRecovered(event) !== undefined || isPushed(event)) return null;
      const position = insert(event, atUs, bodies.nextId());
      if (position === null) return null;
      bodies.keep(event);
      countRecovered(event);
      return position;
    });
    bodies.end();
    return positions;
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

function prepareInsert(database: Database) {
  const insert = database.prepare(
    `INSERT INTO notification (dedupe_key, product_id, product_name, event, subscription,
       subscription_id, received_at_us, source, times_seen, last_seen_at_us, body_id, body_index,
       event_us)
     VALUES (@key, @productId, @productName, @event, @subscription,
       @subscriptionId, @atUs, 'reconcile', 1, @atUs, @bodyId, 0, @eventUs)
     ON CONFLICT (dedupe_key) DO NOTHING`,
  );
  return (missing: MissingEvent, atUs: number, bodyId: number): number | null => {
    const { productName, subscriptionId } = notificationIn(missing);
    const { productId, event, subscription } = missing;
    const eventUs = writtenEventUs(missing);
    const key = dedupeKey(recoveredIdentityOf({ ...missing, eventUs }));
    const names = { productId, productName, event, subscription, subscriptionId };
    const { changes, lastInsertRowid } = insert.run({ key, ...names, atUs, bodyId, eventUs });
    return changes === 1 ? Number(lastInsertRowid) : null;
  };
}

/**
 * Updates the counts of an hour that was compared before: a missing event is recovered now. Where nothing is
 * missing, the catalogue shows one more than it did then. An event from before the subscription began is not
 * expected, and changes nothing.
 */
function prepareCountRecovered(database: Database) {
  const count = database.prepare(
    `UPDATE coverage SET recovered = recovered + 1, missing = max(0, missing - 1),
       expected = expected + (missing = 0)
     WHERE subscription = @subscription AND event = @event AND hour_us = @hourUs AND @eventUs >=
       (SELECT coalesce(min(from_us), 0) FROM subscription_definition
        WHERE subscription = @subscription)`,
  );
  return ({ subscription, event, eventUs }: MissingEvent): void => {
    count.run({ subscription, event, eventUs, hourUs: Math.floor(eventUs / hourUs) * hourUs });
  };
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
