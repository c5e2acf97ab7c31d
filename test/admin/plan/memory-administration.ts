/** The account's side of the store by its own statements, in memory: for tests of a thousand rounds. */
import { accountWrites, accountReads } from '../../../src/store/account.ts';
import { localOperations } from '../../store/local-operations.ts';
import type { Administration } from '../../../src/domain/account.ts';
import { migrate } from '../../../src/store/engine/migrate.ts';
import Sqlite from 'better-sqlite3';

/** Opens an empty one; `close` gives its memory back. */
export function openMemoryAdministration(): Administration & { close: () => void } {
  const database = new Sqlite(':memory:');
  migrate(database);
  return {
    ...localOperations({ ...accountReads, ...accountWrites }, database),
    close: () => void database.close(),
  };
}
