/** Replaces the bytes of a stored body, which no command does. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { bodyReader } from '../../src/store/bodies/bodies.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';

/**
 * Stores the body separately: bodies that were packed with it become rows of their own, unchanged.
 */
export function replaceBody(dataDir: string, bodyId: number, bytes: Uint8Array): void {
  const database = new Sqlite(join(dataDir, databaseFileName));
  try {
    const pack = database
      .prepare<[number], { id: number; bodies: number }>(
        'SELECT id, bodies FROM body WHERE id <= ? ORDER BY id DESC LIMIT 1',
      )
      .get(bodyId);
    if (pack === undefined) throw new Error(`There is no body ${bodyId}.`);
    const ids = Array.from({ length: pack.bodies }, (_, i) => pack.id + i);
    const { storedBody } = bodyReader(database);
    const bodies = ids.map((id) => (id === bodyId ? bytes : storedBody(id)));
    database.transaction(() => {
      database.prepare('DELETE FROM body WHERE id = ?').run(pack.id);
      const insert = database.prepare(
        "INSERT INTO body (id, encoding, packed, bodies) VALUES (?, 'identity', ?, 1)",
      );
      for (const [i, body] of bodies.entries()) insert.run(pack.id + i, body);
    })();
  } finally {
    database.close();
  }
}
