/** The library's products: asked by filters as they are written or built, and always with what has just been stored. */
import type { Entity } from '../../domain/filter-tree.ts';
import type { NotificationLog } from '../../domain/ports.ts';
import type { FoundProduct, ProductKey, ProductQuery, ProductRow } from '../../domain/products.ts';
import type { Expression } from '../../filter/builder.ts';
import { requireFilter } from '../../filter/check.ts';
import { catchUpIndex } from './index-maintenance.ts';
import { openProducts } from './products.ts';

/** A question about products. Without a field of it, all of them, newest first. */
export interface ProductsQuestion extends Omit<ProductQuery, 'entity' | 'filter'> {
  /** `Products`, unless `DeletedProducts` are asked for. */
  entity?: Entity | undefined;
  /** A `$filter` expression, as a text or built with `and`, `collection`, … */
  filter?: string | Expression | undefined;
}

/**
 * The products that notifications told of. Each call brings the index up to date first. Rejects with
 * `invalid` for a filter with a fault, `unavailable` when the index cannot be read or written.
 */
export interface StoredProducts {
  /** Streams what matches, each with its record. */
  find(question?: ProductsQuestion): AsyncIterable<FoundProduct>;
  count(question?: Pick<ProductsQuestion, 'entity' | 'filter'>): Promise<number>;
  /** The key of a row that `find` gave, to go on after it with `after`. */
  keyOf(row: ProductRow, question?: Pick<ProductsQuestion, 'entity' | 'order'>): ProductKey;
}

/** Opens the products of a data directory; `close` ends what is under way. */
export function openStoredProducts(
  dataDir: string,
  log: Pick<NotificationLog, 'lastPosition'>,
): { products: StoredProducts; close(): Promise<void> } {
  const index = openProducts(dataDir);
  const closing = new AbortController();
  let indexedPosition = -1;
  const catchUp = async () => {
    // A log that was restored from a copy may end before what is indexed.
    if ((await log.lastPosition()) === indexedPosition) return;
    ({ indexedPosition } = await catchUpIndex({ dataDir, signal: closing.signal }));
  };
  const products: StoredProducts = {
    find: async function* (question = {}) {
      const query = withTree(question);
      await catchUp();
      yield* index.find(query);
    },
    count: async (question = {}) => {
      const query = withTree(question);
      await catchUp();
      return index.count(query);
    },
    keyOf: (row, { entity = 'Products', order } = {}) => index.keyOf(row, { entity, order }),
  };
  const close = async () => {
    closing.abort();
    await index.close();
  };
  return { products, close };
}

function withTree<Question extends Pick<ProductsQuestion, 'entity' | 'filter'>>(
  question: Question,
) {
  const { entity = 'Products', filter = '' } = question;
  return { ...question, entity, filter: requireFilter(String(filter), entity) };
}
