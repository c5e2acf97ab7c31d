/** The products of a data directory, to be asked from the main thread. */
import { AppError } from '../../domain/app-error.ts';
import type {
  FoundProduct,
  IndexState,
  ProductKey,
  ProductQuery,
  Products,
  PushedEvent,
  QueryExplanation,
  SubscriptionDelays,
} from '../../domain/products.ts';
import { StoreThread, threadFile } from '../store-thread.ts';
import type { ProductRequest } from './product-messages.ts';
import type { ProductPage } from './product-questions.ts';
import { keyOf } from './search/order.ts';

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
    find: (query, signal) => find(thread, query, signal),
    count: ({ entity, filter, received }, signal) =>
      ask<number>(thread, signal, (id) => ({
        op: 'count',
        id,
        query: { entity, filter, received },
      })),
    keyOf,
    explain: (query) => thread.call<QueryExplanation>((id) => ({ op: 'explain', id, query })),
    indexState: () => thread.call<IndexState>((id) => ({ op: 'state', id })),
    indexedPosition: () => thread.call<number>((id) => ({ op: 'position', id })),
    pushedEvents: (question) =>
      thread.call<PushedEvent[]>((id) => ({ op: 'events', id, question })),
    delays: (question, signal) =>
      ask<SubscriptionDelays[]>(thread, signal, (id) => ({ op: 'delays', id, question })),
    close: () => thread.close((id) => ({ op: 'close', id })),
  };
}

async function* find(
  thread: StoreThread<ProductRequest>,
  query: ProductQuery,
  signal: AbortSignal | undefined,
): AsyncGenerator<FoundProduct> {
  const { withRecords, withoutRecords } = pageRowsMax;
  const pageMax = query.records === false ? withoutRecords : withRecords;
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  let skip = query.skip ?? 0;
  let after: ProductKey | undefined = query.after;
  while (left > 0) {
    const rowsMax = Math.min(left, pageMax);
    const question = { ...query, skip, after };
    const page = await ask<ProductPage>(thread, signal, (id) => ({
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

/** Asks, and gives up when the signal is aborted: a count under way ends at its next pause. */
async function ask<Value>(
  thread: StoreThread<ProductRequest>,
  signal: AbortSignal | undefined,
  request: (id: number) => ProductRequest,
): Promise<Value> {
  if (signal === undefined) return thread.call<Value>(request);
  if (signal.aborted) throw cancelled();
  const gaveUp = Promise.withResolvers<never>();
  let givenUp = 0;
  const giveUp = () => {
    gaveUp.reject(cancelled());
    thread.call<void>((id) => ({ op: 'cancel', id, givenUp })).catch(() => undefined);
  };
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    const answer = thread.call<Value>((id) => {
      givenUp = id;
      return request(id);
    });
    return await Promise.race([answer, gaveUp.promise]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

function cancelled(): AppError {
  return new AppError('cancelled', 'The question was given up before it was answered.');
}
