/** Version 2: what is remembered of the catalogue account: registrations, history, gaps, delivery marks. */

export const administration = {
  number: 2,
  name: 'administration',
  /*
   * Small tables, one row for a subscription or a step. `events` is a JSON list, `unfinished` 0 or 1.
   * A partial index lets a subscription have one gap that lasts, whichever program opens it; the id
   * of a gap is never given again. `subscription` of a delivery mark is '' for a path without a name,
   * since a key cannot be null.
   */
  sql: `
    CREATE TABLE registration (
      name TEXT PRIMARY KEY,
      events TEXT NOT NULL,
      filter TEXT NOT NULL,
      status TEXT NOT NULL,
      subscription_id TEXT,
      unfinished INTEGER NOT NULL,
      credentials_digest TEXT,
      activity_at_us INTEGER NOT NULL,
      notified_at_us INTEGER NOT NULL,
      running_seen_at_us INTEGER,
      paused_seen_at_us INTEGER,
      held_by TEXT,
      reported TEXT
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE history (
      id INTEGER PRIMARY KEY,
      at_us INTEGER NOT NULL,
      subscription TEXT NOT NULL,
      subscription_id TEXT,
      action TEXT NOT NULL,
      actor TEXT NOT NULL,
      reason TEXT NOT NULL
    ) STRICT;
    CREATE INDEX history_subscription ON history (subscription);

    CREATE TABLE gap (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      subscription TEXT NOT NULL,
      events TEXT NOT NULL,
      filter TEXT NOT NULL,
      from_us INTEGER NOT NULL,
      to_us INTEGER,
      reason TEXT NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX gap_lasting ON gap (subscription) WHERE to_us IS NULL;

    CREATE TABLE delivery_mark (
      subscription TEXT NOT NULL,
      username TEXT NOT NULL,
      last_at_us INTEGER NOT NULL,
      PRIMARY KEY (subscription, username)
    ) STRICT, WITHOUT ROWID;
  `,
} as const;
