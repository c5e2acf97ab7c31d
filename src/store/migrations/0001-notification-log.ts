/** Version 1: the notification log, the quarantine, the readers' cursors, drift counters, write check. */

export const notificationLog = {
  number: 1,
  name: 'notification log',
  /*
   * Every table grows at its end, by an integer key. The dedupe key is 24 bytes, so that
   * the one index that may see random inserts stays narrow. Bodies lie in a table of their own, so that a
   * query walks small rows. body_id is no declared foreign key: the check would cost a look-up for
   * each row and both rows are written by one function in one transaction. write_check holds one row, written anew to
   * prove that there is room.
   */
  sql: `
    CREATE TABLE body (
      id INTEGER PRIMARY KEY,
      encoding TEXT NOT NULL,
      bytes BLOB NOT NULL
    ) STRICT;

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
      body_index INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX notification_dedupe_key ON notification (dedupe_key);
    CREATE INDEX notification_received_at_us ON notification (received_at_us);

    CREATE TABLE quarantine (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      received_at_us INTEGER NOT NULL,
      subscription TEXT,
      source TEXT NOT NULL,
      faults TEXT NOT NULL,
      headers TEXT NOT NULL,
      body_id INTEGER NOT NULL,
      released_at_us INTEGER
    ) STRICT;

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

    CREATE TABLE write_check (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      filler BLOB NOT NULL
    ) STRICT;
  `,
} as const;
