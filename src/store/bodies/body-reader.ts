/** Reads request bodies, however they are kept. */
import type { Database } from 'better-sqlite3';
import { contentOf } from '../../domain/ports.ts';
import { decodeStored } from '../../http/request-body.ts';
import { prepared } from '../engine/database.ts';
import { type StoredRow, unpackBodies } from './body-codec.ts';

export interface BodyReader {
  /** The body, byte by byte as it came; undefined where there is none. Throws as `unpackBodies` does. */
  body(id: number): Buffer | undefined;
  /** The same of a body that something refers to, as a copy that can be sent to another thread. */
  keptBody(id: number): Uint8Array;
  /** The Content-Encoding that a body came with; null for one without. */
  encoding(id: number): string | null;
  /** The body, decoded where it had a Content-Encoding: for its JSON. */
  content(id: number): Uint8Array | undefined;
}

const rowSql =
  'SELECT id, encoding, bodies, packed AS bytes FROM body WHERE id <= ? ORDER BY id DESC LIMIT 1';

const readers = new WeakMap<Database, BodyReader>();

/** The one reader of a connection. */
export function bodyReader(database: Database): BodyReader {
  const reader = readers.get(database) ?? createBodyReader(database);
  readers.set(database, reader);
  return reader;
}

/** Keeps the pack that it read last: bodies are mostly read in their order. */
function createBodyReader(database: Database): BodyReader {
  let last: { row: StoredRow; bodies: Buffer[] } | undefined;
  const body = (id: number): Buffer | undefined => {
    const row = prepared<[number], StoredRow>(database, rowSql).get(id);
    if (row === undefined || id >= row.id + row.bodies) return undefined;
    // Compared by content: an id may have become another pack's, by `earshot compact` or a restored file.
    if (last?.row.id !== row.id || !last.row.bytes.equals(row.bytes)) {
      last = { row, bodies: unpackBodies(row) };
    }
    return last.bodies[id - row.id];
  };
  const encoding = (id: number): string | null =>
    prepared<[number], string>(database, 'SELECT encoding FROM body_encoding WHERE body_id = ?')
      .pluck()
      .get(id) ?? null;
  return {
    body,
    encoding,
    content: (id) => {
      const bytes = body(id);
      const name = bytes === undefined ? null : encoding(id);
      if (bytes === undefined || name === null) return bytes;
      return contentOf({ body: bytes, encoded: decodeStored(bytes, name) });
    },
    keptBody: (id) => {
      const kept = body(id);
      if (kept === undefined) throw new Error(`The log has no body ${id}, which it refers to.`);
      return new Uint8Array(kept);
    },
  };
}
