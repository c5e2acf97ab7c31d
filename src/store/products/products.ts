/** The products of a data directory, asked from the main thread; and as the library offers them. */
import type { Entity } from '../../domain/filter-tree.ts';
import type { NotificationLog } from '../../domain/ports.ts';
import type {
  FoundProduct,
  ProductKey,
  ProductQuery,
  ProductRow,
  Products,
} from '../../domain/products.ts';
import type { Expression } from '../../filter/builder.ts';
import { requireFilter } from '../../filter/check.ts';
import { pick, type Remote, remote } from '../engine/rpc.ts';
import { StoreThread, threadFile } from '../engine/thread.ts';
import { catchUpIndex } from './index-maintenance.ts';
import type { ProductOperations } from './product-thread.ts';
import { keyOf } from './search/order.ts';

/** Rows of one message: records are some 5 kB each, and the main thread has answers to give meanwhile. */
const pageRowsMax = { withRecords: 64, withoutRecords: 1_000 };

/** Opens the index for questions; nothing is opened before the first. */
export function openProducts(dataDir: string): Products & { close(): Promise<void> } {
  const thread = new StoreThread(threadFile('products/product-thread'), {
    dataDir,
    // A count over a very large index may take long, and nobody else waits for it.
    callTimeoutSeconds: Number.POSITIVE_INFINITY,
  });
  const ask = (signal?: AbortSignal) => remote<ProductOperations>(thread, signal);
  return {
    find: (query, signal) => find(ask(signal), query),
    count: ({ entity, filter, received }, signal) =>
      ask(signal).count({ entity, filter, received }),
    keyOf,
    ...pick(ask(), ['explain', 'indexState', 'indexedPosition', 'pushedEvents']),
    delays: (question, signal) => ask(signal).delays(question),
    close: () => thread.close(),
  };
}

async function* find(
  products: Pick<Remote<ProductOperations>, 'page'>,
  query: ProductQuery,
): AsyncGenerator<FoundProduct> {
  const { withRecords, withoutRecords } = pageRowsMax;
  const pageMax = query.records === false ? withoutRecords : withRecords;
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  let skip = query.skip ?? 0;
  let after: ProductKey | undefined = query.after;
  while (left > 0) {
    const rowsMax = Math.min(left, pageMax);
    const page = await products.page({ ...query, skip, after }, rowsMax);
    yield* page.found;
    if (page.next === null) return;
    left -= page.found.length;
    skip -= page.skipped;
    after = page.next;
  }
}

/** A question about products. Without a field of it, all of them, newest first. */
export interface ProductsQuestion extends Omit<ProductQuery, 'entity' | 'filter'> {
  /** `Products`, unless `DeletedProducts` are asked for. */
  entity?: Entity | undefined;
  /** A `$filter` expression, as a text or built with `and`, `collection`, … */
  filter?: string | Expression | undefined;
}

/**
 * The products that notifications reported. Each call brings the index up to date first. Rejects with
 * `invalid` for a filter with a fault, `unavailable` when the index cannot be read or written.
 */
export interface StoredProducts {
  /** Streams what matches, each with its record. */
  find(question?: ProductsQuestion): AsyncIterable<FoundProduct>;
  count(question?: Pick<ProductsQuestion, 'entity' | 'filter'>): Promise<number>;
  /** The key of a row that `find` gave, to continue after it with `after`. */
  keyOf(row: ProductRow, question?: Pick<ProductsQuestion, 'entity' | 'order'>): ProductKey;
}

/** Opens the products of a data directory; `close` ends what is in progress. */
export function openStoredProducts(
  dataDir: string,
  log: Pick<NotificationLog, 'lastPosition'>,
): { products: StoredProducts; close(): Promise<void> } {
  const index = openProducts(dataDir);
  const closing = new AbortController();
  let indexedPosition = -1;
  const upToDate = async (question: Pick<ProductsQuestion, 'entity' | 'filter'>) => {
    const { entity = 'Products', filter = '' } = question;
    const query = { ...question, entity, filter: requireFilter(String(filter), entity) };
    // A log that was restored from a copy may end before what is indexed.
    if ((await log.lastPosition()) !== indexedPosition) {
      ({ indexedPosition } = await catchUpIndex({ dataDir, signal: closing.signal }));
    }
    return query;
  };
  return {
    products: {
      find: async function* (question = {}) {
        yield* index.find(await upToDate(question));
      },
      count: async (question = {}) => index.count(await upToDate(question)),
      keyOf: (row, { entity = 'Products', order } = {}) => index.keyOf(row, { entity, order }),
    },
    close: async () => {
      closing.abort();
      await index.close();
    },
  };
}
