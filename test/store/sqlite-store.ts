/** Helpers that open SQLite stores and close them after the test. */
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import type { Store, StoreReader } from '../../src/store/store.ts';
import { openStore, openStoreReader } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

export interface OpenedStore {
  store: Store;
  dataDir: string;
  /** Closes the store and opens the same directory again. */
  reopen(): Promise<Store>;
}

/** Opens a store with its threads, by default in a new directory. */
export async function openSqliteStore(
  options: { dataDir?: string; diskReserveBytes?: number; queueBytesMax?: number } = {},
): Promise<OpenedStore> {
  const { dataDir = temporaryDirectory(), ...rest } = options;
  let store = await openStore({ dataDir, ...rest });
  onTestFinished(() => store.close());
  return {
    store,
    dataDir,
    reopen: async () => {
      await store.close();
      store = await openStore({ dataDir, ...rest });
      return store;
    },
  };
}

/** Opens the store for queries only. */
export function openReader(dataDir: string): StoreReader {
  const reader = openStoreReader(dataDir);
  onTestFinished(() => reader.close());
  return reader;
}

/** Opens the database as another program would. */
export function openFile(dataDir: string, options: Sqlite.Options = {}): Database {
  const database = new Sqlite(join(dataDir, databaseFileName), options);
  onTestFinished(() => void database.close());
  return database;
}
