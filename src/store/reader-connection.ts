/** The reading connection: opened anew when the file it read is no longer the one in the directory. */
import type { Database } from 'better-sqlite3';
import { inodesOf, openForReading } from './database.ts';

export interface ReaderConnection {
  database(): Database;
  close(): void;
}

/** A connection that nobody asks keeps removed files open too, and with them the writer from starting over. */
const checkEveryMs = 250;

/** Opens the file at once. Throws as `openForReading` does, then and at each later opening. */
export function createReaderConnection(dataDir: string): ReaderConnection {
  let database = openForReading(dataDir);
  let inodes = inodesOf(database.name);
  const isStale = () => {
    const now = inodesOf(database.name);
    return now.database !== inodes.database || now.wal !== inodes.wal || now.shm !== inodes.shm;
  };
  const timer = setInterval(() => {
    if (database.open && isStale()) database.close();
  }, checkEveryMs).unref();
  return {
    database: () => {
      if (!database.open || isStale()) {
        database.close();
        database = openForReading(dataDir);
        inodes = inodesOf(database.name);
      }
      return database;
    },
    close: () => {
      clearInterval(timer);
      database.close();
    },
  };
}
