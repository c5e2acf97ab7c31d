/** Stores with many bodies, and their layout in the file. */
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import type { NotificationLog } from '../../../src/core/terms/ports.ts';
import { insertBodies, packBodies } from '../../../src/store/bodies/bodies.ts';
import { databaseFileName } from '../../../src/store/engine/database.ts';
import { delivery } from '../../helpers/deliveries.ts';
import { type OpenedStore, openSqliteStore } from '../sqlite-store.ts';

export interface KeptRow {
  id: number;
  encoding: string;
  bodies: number;
  /** Size of the stored bytes. */
  length: number;
}

/** Opens a second connection to the file while `use` runs. */
export function inFile<Value>(dataDir: string, use: (database: Database) => Value): Value {
  const database = new Sqlite(join(dataDir, databaseFileName));
  try {
    return use(database);
  } finally {
    database.close();
  }
}

export function keptRows(dataDir: string): KeptRow[] {
  return inFile(dataDir, (database) =>
    database
      .prepare<[], KeptRow>(
        'SELECT id, encoding, bodies, length(packed) AS length FROM body ORDER BY id',
      )
      .all(),
  );
}

/** Creates a store with these bodies at positions from 1 on, each in a pack of its own, as if they had come one by one. */
export async function openSinglesStore(bodies: readonly Buffer[]): Promise<OpenedStore> {
  const opened = await openSqliteStore();
  await Promise.all(bodies.map((body) => opened.store.accept(delivery(body))));
  inFile(opened.dataDir, (database) => {
    database.exec('DELETE FROM body');
    const rows = bodies.flatMap((body) => packBodies([body], 1));
    database.transaction(() => insertBodies(database, 1, rows))();
  });
  return opened;
}

/** Counts the bodies, at positions from 1 on, that differ from the originals. */
export async function countOthers(
  log: NotificationLog,
  bodies: readonly Buffer[],
): Promise<number> {
  let others = 0;
  for (const [i, body] of bodies.entries()) {
    if (!Buffer.from(await log.body(i + 1)).equals(body)) others += 1;
  }
  return others;
}
