/** Version 4: what it takes to know that nothing is missing: recovered events, definitions, uptime, coverage. */

export const completeness = {
  number: 4,
  name: 'completeness',
  /*
   * `event_us` is the catalogue's date of an event that was recovered, `pushed_at_us` when a push of it came
   * after all. The partial indexes hold recovered events alone, so that a push, which looks there once, pays next
   * to nothing. Definitions begin with what is registered, since it was last made or found at the catalogue: what
   * is there cannot be given other events or another filter. `events` is a JSON list, empty once a subscription
   * was given up. A row of `uptime` ends with the last sign of life. Coverage is one row for each hour that was
   * compared: an hour without one is unknown.
   */
  sql: `
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
} as const;
