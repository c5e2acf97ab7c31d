/** The operations of features in a thread of the store. */
import type { Operations } from '../../core/host/rpc.ts';
import type { TableFiles, TableOperations } from '../tables.ts';
import type { Database } from './database.ts';

const loaded = new Map<string, TableOperations>();

/** Imports the operations. Called once, before the thread opens the database. */
export async function loadTables(files: TableFiles): Promise<void> {
  await Promise.all(
    files.map(async ({ group, file }) => {
      loaded.set(group, (await import(file)) as TableOperations);
    }),
  );
}

/** Returns the operations of all features by group. */
export const tables = (): ReadonlyMap<string, TableOperations> => loaded;

/** Returns one kind of operations by group, with those of the store itself. */
export function withTables(
  kind: 'reads' | 'writes',
  own: Operations<Database>,
): Operations<Database> {
  const added = [...loaded].map(([group, operations]) => [group, operations[kind]] as const);
  return { ...own, ...Object.fromEntries(added) } as Operations<Database>;
}
