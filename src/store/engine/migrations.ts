/** The schema of the database: the SQL that upgrades a file to each version. Released SQL is never changed. */

/** The first element is version 1. The file's `user_version` is the last applied version. */
export const migrations: readonly string[] = [
  /*
   * Version 1: the notification log, the quarantine, the readers' cursors, drift counters, write check.
   *
   * Each table has an integer key and grows at its end. The dedupe key has 24 bytes: its index is the only one with
   * random inserts and stays small. Bodies have their own table, so that queries read small rows. `body_id` is not a
   * foreign key: the check would cost a lookup per row, and one function writes both rows in one transaction.
   * `write_check` has one row, rewritten to prove that the disk has free space.
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
   * Version 2: the catalogue account: registrations, history, gaps, delivery marks.
   *
   * `events` is a JSON array. A partial index limits a subscription to one open gap. Gap ids are never reused.
   * `subscription` of a delivery mark is '' for a path without a name, because a key cannot be null.
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
   * Version 3: summaries: texts by request, summary jobs, and spent tokens.
   *
   * The key of a text is the SHA-256 of its request. `doubts`, `doubted` and `scope` are JSON, `verified` and `settled`
   * 0 or 1. Job ids are never reused, so that a delayed answer cannot match another job. `due_at_us` is the next
   * attempt of a waiting job and the end of the lease of an asking one: after that time, any program may claim it. A
   * request stays after its job was removed, because its tokens count against the budget. The partial indexes contain
   * only the few open jobs. The index on time includes the tokens, so that adding up a budget does not read the table.
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
   * Version 4: completeness: recovered events, definitions, uptime, coverage.
   *
   * `event_us` is the catalogue's date of a recovered event, `pushed_at_us` the time of its push when that arrived
   * later. The partial indexes contain only recovered events, so that the one lookup per push costs almost nothing.
   * The first definitions are the registrations, each from its last creation or adoption: events and filter of a
   * subscription cannot change after that. `events` is a JSON array, empty after the subscription was removed. A row of
   * `uptime` ends with the last heartbeat. `coverage` has one row per compared hour: an hour without a row is unknown.
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
   * Version 5: alerts and their pending deliveries.
   *
   * `evidence` is a JSON array. A partial index allows one active alert per kind and subject. A successful delivery is
   * removed. An abandoned one has `ended_at_us` and is removed when it is no longer shown. The ids of both are never
   * reused, so that a delayed answer cannot match another row.
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
   * Version 6: the queues of the sinks, dead letters, and replays.
   *
   * An item has one row until the sink acknowledges it. `stream` is the id of its replay, 0 for live deliveries. Item
   * ids are never reused, so that a delayed answer cannot match another item; within a stream they give the order.
   * `failure` is a counter of failed attempts per sink: the highest value is the last failure; null before the first
   * failure of an item. Product ids are compared case-insensitively, as elsewhere. The partial indexes are small:
   * waiting items in delivery order and by product, dead letters, and failed items.
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
   * A row contains the bodies with the ids `id` to `id + bodies - 1`. `encoding` is `identity` for one uncompressed
   * body, as in all older rows, or the name of the dictionary of a compressed pack. The column is renamed so that a
   * running receiver of an older version fails to write instead of assigning ids that belong to a pack. `compaction`
   * has one row: bodies before `next_body_id` are done.
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
   * Version 8: maintenance of the log: the prune horizon and the backups.
   *
   * `prune_horizon` has one row after the first pruning: notifications up to `position` were removed, and completeness
   * is unknown for times before `received_before_us`. `backup_run` keeps the last successful and the last failed
   * backup. The indexes count unreleased quarantine entries, and find what still needs a row before its removal.
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
  // Version 9: number and time of acknowledged deliveries. One row for each sink that has one since this version.
  `
    CREATE TABLE sink_delivery (
      sink TEXT PRIMARY KEY,
      delivered INTEGER NOT NULL,
      last_at_us INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
  `,
  /*
   * Version 10: Content-Encodings of bodies, and bodies that are quarantined only once.
   *
   * `body_encoding` has a row for each body with a Content-Encoding. There are few, so that the lookup is cheap for all
   * others. `body_digest` is the SHA-256 of a body that is quarantined once even when it is sent repeatedly; null for
   * all others.
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
  // Version 11: the channels that an alert was sent to, as JSON; null for alerts of older versions.
  'ALTER TABLE alert ADD COLUMN channels TEXT;',
  /*
   * Version 12: the place of this log in a shared log.
   *
   * `shared_log`: `applied` is the last applied entry, `state_from` that of the checkpoint from which this log began.
   * `shared_result`: results of the last entries, for the process that has appended them. `shared_copy` has one row while
   * this log is copied into a shared log, and `copied_change` the changed rows.
   */
  `
    CREATE TABLE shared_log (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      log_id TEXT NOT NULL, node_id TEXT NOT NULL,
      applied INTEGER NOT NULL, batch_id TEXT,
      state_from INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE shared_copy (id INTEGER PRIMARY KEY CHECK (id = 1), log_id TEXT NOT NULL) STRICT;
    CREATE TABLE copied_change (position INTEGER PRIMARY KEY) STRICT;
    CREATE TABLE shared_result (number INTEGER PRIMARY KEY, json TEXT NOT NULL, bytes BLOB NOT NULL) STRICT;
  `,
  // Version 13: pull subscriptions, and the latest known state of each queue, as JSON.
  `ALTER TABLE registration ADD COLUMN type TEXT NOT NULL DEFAULT 'push';
   CREATE TABLE pull_queue (subscription TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;`,
  // Version 14: ids of subscriptions that are being replaced, as JSON, and where a subscription is configured.
  `ALTER TABLE registration ADD COLUMN earlier_ids TEXT NOT NULL DEFAULT '[]';
   ALTER TABLE registration ADD COLUMN origin TEXT NOT NULL DEFAULT 'flags';`,
  // Version 15: registrations as JSON. A subscription that a command paused has the desired status `paused`.
  `ALTER TABLE registration RENAME TO old_registration;
   CREATE TABLE registration (name TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;
   INSERT INTO registration SELECT name, json_object('name', name, 'type', type, 'events', json(events), 'filter', filter,
     'status', iif(held_by = 'command', 'paused', status), 'subscriptionId', subscription_id,
     'earlierIds', json(earlier_ids), 'unfinished', json(iif(unfinished, 'true', 'false')), 'origin', origin,
     'credentialsDigest', credentials_digest, 'activityAtUs', activity_at_us, 'notifiedAtUs', notified_at_us,
     'runningSeenAtUs', running_seen_at_us, 'pausedSeenAtUs', paused_seen_at_us,
     'changedByPerson', json(iif(held_by = 'person', 'true', 'false')), 'reported', json('[]')) FROM old_registration;
   DROP TABLE old_registration;`,
  /*
   * Summaries: one row per subject with its job and its text, and the requests that count against the budget.
   *
   * `due_at_us` is null when the job is done. `revision` changes whenever the subject is requested again. `scope`,
   * `facts` and `refusal` are JSON. `request` is the hash of the request that the text of a model answers. The partial
   * indexes have the few open jobs, and the texts that a model was asked for.
   */
  `
    DROP TABLE summary_text;
    DROP TABLE summary_job;
    DROP TABLE summary_request;
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
    CREATE INDEX summary_due ON summary (kind, due_at_us) WHERE due_at_us IS NOT NULL;
    CREATE INDEX summary_asked ON summary (created_at_us)
      WHERE model IS NOT NULL OR refusal IS NOT NULL;
    CREATE TABLE summary_request (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      at_us INTEGER NOT NULL,
      tokens INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX summary_request_at_us ON summary_request (at_us, tokens);
  `,
];
