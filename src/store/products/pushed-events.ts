/** Answers what pushes of a subscription told of products. */
import type { Database } from 'better-sqlite3';
import type { PushedEvent } from '../../domain/products.ts';

/** What is asked; ids in any case. */
export interface EventsQuestion {
  subscription: string;
  productIds: readonly string[];
}

/** By the ids as they were asked for, each with its events in the order of the log. */
export function pushedEvents(
  index: Database,
  { subscription, productIds }: EventsQuestion,
): PushedEvent[] {
  const events = index.prepare<[string, string], Omit<PushedEvent, 'productId'>>(
    `SELECT e.position, e.event, e.event_us AS eventUs, e.state_us AS stateUs,
       e.notification_us AS notificationUs, e.received_us AS receivedUs
     FROM product p CROSS JOIN product_event e ON e.product = p.id
     WHERE p.product_id = ? AND e.subscription = ? AND e.source = 'push' ORDER BY e.position`,
  );
  return [...new Set(productIds)].flatMap((productId) =>
    events.all(productId, subscription).map((event) => ({ productId, ...event })),
  );
}
