/** The query thread for products, so that no search delays a response of the receiver. */
import { AppError } from '../../../core/terms/app-error.ts';
import type { ProductQuery } from '../../../filter/products.ts';
import { createReaderConnection, type Database, inodeOf } from '../../../store/engine/database.ts';
import { serveThread } from '../../../store/engine/thread.ts';
import { summarizeCollections } from './product-collections.ts';
import { measureDelays, measureTimeliness } from './product-delays.ts';
import { countFacets, eventPage } from './product-events.ts';
import {
  currentProductFile,
  indexedPosition,
  isDamage,
  openProductsForReading,
} from './product-file.ts';
import {
  countProducts,
  indexProgress,
  indexState,
  type LongQuery,
  productPage,
  pushedEvents,
} from './product-queries.ts';
import { explainSearch } from './search/search.ts';

const operations = {
  page: productPage,
  count: countProducts,
  explain: ({ index }: LongQuery, query: ProductQuery) => explainSearch(index, query),
  indexState,
  indexProgress,
  indexedPosition,
  pushedEvents,
  delays: measureDelays,
  events: eventPage,
  collections: summarizeCollections,
  facets: countFacets,
  timeliness: measureTimeliness,
};
export type ProductOperations = typeof operations;

export default serveThread<LongQuery>(({ dataDir }) => {
  const log = createReaderConnection(dataDir);
  let opened: { index: Database; inode: number } | undefined;
  /** Reopens the index when the current file was replaced. Throws `unavailable` while there is no index. */
  const openIndex = () => {
    const isCurrent =
      opened?.index.name === currentProductFile(dataDir) &&
      inodeOf(opened.index.name) === opened.inode;
    if (opened !== undefined && isCurrent) return opened;
    closeUnlessInUse(opened?.index);
    opened = undefined;
    const index = openProductsForReading(dataDir);
    opened = { index, inode: inodeOf(index.name) };
    return opened;
  };
  return {
    operations,
    context: (call) => ({ ...openIndex(), log: log.database(), call }),
    failure: (error) => (isDamage(error) ? damaged(error) : error),
    close: () => {
      closeUnlessInUse(opened?.index);
      log.close();
    },
  };
});

/** Closes the file, unless a long count still reads from it: then it is closed with the thread. */
function closeUnlessInUse(database: Database | undefined): void {
  try {
    database?.close();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
}

function damaged(cause: unknown): AppError {
  return new AppError(
    'unavailable',
    'The product index is damaged; the log is not affected. Run `earshot admin index rebuild`.',
    { cause },
  );
}
