/** The tables of the database. */

/**
 * SQL by version of the schema: the first element creates the tables, a later one upgrades a file by one version. The
 * file's `user_version` is the last applied version.
 */
export const migrations: readonly string[] = [
  `
    -- Log. Each table grows at its end; bodies have their own table, so that queries read small rows.

    -- The bodies with the ids \`id\` to \`id + bodies - 1\`. \`encoding\` names the dictionary; \`identity\`: uncompressed.
    CREATE TABLE body (
      id INTEGER PRIMARY KEY,
      encoding TEXT NOT NULL,
      bodies INTEGER NOT NULL,
      packed BLOB NOT NULL
    ) STRICT;

    -- One row: the bodies before this one are in full packs.
    CREATE TABLE compaction (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      next_body_id INTEGER NOT NULL
    ) STRICT;

    -- \`event_us\` is the catalogue's date of a recovered event, \`pushed_at_us\` the time of its push when that arrived
    -- later. \`body_id\` is not a foreign key: the check would cost a lookup per row.
    CREATE TABLE notification (
      position INTEGER PRIMARY KEY AUTOINCREMENT,
      dedupe_key BLOB NOT NULL,
      ack_id TEXT,
      product_id TEXT NOT NULL,
      product_name TEXT,
      event TEXT NOT NULL,
      subscription TEXT,
      subscription_id TEXT,
      notification_date_us INTEGER,
      received_at_us INTEGER NOT NULL,
      source TEXT NOT NULL,
      times_seen INTEGER NOT NULL,
      last_seen_at_us INTEGER NOT NULL,
      body_id INTEGER NOT NULL,
      body_index INTEGER NOT NULL,
      event_us INTEGER,
      pushed_at_us INTEGER
    ) STRICT;
    -- The only index with random inserts. It stays small, because a key has 24 bytes.
    CREATE UNIQUE INDEX notification_dedupe_key ON notification (dedupe_key);
    CREATE INDEX notification_received_at_us ON notification (received_at_us);
    -- Only recovered events, so that the one lookup per push costs almost nothing.
    CREATE INDEX notification_recovered
      ON notification (product_id COLLATE NOCASE, event, subscription) WHERE source = 'reconcile';

    -- \`body_digest\` is the SHA-256 of a body that is stored once even when it is sent repeatedly; null for all others.
    CREATE TABLE quarantine (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      received_at_us INTEGER NOT NULL,
      subscription TEXT,
      source TEXT NOT NULL,
      faults TEXT NOT NULL,
      headers TEXT NOT NULL,
      body_id INTEGER NOT NULL,
      body_digest BLOB
    ) STRICT;
    -- Pruning asks whether a body has an entry.
    CREATE INDEX quarantine_body_id ON quarantine (body_id);
    CREATE INDEX quarantine_body_digest ON quarantine (body_digest)
      WHERE body_digest IS NOT NULL;

    CREATE TABLE reader_cursor (
      reader TEXT PRIMARY KEY,
      position INTEGER NOT NULL,
      moved_at_us INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE drift (
      shape TEXT PRIMARY KEY,
      count INTEGER NOT NULL,
      first_seen_at_us INTEGER NOT NULL,
      last_seen_at_us INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    -- One row, rewritten to prove that the disk has free space.
    CREATE TABLE write_check (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      filler BLOB NOT NULL
    ) STRICT;

    -- Maintenance of the log.

    -- One row after the first pruning: notifications up to \`position\` were removed, and completeness is unknown for
    -- times before \`received_before_us\`.
    CREATE TABLE prune_horizon (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      position INTEGER NOT NULL,
      received_before_us INTEGER NOT NULL,
      pruned_at_us INTEGER NOT NULL
    ) STRICT;

    -- Place in a shared log; empty for a log of its own.
    -- \`applied\` is the last applied entry, \`state_from\` that of the checkpoint from which this log began.

    CREATE TABLE shared_log (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      log_id TEXT NOT NULL,
      node_id TEXT NOT NULL,
      applied INTEGER NOT NULL,
      batch_id TEXT,
      state_from INTEGER NOT NULL
    ) STRICT;
    -- Results of the last entries, for the process that has appended them.
    CREATE TABLE shared_result (
      number INTEGER PRIMARY KEY,
      json TEXT NOT NULL,
      bytes BLOB NOT NULL
    ) STRICT;
  `,
];
