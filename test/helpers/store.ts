/** The store with the tables of all features. */
import { app } from '../../src/app.ts';
import {
  openStore as open,
  openStoreReader as openReader,
  type Store,
} from '../../src/store/store.ts';
import { tablesOf } from '../../src/store/tables.ts';

export const tables = tablesOf(app);

export const openStore = (options: Omit<Parameters<typeof open>[0], 'tables'>): Promise<Store> =>
  open({ ...options, tables });

export const openStoreReader = (dataDir: string) => openReader(dataDir, tables);
