/** Keeps request bodies, each once, byte by byte. */
import type { Database } from 'better-sqlite3';

export interface BodyWriter {
  /** Called first in each transaction: another program may have written since the last one. */
  begin(): void;
  /** The id that the next body will get. */
  nextId(): number;
  keep(bytes: Uint8Array): number;
}

export function createBodyWriter(database: Database): BodyWriter {
  const insert = database.prepare(
    "INSERT INTO body (id, encoding, bytes) VALUES (?, 'identity', ?)",
  );
  const maxId = database.prepare('SELECT coalesce(max(id), 0) FROM body').pluck();
  let lastId = 0;
  return {
    begin: () => {
      lastId = Number(maxId.get());
    },
    nextId: () => lastId + 1,
    keep: (bytes) => {
      lastId += 1;
      insert.run(lastId, bytes);
      return lastId;
    },
  };
}
