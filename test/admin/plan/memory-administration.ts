/** The account's side of the store by its own statements, in memory: for tests of a thousand rounds. */

import Sqlite from 'better-sqlite3';
import type { Administration } from '../../../src/domain/account.ts';
import { accountReads, accountWrites } from '../../../src/store/account.ts';
import { migrate } from '../../../src/store/engine/migrate.ts';
import { localOperations } from '../../store/local-store.ts';

/** Opens an empty one; `close` gives its memory back. */
export function openMemoryAdministration(): Administration & { close: () => void } {
  const database = new Sqlite(':memory:');
  migrate(database);
  return {
    ...localOperations({ ...accountReads, ...accountWrites }, () => database),
    close: () => void database.close(),
  };
}
