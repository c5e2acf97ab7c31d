/** The table of marks, and its operations, which the threads of the store run. */
import { type Database, prepared } from '../../src/store/engine/database.ts';

export const schema = `
  CREATE TABLE IF NOT EXISTS mark (product_id TEXT PRIMARY KEY, at_us INTEGER NOT NULL) STRICT;
`;

export const reads = {
  list: (database: Database): string[] =>
    prepared<[], string>(database, 'SELECT product_id FROM mark ORDER BY at_us').pluck().all(),
};

export const writes = {
  add(database: Database, productId: string, atUs: number): void {
    prepared(database, 'INSERT OR IGNORE INTO mark VALUES (?, ?)').run(productId, atUs);
  },
};
