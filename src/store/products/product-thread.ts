/** The thread that answers questions about products, so that no search delays an answer of the receiver. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../../domain/app-error.ts';
import { createReaderConnection, inodeOf } from '../engine/database.ts';
import { serveThread } from '../engine/serve-thread.ts';
import { measureDelays } from './product-delays.ts';
import {
  currentProductFile,
  indexedPosition,
  isDamage,
  openProductsForReading,
} from './product-file.ts';
import {
  countProducts,
  explainSearch,
  indexState,
  type LongQuestion,
  productPage,
  pushedEvents,
} from './product-questions.ts';
import { createNameSample, type NameSample } from './search/drivers.ts';

const operations = {
  page: productPage,
  count: countProducts,
  explain: explainSearch,
  indexState,
  indexedPosition,
  pushedEvents,
  delays: measureDelays,
};
export type ProductOperations = typeof operations;

serveThread<LongQuestion>(({ dataDir }) => {
  const log = createReaderConnection(dataDir);
  let opened: { index: Database; names: NameSample; inode: number } | undefined;
  /** Opened again when another file is the current one. Throws `unavailable` while there is no index. */
  const openIndex = () => {
    const isCurrent =
      opened?.index.name === currentProductFile(dataDir) &&
      inodeOf(opened.index.name) === opened.inode;
    if (opened !== undefined && isCurrent) return opened;
    closeUnlessRead(opened?.index);
    opened = undefined;
    const index = openProductsForReading(dataDir);
    opened = { index, names: createNameSample(index), inode: inodeOf(index.name) };
    return opened;
  };
  return {
    operations,
    context: (call) => ({ ...openIndex(), log: log.database(), call }),
    failure: (error) => (isDamage(error) ? damaged(error) : error),
    close: () => {
      closeUnlessRead(opened?.index);
      log.close();
    },
  };
});

/** A file that a long count still reads from is closed with the thread. */
function closeUnlessRead(database: Database | undefined): void {
  try {
    database?.close();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
}

function damaged(cause: unknown): AppError {
  return new AppError(
    'unavailable',
    'The product index is damaged. Run `earshot index rebuild`: it is made anew from the log, which is safe.',
    { cause },
  );
}
