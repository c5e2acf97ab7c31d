/** Takes out of the index what is no longer in the log. */
import type { Database } from 'better-sqlite3';
import { pruneHorizon } from '../pruning/prune-queries.ts';
import { readLog } from './index-progress.ts';
import { createProductSearchWriter } from './product-search.ts';

/**
 * Each call is one transaction of at most `eventsMax` events; it returns how many were removed, 0 when none is left. A product that is left without
 * any goes with them. One that has others is written anew from those, as in an index that is built from this log.
 * `rewrite` indexes the notification at a position again, if the log still has it.
 */
export function createIndexPruner(
  log: Database,
  index: Database,
  rewrite: (position: number) => void,
): (eventsMax: number) => number {
  const oldest = index.prepare<[number, number], { position: number; product: number }>(
    `SELECT position, product FROM product_event WHERE position <= ?
     ORDER BY position LIMIT ?`,
  );
  const positionsOf = index
    .prepare<[number], number>(
      'SELECT position FROM product_event WHERE product = ? ORDER BY position',
    )
    .pluck();
  const removeProduct = prepareRemoveProduct(index);
  const prune = index.transaction((upTo: number, eventsMax: number): number => {
    const events = oldest.all(upTo, eventsMax);
    for (const product of new Set(events.map((event) => event.product))) {
      const positions = positionsOf.all(product);
      removeProduct(product);
      for (const position of positions) if (position > upTo) rewrite(position);
    }
    return events.length;
  });
  return (eventsMax) => {
    const upTo = readLog(() => pruneHorizon(log))?.position ?? 0;
    // Without a look at the index first, each call would take its lock.
    return oldest.get(upTo, 1) === undefined ? 0 : prune.immediate(upTo, eventsMax);
  };
}

function prepareRemoveProduct(index: Database) {
  const remove = index.prepare<[number], { name: string | null }>(
    'DELETE FROM product WHERE id = ? RETURNING name',
  );
  const removeEvents = index.prepare('DELETE FROM product_event WHERE product = ?');
  const search = createProductSearchWriter(index);
  return (id: number): void => {
    search.remove(id, remove.get(id)?.name ?? null);
    removeEvents.run(id);
  };
}
