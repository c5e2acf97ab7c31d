/** Replaces the bytes of a stored body, which no command does. */
import { bodyReader, insertBodies } from '../../src/store/bodies/bodies.ts';
import { inFile } from '../store/bodies/bodies-in-file.ts';

/**
 * Stores the body separately: bodies that were packed with it become rows of their own, unchanged.
 */
export function replaceBody(dataDir: string, bodyId: number, bytes: Uint8Array): void {
  inFile(dataDir, (database) => {
    const pack = database
      .prepare<[number], { id: number; bodies: number }>(
        'SELECT id, bodies FROM body WHERE id <= ? ORDER BY id DESC LIMIT 1',
      )
      .get(bodyId);
    if (pack === undefined) throw new Error(`There is no body ${bodyId}.`);
    const { storedBody } = bodyReader(database);
    const rows = Array.from({ length: pack.bodies }, (_, i) => {
      const id = pack.id + i;
      const own = id === bodyId ? bytes : storedBody(id);
      return { encoding: 'identity', bodies: 1, bytes: own };
    });
    database.transaction(() => {
      database.prepare('DELETE FROM body WHERE id = ?').run(pack.id);
      insertBodies(database, pack.id, rows);
    })();
  });
}
