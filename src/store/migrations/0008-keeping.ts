/** Version 8: what is remembered of keeping the log: how far it was pruned, and the backups that were made. */

export const keeping = {
  number: 8,
  name: 'keeping',
  /*
   * `prune_horizon` holds one row once something was pruned: all up to `position` is gone, and nothing that was
   * received before `received_before_us` is told to be complete any more. Of backups, the last that was made and
   * the last that failed are kept.
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
  `,
} as const;
