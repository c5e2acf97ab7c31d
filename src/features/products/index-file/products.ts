/** Queries the products of a data directory from the main thread, and provides them to the library. */

import { moduleFile, pick, type Remote, remote } from '../../../core/host/rpc.ts';
import { isAppError } from '../../../core/terms/app-error.ts';
import type { ProductsQuestion, StoredProducts } from '../../../filter/builder.ts';
import { requireFilter } from '../../../filter/check.ts';
import type {
  FoundProduct,
  ProductKey,
  ProductQuery,
  ProductSelection,
  Products,
} from '../../../filter/products.ts';
import type { Service, ServiceContext } from '../../../receiver/slots.ts';
import { StoreThread } from '../../../store/engine/thread.ts';
import { catchUpIndex, startIndexing } from './index-maintenance.ts';
import { replacedIndex } from './product-file.ts';
import type { SentProduct } from './product-queries.ts';
import { completeRecord, receivedRecord } from './product-schema.ts';
import type { ProductOperations } from './product-thread.ts';
import { keyOf } from './search/conditions.ts';

/** Rows per message. Records are about 5 kB each, and the main thread must be able to respond in between. */
const pageRowsMax = { withRecords: 64, withFootprints: 250, withoutRecords: 1_000 };

/** Maximum time of a quick count. */
const quickCountMs = 2_000;

/** Time without a query after which the thread ends. */
const queryIdleSeconds = 30;

/** Opens the index for queries, with the first query. */
export function openProducts(dataDir: string): Products & { close(): Promise<void> } {
  const thread = new StoreThread(moduleFile('./product-thread', import.meta.url), {
    dataDir,
    // A count over a very large index may take long, and blocks no other query.
    callTimeoutSeconds: Number.POSITIVE_INFINITY,
    idleSeconds: queryIdleSeconds,
  });
  const call = (signal?: AbortSignal) => remote<ProductOperations>(thread, signal);
  return {
    find: (query, signal) => find(call(signal), query),
    count: async (query, signal) => (await call(signal).count(selectionOf(query))).count,
    quickCount: (query, signal) => call(signal).count(selectionOf(query), quickCountMs),
    keyOf,
    ...pick(call(), ['indexProgress', 'indexedPosition', 'pushedEvents']),
    events: (query, signal) => call(signal).events(query),
    collections: (signal) => call(signal).collections(),
    facets: (query, signal) => call(signal).facets(selectionOf(query)),
    timeliness: (query, signal) => call(signal).timeliness(query),
    close: () => thread.close(),
  };
}

/** Follows the log, unless indexing is off, and answers queries. */
export async function serveProducts({ config, store, log }: ServiceContext): Promise<Service> {
  const { dataDir, diskReserveBytes, index } = config;
  const indexing = index ? startIndexing({ dataDir, diskReserveBytes, log, store }) : null;
  const products = openProducts(dataDir);
  return {
    parts: { products },
    close: async () => {
      await products.close();
      await indexing?.stop();
    },
  };
}

/** Leaves out the other fields of a query, such as its page. */
function selectionOf({ entity, filter, received, subscription, maxAgeUs }: ProductSelection) {
  return { entity, filter, received, subscription, maxAgeUs };
}

async function* find(
  products: Pick<Remote<ProductOperations>, 'page'>,
  query: ProductQuery,
): AsyncGenerator<FoundProduct> {
  const { withRecords, withFootprints, withoutRecords } = pageRowsMax;
  const withoutThem = query.footprints ? withFootprints : withoutRecords;
  const pageMax = query.records === false ? withoutThem : withRecords;
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  if (left <= 0) return;
  const pageAfter = (after: ProductKey | undefined, skip: number) => {
    const page = products.page({ ...query, skip, after }, Math.min(left, pageMax));
    // Its error is reported when it is awaited; the caller may stop before.
    page.catch(() => undefined);
    return page;
  };
  let skip = query.skip ?? 0;
  let reading = pageAfter(query.after, skip);
  let file: string | undefined;
  while (true) {
    const page = await reading;
    file ??= page.file;
    if (page.file !== file) throw replacedIndex();
    left -= page.found.length;
    skip -= page.skipped;
    const found = toFound(page.found);
    if (page.next === null || left <= 0) return yield* found;
    // The thread reads the next page while the caller uses this one.
    reading = pageAfter(page.next, skip);
    yield* found;
  }
}

/** Parses the records, each when it is used. */
function* toFound(sent: readonly SentProduct[]): Generator<FoundProduct> {
  for (const { record, ...product } of sent) {
    if (record === undefined) yield { ...product, record: {} };
    else yield { ...product, record: completeRecord(receivedRecord(record), product.row) };
  }
}

/** True if no update is needed, which is usual while a receiver runs; saves starting a thread. */
export async function isUpToDate(products: Pick<Products, 'indexProgress'>): Promise<boolean> {
  try {
    const { indexedPosition, lastPosition } = await products.indexProgress();
    // Not `>=`: a log restored from a backup may end before the indexed position.
    return indexedPosition === lastPosition;
  } catch (error) {
    // There is no index yet, or it is damaged.
    if (isAppError(error, 'unavailable')) return false;
    throw error;
  }
}

/** Opens the products of a data directory; `close` cancels calls in progress. */
export function openStoredProducts(dataDir: string): {
  ports: { products: StoredProducts };
  close(): Promise<void>;
} {
  const index = openProducts(dataDir);
  const closing = new AbortController();
  const upToDate = async (question: Pick<ProductsQuestion, 'entity' | 'filter'>) => {
    const { entity = 'Products', filter = '' } = question;
    const query = { ...question, entity, filter: requireFilter(String(filter), entity) };
    if (!(await isUpToDate(index))) await catchUpIndex({ dataDir, signal: closing.signal });
    return query;
  };
  return {
    ports: {
      products: {
        find: async function* (question = {}) {
          yield* index.find(await upToDate(question));
        },
        count: async (question = {}) => index.count(await upToDate(question)),
        keyOf: (row, { entity = 'Products', order } = {}) => index.keyOf(row, { entity, order }),
      },
    },
    close: async () => {
      closing.abort();
      await index.close();
    },
  };
}
