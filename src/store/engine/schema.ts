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

    -- Content-Encodings, only of bodies that have one. There are few, so that the lookup is cheap for all others.
    CREATE TABLE body_encoding (
      body_id INTEGER PRIMARY KEY,
      encoding TEXT NOT NULL
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
    CREATE INDEX notification_pushed ON notification (pushed_at_us) WHERE pushed_at_us IS NOT NULL;

    -- \`body_digest\` is the SHA-256 of a body that is stored once even when it is sent repeatedly; null for all others.
    CREATE TABLE quarantine (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      received_at_us INTEGER NOT NULL,
      subscription TEXT,
      source TEXT NOT NULL,
      faults TEXT NOT NULL,
      headers TEXT NOT NULL,
      body_id INTEGER NOT NULL,
      body_digest BLOB,
      released_at_us INTEGER
    ) STRICT;
    CREATE INDEX quarantine_held ON quarantine (id) WHERE released_at_us IS NULL;
    -- Pruning asks whether a body has an entry.
    CREATE INDEX quarantine_body_id ON quarantine (body_id);
    CREATE INDEX quarantine_body_digest ON quarantine (body_digest)
      WHERE body_digest IS NOT NULL AND released_at_us IS NULL;

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

    -- Catalogue account. \`state\` and \`events\` are JSON.

    CREATE TABLE registration (
      name TEXT PRIMARY KEY,
      state TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    -- The latest known state of each queue.
    CREATE TABLE pull_queue (
      subscription TEXT PRIMARY KEY,
      state TEXT NOT NULL
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
    -- Events that a subscription missed. Ids are never reused.
    CREATE TABLE gap (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      subscription TEXT NOT NULL,
      events TEXT NOT NULL,
      filter TEXT NOT NULL,
      from_us INTEGER NOT NULL,
      to_us INTEGER,
      reason TEXT NOT NULL
    ) STRICT;
    -- At most one open gap of a subscription.
    CREATE UNIQUE INDEX gap_lasting ON gap (subscription) WHERE to_us IS NULL;
    -- \`subscription\` is '' for a path without a name, because a key cannot be null.
    CREATE TABLE delivery_mark (
      subscription TEXT NOT NULL,
      username TEXT NOT NULL,
      last_at_us INTEGER NOT NULL,
      PRIMARY KEY (subscription, username)
    ) STRICT, WITHOUT ROWID;
    -- \`events\` is empty after the subscription was removed.
    CREATE TABLE subscription_definition (
      id INTEGER PRIMARY KEY,
      subscription TEXT NOT NULL,
      from_us INTEGER NOT NULL,
      events TEXT NOT NULL,
      filter TEXT NOT NULL
    ) STRICT;

    -- Completeness.

    -- A row ends with the last heartbeat.
    CREATE TABLE uptime (
      from_us INTEGER PRIMARY KEY,
      to_us INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    -- One row per compared hour: an hour without a row is unknown.
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

    -- Alerts and sinks. Ids are never reused, so that a delayed answer cannot match another row.

    -- \`evidence\` and \`channels\` (to which it was sent) are JSON arrays.
    CREATE TABLE alert (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      kind TEXT NOT NULL,
      subject TEXT NOT NULL,
      level TEXT NOT NULL,
      text TEXT NOT NULL,
      evidence TEXT NOT NULL,
      next_step TEXT NOT NULL,
      raised_at_us INTEGER NOT NULL,
      resolved_at_us INTEGER,
      channels TEXT NOT NULL
    ) STRICT;
    -- At most one active alert per kind and subject.
    CREATE UNIQUE INDEX alert_lasting ON alert (kind, subject) WHERE resolved_at_us IS NULL;
    -- A successful delivery is removed. An abandoned one has \`ended_at_us\`, and is removed when it is not shown any more.
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

    -- An item has a row until the sink acknowledges it. \`stream\` is the id of its replay, 0 for live deliveries; within a
    -- stream, ids give the order. \`failure\` counts the failed attempts of the sink: the highest one is the last failure.
    -- Ids of products are compared case-insensitively, as elsewhere.
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
    -- Pruning asks for the first notification that a sink needs.
    CREATE INDEX sink_item_waiting_position ON sink_item (sink, position) WHERE state = 'waiting';
    CREATE INDEX sink_item_dead_position ON sink_item (sink, position) WHERE state = 'dead';
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
    -- Number and time of acknowledged deliveries.
    CREATE TABLE sink_delivery (
      sink TEXT PRIMARY KEY,
      delivered INTEGER NOT NULL,
      last_at_us INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- Maintenance of the log.

    -- One row after the first pruning: notifications up to \`position\` were removed, and completeness is unknown for
    -- times before \`received_before_us\`.
    CREATE TABLE prune_horizon (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      position INTEGER NOT NULL,
      received_before_us INTEGER NOT NULL,
      pruned_at_us INTEGER NOT NULL
    ) STRICT;
    -- The last successful and the last failed backup.
    CREATE TABLE backup_run (
      outcome TEXT PRIMARY KEY CHECK (outcome IN ('made', 'failed')),
      file TEXT NOT NULL,
      started_at_us INTEGER NOT NULL,
      ended_at_us INTEGER NOT NULL,
      bytes INTEGER,
      last_position INTEGER,
      error TEXT
    ) STRICT, WITHOUT ROWID;

    -- Shared log. \`applied\` is the last applied entry, \`state_from\` that of the checkpoint from which this log began.

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
    -- One row while this log is copied into a shared log, and the rows that have changed since.
    CREATE TABLE shared_copy (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      log_id TEXT NOT NULL
    ) STRICT;
    CREATE TABLE copied_change (position INTEGER PRIMARY KEY) STRICT;

    -- Summaries: one row per subject with its job and its text. \`due_at_us\` is null when the job is done.
    -- \`revision\` changes whenever the subject is requested again. \`scope\`, \`facts\` and \`refusal\` are JSON.
    -- \`request\` is the hash of the request that the text of a model answers.

    CREATE TABLE summary (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      kind TEXT NOT NULL,
      subject TEXT NOT NULL,
      revision INTEGER NOT NULL,
      product_id TEXT,
      product_name TEXT,
      subscription TEXT,
      scope TEXT,
      position INTEGER NOT NULL,
      requested_at_us INTEGER NOT NULL,
      due_at_us INTEGER,
      reason TEXT,
      text TEXT,
      facts TEXT,
      model TEXT,
      request BLOB,
      refusal TEXT,
      created_at_us INTEGER,
      UNIQUE (kind, subject)
    ) STRICT;
    -- The few open jobs, and the texts that a model was asked for.
    CREATE INDEX summary_due ON summary (kind, due_at_us) WHERE due_at_us IS NOT NULL;
    CREATE INDEX summary_asked ON summary (created_at_us) WHERE model IS NOT NULL OR refusal IS NOT NULL;
    -- Requests count against the budget, also of a job that was removed.
    CREATE TABLE summary_request (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      at_us INTEGER NOT NULL,
      tokens INTEGER NOT NULL
    ) STRICT;
    -- With the tokens, so that adding up a budget does not read the table.
    CREATE INDEX summary_request_at_us ON summary_request (at_us, tokens);
  `,
];
