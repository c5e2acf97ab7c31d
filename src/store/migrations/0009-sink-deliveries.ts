/** Version 9: how much each sink has acknowledged, and when it last did. */

export const sinkDeliveries = {
  number: 9,
  name: 'sink-deliveries',
  /* One row for each sink that has acknowledged something since this version. */
  sql: `
    CREATE TABLE sink_delivery (
      sink TEXT PRIMARY KEY,
      delivered INTEGER NOT NULL,
      last_at_us INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
  `,
} as const;
