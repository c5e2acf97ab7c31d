/** The products published or changed lately and not deleted since: those that can still change. */
import type { CatalogueProduct } from '../products/catalogue-product.ts';

/** A published product; what is not readonly follows its changes. */
export interface LiveProduct {
  latest: CatalogueProduct;
  /** Its publication or latest change in the catalogue, ms since 1970. */
  changedMs: number;
  /** How long the catalogue takes from a change of it to the notification, in ms. */
  readonly delayMs: number;
  /** From when on the lists show it, ms since 1970. */
  readonly shownFromMs: number;
}

export interface LiveProducts {
  /** Adds a product as the newest. */
  add(product: LiveProduct): void;
  remove(product: LiveProduct): void;
  /** Up to `count` of them, oldest first. */
  oldest(count: number): LiveProduct[];
}

const liveMax = 1_000;

/** Creates an empty collection that remembers the last thousand. */
export function createLiveProducts(): LiveProducts {
  const products = new Set<LiveProduct>();
  return {
    add: (product) => {
      products.add(product);
      const [oldest] = products;
      if (oldest && products.size > liveMax) products.delete(oldest);
    },
    remove: (product) => {
      products.delete(product);
    },
    oldest: (count) => [...products].slice(0, count),
  };
}
