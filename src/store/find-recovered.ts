/** Finds the row of an event that was recovered. */
import type { Database } from 'better-sqlite3';
import { type CatalogueEvent, millisecondOf } from '../domain/coverage.ts';

/**
 * The function returns the key of the row, which is that of a push where one came late; undefined where there
 * is none. A product is created and deleted once, so that the date does not matter there; that of a modification
 * counts in whole milliseconds (`millisecondOf`).
 */
export function prepareFindRecovered(database: Database) {
  const find = database
    .prepare<unknown[], Uint8Array>(
      `SELECT dedupe_key FROM notification INDEXED BY notification_recovered
       WHERE source = 'reconcile' AND product_id COLLATE NOCASE = ? AND event = ?
         AND subscription = ? AND (event <> 'modified' OR event_us / 1000 = ?)`,
    )
    .pluck();
  return ({ productId, event, subscription, eventUs }: CatalogueEvent): Uint8Array | undefined =>
    find.get(productId, event, subscription, millisecondOf(eventUs));
}
