/** Reads request bodies, however they are kept. */
import type { Database } from 'better-sqlite3';
import { type StoredRow, unpackBodies } from './body-codec.ts';

export interface BodyReader {
  /** The body, byte by byte as it came; undefined where there is none. Throws as `unpackBodies` does. */
  body(id: number): Buffer | undefined;
  /** The same of a body that something refers to, as a copy that another thread can be sent. */
  keptBody(id: number): Uint8Array;
}

const readers = new WeakMap<Database, BodyReader>();

/** The one reader of a connection. */
export function bodyReader(database: Database): BodyReader {
  const reader = readers.get(database) ?? createBodyReader(database);
  readers.set(database, reader);
  return reader;
}

/** Keeps the pack that it read last: bodies are mostly read in their order. */
function createBodyReader(database: Database): BodyReader {
  const rowOf = database.prepare<[number], StoredRow>(
    'SELECT id, encoding, bodies, packed AS bytes FROM body WHERE id <= ? ORDER BY id DESC LIMIT 1',
  );
  let last: { row: StoredRow; bodies: Buffer[] } | undefined;
  const body = (id: number): Buffer | undefined => {
    const row = rowOf.get(id);
    if (row === undefined || id >= row.id + row.bodies) return undefined;
    // Compared by content: an id may have become another pack's, by `earshot compact` or a restored file.
    if (last?.row.id !== row.id || !last.row.bytes.equals(row.bytes)) {
      last = { row, bodies: unpackBodies(row) };
    }
    return last.bodies[id - row.id];
  };
  return {
    body,
    keptBody: (id) => {
      const kept = body(id);
      if (kept === undefined) throw new Error(`The log has no body ${id}, which it refers to.`);
      return new Uint8Array(kept);
    },
  };
}
