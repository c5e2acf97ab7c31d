/** Version 8: what is remembered of keeping the log: how far it was pruned, and the backups that were made. */

export const keeping = {
  number: 8,
  name: 'keeping',
  /*
   * `prune_horizon` holds one row once something was pruned: all up to `position` is gone, and nothing that was
   * received before `received_before_us` is told to be complete any more. Of backups, the last that was made and
   * the last that failed are kept.
   * One index holds the entries of the quarantine that are still held, which are counted. The others find what
   * refers to a row that is to go: other entries of a body, other jobs of a text; and the oldest notification that a
   * sink still needs.
   */
  sql: `
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
} as const;
