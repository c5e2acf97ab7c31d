/** Version 6: what sinks have yet to take, their dead letters, and replays. */

export const sinks = {
  number: 6,
  name: 'sinks',
  /*
   * An item is one row until it was taken. `stream` is the id of its replay, 0 for what is handed over as it comes.
   * The id of an item is never given again, so that a late answer cannot pass for another one's; its order is
   * the order of the stream. `failure` counts up with each failed attempt of a sink: the highest is the last one;
   * null before an item's first. Products are compared without regard to case, as elsewhere. The partial indexes
   * hold few: waiting items, in the order of handing over and by product, dead letters, and items that failed.
   */
  sql: `
    CREATE TABLE sink_item (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      sink TEXT NOT NULL,
      stream INTEGER NOT NULL,
      position INTEGER NOT NULL,
      product_id TEXT NOT NULL COLLATE NOCASE,
      state TEXT NOT NULL,
      attempts INTEGER NOT NULL,
      due_at_us INTEGER NOT NULL,
      error TEXT,
      failure INTEGER,
      queued_at_us INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX sink_item_queue ON sink_item (sink, stream, id, due_at_us) WHERE state = 'waiting';
    CREATE INDEX sink_item_product ON sink_item (sink, stream, product_id, id) WHERE state = 'waiting';
    CREATE INDEX sink_item_dead ON sink_item (sink, id) WHERE state = 'dead';
    CREATE INDEX sink_item_failure ON sink_item (sink, failure) WHERE failure IS NOT NULL;

    CREATE TABLE sink_replay (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      sink TEXT NOT NULL,
      filter TEXT NOT NULL,
      since_us INTEGER,
      until_us INTEGER,
      position INTEGER NOT NULL,
      last_position INTEGER NOT NULL,
      requested_at_us INTEGER NOT NULL,
      ended_at_us INTEGER
    ) STRICT;
  `,
} as const;
