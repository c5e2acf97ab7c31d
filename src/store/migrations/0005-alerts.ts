/** Version 5: alerts, and what is still to be told of them. */

export const alerts = {
  number: 5,
  name: 'alerts',
  /*
   * `evidence` is a JSON list. A partial index lets one alert of a kind and subject last, whichever program
   * raises it. A delivery that was told is removed; one that was given up has `ended_at_us`, and is removed
   * when it is no longer shown. The ids of both are never given again, so that a late answer cannot pass for
   * another one's.
   */
  sql: `
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
} as const;
