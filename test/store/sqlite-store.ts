/** The SQLite store as tests open it. */
import { onTestFinished } from 'vitest';
import { openStore, type Store } from '../../src/store/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

export interface OpenedStore {
  store: Store;
  dataDir: string;
  /** Closes the store and opens the same directory again. */
  reopen(): Promise<Store>;
}

/** Opens a store that is closed, and its directory removed, when the test has finished. */
export async function openSqliteStore(
  options: {
    dataDir?: string;
    diskReserveBytes?: number;
    queueBytesMax?: number;
    nowUs?: () => number;
  } = {},
): Promise<OpenedStore> {
  const { dataDir = temporaryDirectory(), nowUs = () => 0, ...rest } = options;
  let store = await openStore({ dataDir, nowUs, ...rest });
  onTestFinished(() => store.close());
  return {
    store,
    dataDir,
    reopen: async () => {
      await store.close();
      store = await openStore({ dataDir, nowUs, ...rest });
      return store;
    },
  };
}
