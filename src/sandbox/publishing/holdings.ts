/** What the catalogue holds: the newest state of each published product, and of each deleted one. */
import { type ProductView, productView } from '../../filter/product-view.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import type { CatalogueProduct, DeletedProduct } from '../products/catalogue-product.ts';

/** A record and how filters see it. */
export interface HeldProduct {
  readonly record: CatalogueProduct | DeletedProduct;
  readonly view: ProductView;
}

type Entity = 'Products' | 'DeletedProducts';

/** How much there is. */
export interface HoldingsTotals {
  readonly products: number;
  readonly deletedProducts: number;
  /** Publications, changes and deletions so far, owed to a subscription or not. */
  readonly events: number;
}

export interface Holdings {
  /** Takes in what an event says of a product. */
  note(event: NotificationEvent, record: HeldProduct['record']): HeldProduct;
  /** Products in the order of their publication, whatever was modified since; or of their deletion. */
  list(entity: Entity): Iterable<HeldProduct>;
  /** Finds by id in any case. */
  find(entity: Entity, id: string): HeldProduct | undefined;
  totals(): HoldingsTotals;
}

/**
 * How many of each are kept; the oldest go first. `$skip` and `$top` reach 11,000. A record
 * and what filters keep of it take some 15 kB of memory.
 */
export const heldMax = 12_000;

/** Creates empty holdings. */
export function createHoldings(): Holdings {
  // By id in small letters. A Map keeps the order of the first entry, so that somebody who pages
  // through while products are published and modified sees each of them once.
  const products = new Map<string, HeldProduct>();
  const deleted = new Map<string, HeldProduct>();
  const of = { Products: products, DeletedProducts: deleted };
  let events = 0;
  return {
    note: (event, record) => {
      events += 1;
      const held = { record, view: productView(record) };
      const key = record.Id.toLowerCase();
      if (event === 'deleted') {
        products.delete(key);
        deleted.delete(key);
        put(deleted, key, held);
      } else {
        deleted.delete(key);
        put(products, key, held);
      }
      return held;
    },
    list: (entity) => of[entity].values(),
    find: (entity, id) => of[entity].get(id.toLowerCase()),
    totals: () => ({ products: products.size, deletedProducts: deleted.size, events }),
  };
}

function put(holdings: Map<string, HeldProduct>, key: string, held: HeldProduct): void {
  holdings.set(key, held);
  const [oldest] = holdings.keys();
  if (oldest !== undefined && holdings.size > heldMax) holdings.delete(oldest);
}
