/** Tables of a node of a shared log. */
import type { Database } from '../../store/engine/database.ts';

export const schema = `
  -- Results of the last entries, for the process that has appended them.
  CREATE TABLE IF NOT EXISTS shared_result (
    number INTEGER PRIMARY KEY,
    json TEXT NOT NULL,
    bytes BLOB NOT NULL
  ) STRICT;
  -- One row while this log is copied into a shared log, and the rows that have changed since.
  CREATE TABLE IF NOT EXISTS shared_copy (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    log_id TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS copied_change (position INTEGER PRIMARY KEY) STRICT;
`;

export const reads = {};

export const writes = {};

/** Removes the state of a copy into a shared log in progress, if any. */
export function endInCopy(database: Database): void {
  database.exec(`DROP TRIGGER IF EXISTS copied_change_noted;
    DELETE FROM copied_change;
    DELETE FROM shared_copy;`);
}
