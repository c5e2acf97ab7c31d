/** The reading connection to the index: opened anew when another file has become the one that counts. */
import type { Database } from 'better-sqlite3';
import { currentProductFile, openProductsForReading } from './product-file.ts';

export interface IndexConnection {
  /** Throws `unavailable` while there is no index. */
  database(): Database;
  close(): void;
}

/** Opens nothing before it is asked. */
export function createIndexConnection(dataDir: string): IndexConnection {
  let open: Database | undefined;
  return {
    database: () => {
      if (open !== undefined && open.name !== currentProductFile(dataDir)) {
        closeUnlessRead(open);
        open = undefined;
      }
      open ??= openProductsForReading(dataDir);
      return open;
    },
    close: () => {
      if (open !== undefined) closeUnlessRead(open);
    },
  };
}

/** A file that a long count still reads from goes with the thread. */
function closeUnlessRead(database: Database): void {
  try {
    database.close();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
}
