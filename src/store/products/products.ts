/** The products of a data directory, to be asked from the main thread. */
import type {
  FoundProduct,
  IndexState,
  ProductKey,
  ProductQuery,
  Products,
  QueryExplanation,
} from '../../domain/products.ts';
import { StoreThread, threadFile } from '../store-thread.ts';
import type { ProductRequest } from './product-messages.ts';
import { keyOf } from './product-order.ts';
import type { ProductPage } from './product-questions.ts';

/** Rows of one message: records are some 5 kB each, and the main thread has answers to give meanwhile. */
const pageRowsMax = { withRecords: 64, withoutRecords: 1_000 };

/** Opens the index for questions; nothing is opened before the first. */
export function openProducts(dataDir: string): Products & { close(): Promise<void> } {
  const thread = new StoreThread<ProductRequest>(threadFile('products/product-thread'), {
    dataDir,
    // A count over a very large index may take long, and nobody else waits for it.
    callTimeoutSeconds: Number.POSITIVE_INFINITY,
  });
  return {
    find: (query) => find(thread, query),
    count: ({ entity, filter }) =>
      thread.call<number>((id) => ({ op: 'count', id, query: { entity, filter } })),
    keyOf,
    explain: (query) => thread.call<QueryExplanation>((id) => ({ op: 'explain', id, query })),
    indexState: () => thread.call<IndexState>((id) => ({ op: 'state', id })),
    close: () => thread.close((id) => ({ op: 'close', id })),
  };
}

async function* find(
  thread: StoreThread<ProductRequest>,
  query: ProductQuery,
): AsyncGenerator<FoundProduct> {
  const { withRecords, withoutRecords } = pageRowsMax;
  const pageMax = query.records === false ? withoutRecords : withRecords;
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  let skip = query.skip ?? 0;
  let after: ProductKey | undefined = query.after;
  while (left > 0) {
    const rowsMax = Math.min(left, pageMax);
    const question = { ...query, skip, after };
    const page = await thread.call<ProductPage>((id) => ({
      op: 'page',
      id,
      query: question,
      rowsMax,
    }));
    yield* page.found;
    if (page.next === null) return;
    left -= page.found.length;
    skip -= page.skipped;
    after = page.next;
  }
}
