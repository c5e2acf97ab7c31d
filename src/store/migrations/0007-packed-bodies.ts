/** Version 7: several bodies in one row, compressed together. */

export const packedBodies = {
  number: 7,
  name: 'packed bodies',
  /*
   * A row holds the bodies with the ids `id` to `id + bodies - 1`. `encoding` is `identity` for one body as it came,
   * which is what rows written before hold, or names the dictionary that a pack of bodies was compressed with.
   * The column has another name than before, so that a receiver of an older version that still runs fails to write
   * instead of giving ids that belong to a pack.
   * `compaction` holds one row once something was compacted: bodies before `next_body_id` need not be looked at again.
   */
  sql: `
    ALTER TABLE body RENAME COLUMN bytes TO packed;
    ALTER TABLE body ADD COLUMN bodies INTEGER NOT NULL DEFAULT 1;

    CREATE TABLE compaction (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      next_body_id INTEGER NOT NULL
    ) STRICT;
  `,
} as const;
