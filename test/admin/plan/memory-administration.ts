/** The account's side of the store by its own statements, in memory: for tests of a thousand rounds. */
import Sqlite from 'better-sqlite3';
import type { Administration } from '../../../src/domain/administration.ts';
import {
  deliveryMarks,
  gaps,
  history,
  registrations,
} from '../../../src/store/administration-queries.ts';
import { createAdministrationWriter } from '../../../src/store/administration-writer.ts';
import { migrate } from '../../../src/store/engine/migrate.ts';

/** Opens an empty one; `close` gives its memory back. */
export function openMemoryAdministration(): Administration & { close: () => void } {
  const database = new Sqlite(':memory:');
  migrate(database);
  const writer = createAdministrationWriter(database);
  return {
    registrations: async () => registrations(database),
    history: async (options) => history(database, options),
    gaps: async () => gaps(database),
    deliveryMarks: async () => deliveryMarks(database),
    commit: async (change) => database.transaction(() => writer.write(change))(),
    markDeliveries: async (marks) => database.transaction(() => writer.mark(marks))(),
    close: () => void database.close(),
  };
}
