/** The query thread for products, so that no search delays a response of the receiver. */
import type { IndexProgress, Products, PushedEvent } from '../../../filter/products.ts';
import {
  createReaderConnection,
  type Database,
  inodeOf,
  prepared,
} from '../../../store/engine/database.ts';
import { serveThread } from '../../../store/engine/thread.ts';
import { lastPosition } from '../../../store/log/queries.ts';
import {
  damagedIndex,
  indexedPosition,
  isCurrentFile,
  isDamage,
  isReportedDamaged,
  type OpenIndex,
  openProductsForReading,
  readLog,
  replacedIndex,
  reportDamage,
} from './product-file.ts';
import { countProducts, eventPage, type LongQuery, productPage } from './product-queries.ts';
import { countFacets, measureTimeliness, summarizeCollections } from './product-statistics.ts';

const operations = {
  page: productPage,
  count: countProducts,
  indexProgress,
  indexedPosition,
  pushedEvents,
  events: eventPage,
  collections: summarizeCollections,
  facets: countFacets,
  timeliness: measureTimeliness,
};
export type ProductOperations = typeof operations;

export default serveThread<LongQuery & OpenIndex>(({ dataDir }) => {
  const log = createReaderConnection(dataDir);
  let opened: OpenIndex | undefined;
  /** Reopens the index when the current file was replaced. Throws `unavailable` while there is no index. */
  const openIndex = () => {
    const isUsable =
      opened && isCurrentFile(dataDir, opened) && !isReportedDamaged(opened.index.name);
    if (opened !== undefined && isUsable) return opened;
    closeUnlessInUse(opened?.index);
    opened = undefined;
    const index = openProductsForReading(dataDir);
    opened = { index, inode: inodeOf(index.name) };
    return opened;
  };
  return {
    operations,
    context: (call) => ({ ...openIndex(), log: log.database(), call }),
    failure: (error, query) => {
      if (query === undefined || !isDamage(error)) return error;
      // A long query reads from a file that may have been replaced.
      if (!isCurrentFile(dataDir, query)) return replacedIndex(error);
      reportDamage(query.index.name);
      return damagedIndex(error);
    },
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

function indexProgress(databases: Pick<LongQuery, 'index' | 'log'>): IndexProgress {
  return {
    indexedPosition: indexedPosition(databases),
    lastPosition: readLog(() => lastPosition(databases.log)),
  };
}

/** Returns events in the order of `productIds` (case-insensitive), and for each product in the order of the log. */
function pushedEvents(
  { index }: LongQuery,
  { subscription, productIds }: Parameters<Products['pushedEvents']>[0],
): PushedEvent[] {
  const events = prepared<[string, string], Omit<PushedEvent, 'productId'>>(
    index,
    `SELECT e.position, e.event, e.event_us AS eventUs, e.state_us AS stateUs,
       e.notification_us AS notificationUs, e.received_us AS receivedUs
     FROM product p CROSS JOIN product_event e ON e.product = p.id
     WHERE p.product_id = ? AND e.subscription = ?
       AND (e.source = 'push' OR (e.source = 'pull' AND e.event_us IS NOT NULL))
     ORDER BY e.position`,
  );
  return [...new Set(productIds)].flatMap((productId) =>
    events.all(productId, subscription).map((event) => ({ productId, ...event })),
  );
}
