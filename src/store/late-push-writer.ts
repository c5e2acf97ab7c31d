/** Recognises a push of an event that was recovered already, and counts it on the row of that event. */
import type { Database } from 'better-sqlite3';
import { hourUs, millisecondOf, tellsOf } from '../domain/coverage.ts';
import { contentOf } from '../domain/delivery-content.ts';
import type { Notification } from '../domain/notification.ts';
import type { Delivery } from '../domain/ports.ts';
import type { BodyState } from './body-state.ts';

/** A recovered event that no push has told of. */
interface Unclaimed {
  position: number;
  eventUs: number;
}

/**
 * The function returns false where the push is of no such event, or its key is known. Its body is not kept: the
 * product index has read the recovered one. Each push pays for one look-up in a small index, without an order:
 * to prepare for sorting would cost ten times as much.
 */
export function prepareClaim(database: Database, state: BodyState) {
  const unclaimed = database.prepare<unknown[], Unclaimed>(
    `SELECT position, event_us AS eventUs FROM notification INDEXED BY notification_recovered
     WHERE source = 'reconcile' AND product_id COLLATE NOCASE = ? AND event = ? AND subscription = ?
       AND event_us IS NOT NULL AND pushed_at_us IS NULL`,
  );
  const keyIsKnown = database.prepare('SELECT 1 FROM notification WHERE dedupe_key = ?');
  const claim = database.prepare(
    `UPDATE notification SET dedupe_key = @key, ack_id = @ackId,
       subscription_id = coalesce(@subscriptionId, subscription_id),
       notification_date_us = @notificationDateUs, pushed_at_us = @receivedAtUs,
       times_seen = times_seen + 1, last_seen_at_us = max(last_seen_at_us, @receivedAtUs)
     WHERE position = @position`,
  );
  const countLate = database.prepare(
    `UPDATE coverage SET recovered = recovered - 1, late = late + 1
     WHERE subscription = @subscription AND event = @event AND hour_us = @hourUs AND recovered > 0
       AND @eventUs >= (SELECT coalesce(min(from_us), 0) FROM subscription_definition
         WHERE subscription = @subscription)`,
  );
  return (delivery: Delivery, item: Notification, key: Uint8Array): boolean => {
    const { subscription, receivedAtUs } = delivery;
    const candidates = unclaimed.all(item.productId, item.event, subscription);
    if (candidates.length === 0 || keyIsKnown.get(key) !== undefined) return false;
    const recordUs = () => state.modificationUs(contentOf(delivery), item.index);
    const same = sameEvent(candidates, item, recordUs);
    if (same === undefined) return false;
    const { position, eventUs } = same;
    const { ackId, subscriptionId, notificationDateUs } = item;
    claim.run({ key, ackId, subscriptionId, notificationDateUs, receivedAtUs, position });
    const hour = Math.floor(eventUs / hourUs) * hourUs;
    countLate.run({ subscription, event: item.event, eventUs, hourUs: hour });
    return true;
  };
}

/** A product is created and deleted once; which of its modifications is meant, its record or its own date says. */
function sameEvent(
  candidates: readonly Unclaimed[],
  { event, notificationDateUs: notificationUs }: Notification,
  recordUs: () => number | null,
): Unclaimed | undefined {
  if (event !== 'modified') return candidates[0];
  const stateUs = recordUs();
  if (stateUs !== null) {
    return candidates.find(({ eventUs }) => millisecondOf(eventUs) === millisecondOf(stateUs));
  }
  const allowed = candidates.filter(({ eventUs }) =>
    tellsOf({ event, stateUs, notificationUs }, { event, eventUs }),
  );
  return allowed.toSorted((a, b) => b.eventUs - a.eventUs)[0];
}
