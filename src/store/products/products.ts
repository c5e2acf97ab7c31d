/** The products of a data directory, to be asked from the main thread. */
import type { FoundProduct, ProductKey, ProductQuery, Products } from '../../domain/products.ts';
import { pick, type Remote, remote } from '../engine/rpc.ts';
import { StoreThread, threadFile } from '../engine/thread.ts';
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
