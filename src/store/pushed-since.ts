/** Looks through the end of the log for pushes of events, for what the product index does not know yet. */
import type { Database } from 'better-sqlite3';
import { type CatalogueEvent, tellsOf } from '../domain/coverage.ts';
import { bodyReader } from './bodies/body-reader.ts';
import { createBodyState } from './body-state.ts';

interface Pushed {
  productId: string;
  event: string;
  notificationUs: number | null;
  bodyId: number;
  bodyIndex: number;
}

/**
 * The function takes events of one subscription, reads what was pushed after a position about their products,
 * and returns another that tells whether a push told of an event.
 */
export function preparePushedSince(database: Database) {
  const pushes = database.prepare<unknown[], Pushed>(
    `SELECT product_id AS productId, event, notification_date_us AS notificationUs,
       body_id AS bodyId, body_index AS bodyIndex
     FROM notification NOT INDEXED
     WHERE position > ? AND source = 'push' AND subscription = ?
       AND product_id COLLATE NOCASE IN (SELECT value FROM json_each(?))`,
  );
  const bodies = bodyReader(database);
  const state = createBodyState();
  return (position: number, events: readonly CatalogueEvent[]) => {
    const ids = JSON.stringify(events.map(({ productId }) => productId));
    const rows = pushes.all(position, events[0]?.subscription, ids);
    const found = Map.groupBy(rows, ({ productId }) => productId.toLowerCase());
    // Of a body with many notifications: it is read once.
    let last: { bodyId: number; body: Uint8Array | undefined } | undefined;
    const stateUs = ({ bodyId, bodyIndex }: Pushed): number | null => {
      if (last?.bodyId !== bodyId) last = { bodyId, body: bodies.content(bodyId) };
      return last.body === undefined ? null : state.modificationUs(last.body, bodyIndex);
    };
    return (event: CatalogueEvent): boolean => {
      const pushes = found.get(event.productId.toLowerCase()) ?? [];
      // Bodies are read for modifications alone: nothing else depends on the state of the product.
      const isDated = event.event === 'modified';
      return pushes.some((push) =>
        tellsOf({ ...push, stateUs: isDated ? stateUs(push) : null }, event),
      );
    };
  };
}
