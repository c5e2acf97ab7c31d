/** What is remembered of the catalogue account, as SQL for one reading connection. */
import type { Database } from 'better-sqlite3';
import type { DeliveryMark, Gap, HistoryEntry, Registration } from '../domain/account.ts';
import type { SubscriptionEvent } from '../domain/subscription.ts';

type StoredGap = Omit<Gap, 'events'> & { events: string };

type StoredRegistration = Omit<Registration, 'events' | 'unfinished'> & {
  events: string;
  unfinished: number;
};

export function registrations(database: Database): Registration[] {
  return database
    .prepare<[], StoredRegistration>(
      `SELECT name, events, filter, status, subscription_id AS subscriptionId, unfinished,
         credentials_digest AS credentialsDigest,
         activity_at_us AS activityAtUs, notified_at_us AS notifiedAtUs,
         running_seen_at_us AS runningSeenAtUs, paused_seen_at_us AS pausedSeenAtUs,
         held_by AS heldBy, reported
       FROM registration ORDER BY name`,
    )
    .all()
    .map(({ events, unfinished, ...row }) => ({
      ...row,
      events: eventsIn<SubscriptionEvent>(events),
      unfinished: unfinished === 1,
    }));
}

/** In the order of writing, which a clock that is set back does not change; newest first. */
export function history(
  database: Database,
  { subscription, limit }: { subscription?: string; limit: number },
): HistoryEntry[] {
  const asked = subscription === undefined ? [] : [subscription];
  return database
    .prepare<unknown[], HistoryEntry>(
      `SELECT at_us AS atUs, subscription, subscription_id AS subscriptionId, action, actor, reason
       FROM history ${asked.length > 0 ? 'WHERE subscription = ?' : ''}
       ORDER BY id DESC LIMIT ?`,
    )
    .all(...asked, limit);
}

export function gaps(database: Database): Gap[] {
  return database
    .prepare<[], StoredGap>(
      `SELECT id, subscription, events, filter, from_us AS fromUs, to_us AS toUs, reason
       FROM gap ORDER BY from_us, id`,
    )
    .all()
    .map(({ events, ...row }) => ({ ...row, events: eventsIn(events) }));
}

export function deliveryMarks(database: Database): DeliveryMark[] {
  return database
    .prepare<[], DeliveryMark>(
      `SELECT nullif(subscription, '') AS subscription, username, last_at_us AS lastAtUs
       FROM delivery_mark ORDER BY delivery_mark.subscription, username`,
    )
    .all();
}

function eventsIn<Event extends string>(text: string): Event[] {
  // Written by our own writer, from the same type.
  return JSON.parse(text) as Event[];
}
