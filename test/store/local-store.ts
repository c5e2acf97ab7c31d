/** The store that tests of its contract use: by default with a log in SQLite. */
import type { Store } from '../../src/store/store.ts';
import { type OpenedStore, openSqliteStore } from './sqlite-store.ts';

export type LocalStore = Store;

let open: () => Promise<OpenedStore> = openSqliteStore;

/** Runs the tests of this process with another kind of store. */
export function useOtherStore(other: () => Promise<OpenedStore>): void {
  open = other;
}

/** Opens an empty store that is closed after the test. */
export const openLocalStore = (): Promise<OpenedStore> => open();
