/**
 * The schema of the database: the SQL of each version, which brings a file of the version before to it. What was
 * released is never changed.
 */

/** In order: the first is version 1. The file's `user_version` is the number of the last one applied. */
export const migrations: readonly string[] = [
  /*
   * Version 1: the notification log, the quarantine, the readers' cursors, drift counters, write check.
   *
   * Every table grows at its end, by an integer key. The dedupe key is 24 bytes, so that the one index that may see
   * random inserts stays narrow. Bodies lie in a table of their own, so that a query walks small rows. body_id is no
   * declared foreign key: the check would cost a look-up for each row and both rows are written by one function in
   * one transaction. write_check holds one row, written anew to prove that there is room.
   */
  `
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
  /*
   * Version 2: what is remembered of the catalogue account: registrations, history, gaps, delivery marks.
   *
   * Small tables, one row for a subscription or a step. `events` is a JSON list, `unfinished` 0 or 1. A partial index
   * lets a subscription have one gap that lasts, whichever program opens it; the id of a gap is never given again.
   * `subscription` of a delivery mark is '' for a path without a name, since a key cannot be null.
   */
  `
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
  /*
   * Version 3: summaries: texts by the request they answered, the jobs that want them, and what was spent.
   *
   * A text lies under the SHA-256 of its request, in a table that grows at its end. `doubts`, `doubted` and `scope`
   * are JSON, `verified` and `settled` 0 or 1. The id of a job is never given again, so that a late answer cannot
   * pass for another job's. `due_at_us` is the next try of a waiting job and the end of the lease of an asking one:
   * either way, from then on anybody may take it. `request_id` is the last request for it. The template of a job
   * without a text lies in its row. A request refers to a job that may be forgotten already: what was spent stays
   * spent. The partial indexes hold the open jobs alone, which are few beside those that are over; the one on `state`
   * finds and counts the others. Tokens stand in the index on time, so that a budget is added up without the table.
   */
  `
    CREATE TABLE summary_text (
      key BLOB PRIMARY KEY CHECK (length(key) = 32),
      text TEXT NOT NULL,
      model TEXT,
      verified INTEGER NOT NULL,
      doubts TEXT NOT NULL,
      created_at_us INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE summary_job (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      kind TEXT NOT NULL,
      subject TEXT NOT NULL,
      revision INTEGER NOT NULL,
      product_id TEXT,
      product_name TEXT,
      subscription TEXT,
      position INTEGER,
      scope TEXT,
      state TEXT NOT NULL,
      attempts INTEGER NOT NULL,
      doubted TEXT,
      due_at_us INTEGER NOT NULL,
      request_id INTEGER,
      error TEXT,
      template TEXT,
      template_at_us INTEGER,
      text_key BLOB,
      requested_at_us INTEGER NOT NULL,
      UNIQUE (kind, subject)
    ) STRICT;
    CREATE INDEX summary_job_due ON summary_job (kind, due_at_us) WHERE state IN ('waiting', 'asking');
    CREATE INDEX summary_job_waiting_product ON summary_job (requested_at_us)
      WHERE state = 'waiting' AND kind = 'product';
    CREATE INDEX summary_job_product_id ON summary_job (product_id) WHERE product_id IS NOT NULL;
    CREATE INDEX summary_job_state ON summary_job (state);
    CREATE TABLE summary_request (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      job_id INTEGER NOT NULL,
      asked_at_us INTEGER NOT NULL,
      model TEXT NOT NULL,
      tokens INTEGER NOT NULL,
      settled INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX summary_request_asked ON summary_request (asked_at_us, tokens);
  `,
  /*
   * Version 4: what it takes to know that nothing is missing: recovered events, definitions, uptime, coverage.
   *
   * `event_us` is the catalogue's date of an event that was recovered, `pushed_at_us` when a push of it came after
   * all. The partial indexes hold recovered events alone, so that a push, which looks there once, pays next to
   * nothing. Definitions begin with what is registered, since it was last made or found at the catalogue: what is
   * there cannot be given other events or another filter. `events` is a JSON list, empty once a subscription was
   * given up. A row of `uptime` ends with the last sign of life. Coverage is one row for each hour that was compared:
   * an hour without one is unknown.
   */
  `
    ALTER TABLE notification ADD COLUMN event_us INTEGER;
    ALTER TABLE notification ADD COLUMN pushed_at_us INTEGER;
    CREATE INDEX notification_recovered
      ON notification (product_id COLLATE NOCASE, event, subscription) WHERE source = 'reconcile';
    CREATE INDEX notification_pushed ON notification (pushed_at_us) WHERE pushed_at_us IS NOT NULL;
    CREATE TABLE subscription_definition (
      id INTEGER PRIMARY KEY,
      subscription TEXT NOT NULL,
      from_us INTEGER NOT NULL,
      events TEXT NOT NULL,
      filter TEXT NOT NULL
    ) STRICT;
    INSERT INTO subscription_definition (subscription, from_us, events, filter)
      SELECT name,
        coalesce(
          (SELECT max(at_us) FROM history WHERE history.subscription = name
             AND action IN ('created', 'adopted', 'replaced', 'recreated')),
          activity_at_us
        ), events, filter
      FROM registration ORDER BY name;
    CREATE TABLE uptime (
      from_us INTEGER PRIMARY KEY,
      to_us INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE coverage (
      subscription TEXT NOT NULL,
      event TEXT NOT NULL,
      hour_us INTEGER NOT NULL,
      expected INTEGER NOT NULL,
      pushed INTEGER NOT NULL,
      late INTEGER NOT NULL,
      recovered INTEGER NOT NULL,
      missing INTEGER NOT NULL,
      compared_at_us INTEGER NOT NULL,
      PRIMARY KEY (subscription, event, hour_us)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX coverage_hour ON coverage (hour_us);
    CREATE TABLE reconcile_run (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      request TEXT NOT NULL,
      started_at_us INTEGER NOT NULL,
      ended_at_us INTEGER
    ) STRICT;
    CREATE UNIQUE INDEX reconcile_run_open ON reconcile_run (request) WHERE ended_at_us IS NULL;
  `,
  /*
   * Version 5: alerts, and what is still to be told of them.
   *
   * `evidence` is a JSON list. A partial index lets one alert of a kind and subject last, whichever program raises
   * it. A delivery that was told is removed; one that was given up has `ended_at_us`, and is removed when it is no
   * longer shown. The ids of both are never given again, so that a late answer cannot pass for another one's.
   */
  `
    CREATE TABLE alert (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      kind TEXT NOT NULL,
      subject TEXT NOT NULL,
      severity TEXT NOT NULL,
      cause TEXT NOT NULL,
      evidence TEXT NOT NULL,
      next_step TEXT NOT NULL,
      raised_at_us INTEGER NOT NULL,
      resolved_at_us INTEGER
    ) STRICT;
    CREATE UNIQUE INDEX alert_lasting ON alert (kind, subject) WHERE resolved_at_us IS NULL;
    CREATE TABLE alert_delivery (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      alert_id INTEGER NOT NULL,
      change TEXT NOT NULL,
      channel TEXT NOT NULL,
      attempts INTEGER NOT NULL,
      due_at_us INTEGER NOT NULL,
      error TEXT,
      ended_at_us INTEGER
    ) STRICT;
    CREATE INDEX alert_delivery_waiting ON alert_delivery (channel, id) WHERE ended_at_us IS NULL;
  `,
  /*
   * Version 6: what sinks have yet to take, their dead letters, and replays.
   *
   * An item is one row until it was taken. `stream` is the id of its replay, 0 for what is handed over as it comes.
   * The id of an item is never given again, so that a late answer cannot pass for another one's; its order is the
   * order of the stream. `failure` counts up with each failed attempt of a sink: the highest is the last one; null
   * before an item's first. Products are compared without regard to case, as elsewhere. The partial indexes hold few:
   * waiting items, in the order of handing over and by product, dead letters, and items that failed.
   */
  `
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
  /*
   * Version 7: several bodies in one row, compressed together.
   *
   * A row holds the bodies with the ids `id` to `id + bodies - 1`. `encoding` is `identity` for one body as it came,
   * which is what rows written before hold, or names the dictionary that a pack of bodies was compressed with. The
   * column has another name than before, so that a receiver of an older version that still runs fails to write
   * instead of giving ids that belong to a pack. `compaction` holds one row once something was compacted: bodies
   * before `next_body_id` need not be looked at again.
   */
  `
    ALTER TABLE body RENAME COLUMN bytes TO packed;
    ALTER TABLE body ADD COLUMN bodies INTEGER NOT NULL DEFAULT 1;
    CREATE TABLE compaction (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      next_body_id INTEGER NOT NULL
    ) STRICT;
  `,
  /*
   * Version 8: what is remembered of keeping the log: how far it was pruned, and the backups that were made.
   *
   * `prune_horizon` holds one row once something was pruned: all up to `position` is gone, and nothing that was
   * received before `received_before_us` is told to be complete any more. Of backups, the last that was made and the
   * last that failed are kept. One index holds the entries of the quarantine that are still held, which are counted.
   * The others find what refers to a row that is to go: other entries of a body, other jobs of a text; and the oldest
   * notification that a sink still needs.
   */
  `
    CREATE TABLE prune_horizon (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      position INTEGER NOT NULL,
      received_before_us INTEGER NOT NULL,
      pruned_at_us INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE backup_run (
      outcome TEXT PRIMARY KEY CHECK (outcome IN ('made', 'failed')),
      file TEXT NOT NULL,
      started_at_us INTEGER NOT NULL,
      ended_at_us INTEGER NOT NULL,
      bytes INTEGER,
      last_position INTEGER,
      error TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX quarantine_held ON quarantine (id) WHERE released_at_us IS NULL;
    CREATE INDEX quarantine_body_id ON quarantine (body_id);
    CREATE INDEX summary_job_text_key ON summary_job (text_key) WHERE text_key IS NOT NULL;
    CREATE INDEX sink_item_waiting_position ON sink_item (sink, position) WHERE state = 'waiting';
    CREATE INDEX sink_item_dead_position ON sink_item (sink, position) WHERE state = 'dead';
  `,
  /*
   * Version 9: how much each sink has acknowledged, and when it last did.
   *
   * One row for each sink that has acknowledged something since this version.
   */
  `
    CREATE TABLE sink_delivery (
      sink TEXT PRIMARY KEY,
      delivered INTEGER NOT NULL,
      last_at_us INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
  `,
  /*
   * Version 10: how senders had encoded bodies, and which bodies the quarantine holds once only.
   *
   * `body_encoding` has a row for each body that came with a Content-Encoding: few, so that a body without one costs
   * a look-up in a table that is mostly empty. `body_digest` is the SHA-256 of a body that is held once, however
   * often it comes; null for all others.
   */
  `
    CREATE TABLE body_encoding (
      body_id INTEGER PRIMARY KEY,
      encoding TEXT NOT NULL
    ) STRICT;
    ALTER TABLE quarantine ADD COLUMN body_digest BLOB;
    CREATE INDEX quarantine_body_digest ON quarantine (body_digest)
      WHERE body_digest IS NOT NULL AND released_at_us IS NULL;
  `,
  /*
   * Version 11: the channels that an alert was sent to, so that its end is sent there, too.
   *
   * A JSON array; null for alerts of older versions.
   */
  'ALTER TABLE alert ADD COLUMN channels TEXT;',
];
