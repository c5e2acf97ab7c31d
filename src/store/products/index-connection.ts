/** The reading connection to the index: opened anew when another file has become the one that counts. */
import type { Database } from 'better-sqlite3';
import { inodeOf } from '../engine/database.ts';
import { createNameSample, type NameSample } from './name-sample.ts';
import { currentProductFile, openProductsForReading } from './product-file.ts';

export interface IndexConnection {
  /** Throws `unavailable` while there is no index. */
  open(): { index: Database; names: NameSample };
  close(): void;
}

/** Opens nothing before it is asked. */
export function createIndexConnection(dataDir: string): IndexConnection {
  let opened: { index: Database; names: NameSample; inode: number } | undefined;
  return {
    open: () => {
      if (opened !== undefined && !isCurrent(dataDir, opened)) {
        closeUnlessRead(opened.index);
        opened = undefined;
      }
      if (opened === undefined) {
        const index = openProductsForReading(dataDir);
        opened = { index, names: createNameSample(index), inode: inodeOf(index.name) };
      }
      return opened;
    },
    close: () => {
      if (opened !== undefined) closeUnlessRead(opened.index);
    },
  };
}

/** The file that counts by its name, and still the one that was opened under it. */
function isCurrent(dataDir: string, { index, inode }: { index: Database; inode: number }): boolean {
  return index.name === currentProductFile(dataDir) && inodeOf(index.name) === inode;
}

/** A file that a long count still reads from goes with the thread. */
function closeUnlessRead(database: Database): void {
  try {
    database.close();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
}
