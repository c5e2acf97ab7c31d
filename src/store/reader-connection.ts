/** The reading connection: opened anew when the file it read is no longer the one in the directory. */
import type { Database } from 'better-sqlite3';
import { inodeOf, openForReading } from './database.ts';

export interface ReaderConnection {
  database(): Database;
  close(): void;
}

/** Opens the file at once. Throws as `openForReading` does, then and at each later opening. */
export function createReaderConnection(dataDir: string): ReaderConnection {
  let database = openForReading(dataDir);
  let inode = inodeOf(database.name);
  return {
    database: () => {
      if (inodeOf(database.name) !== inode) {
        database.close();
        database = openForReading(dataDir);
        inode = inodeOf(database.name);
      }
      return database;
    },
    close: () => void database.close(),
  };
}
