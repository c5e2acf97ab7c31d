/** Writes what a notification told of a product, within a transaction of the caller's. */
import type { Database } from 'better-sqlite3';
import type { ProductRecord } from '../../filter/product-record.ts';
import { dateUs } from './product-record.ts';
import type { LoggedNotification } from './product-writer.ts';

/** Prepares the statement. `product` is the id of the product's row. */
export function createEventWriter(
  database: Database,
): (product: number, notification: LoggedNotification) => void {
  const insert = database.prepare(
    `INSERT INTO product_event (position, product, subscription, event, event_us, state_us,
       notification_us, received_us, source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return (product, notification) => {
    const { position, subscription, event, record, source } = notification;
    const { notificationDateUs, receivedAtUs } = notification;
    const eventUs = eventUsOf(event, record);
    const stateUs = dateUs(record?.ModificationDate);
    insert.run(
      position,
      product,
      subscription,
      event,
      eventUs,
      stateUs,
      notificationDateUs,
      receivedAtUs,
      source,
    );
  };
}

/** The catalogue's date of an event, by which reconciliation looks for it (facts, catalogue 5). */
function eventUsOf(event: string, record: ProductRecord | null): number | null {
  switch (event) {
    case 'created':
      return dateUs(record?.PublicationDate);
    case 'modified':
      return dateUs(record?.ModificationDate);
    case 'deleted':
      return dateUs(record?.DeletionDate);
    default:
      return null;
  }
}
