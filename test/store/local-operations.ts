/** Operations of the store's threads without a thread: over a database of the test's own, each change one transaction. */
import type { Database } from 'better-sqlite3';
import type { Operation, Operations, Remote } from '../../src/store/engine/rpc.ts';

export function localOperations<Ops extends Readonly<Record<string, Operation<Database>>>>(
  operations: Ops & Operations<Database>,
  database: Database,
): Remote<Ops> {
  const calls = Object.entries(operations as Record<string, Operation<Database>>).map(
    ([name, operation]) => [
      name,
      async (...args: never[]) => database.transaction(() => operation(database, ...args))(),
    ],
  );
  return Object.fromEntries(calls) as Remote<Ops>;
}
