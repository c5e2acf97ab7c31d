/** Version 10: how senders had encoded bodies, and which bodies the quarantine holds once only. */

export const receivedAsSent = {
  number: 10,
  name: 'received as sent',
  /*
   * `body_encoding` has a row for each body that came with a Content-Encoding: few, so that a body without one costs a
   * look-up in a table that is mostly empty. `body_digest` is the SHA-256 of a body that is held once, however often it
   * comes; null for all others.
   */
  sql: `
    CREATE TABLE body_encoding (
      body_id INTEGER PRIMARY KEY,
      encoding TEXT NOT NULL
    ) STRICT;

    ALTER TABLE quarantine ADD COLUMN body_digest BLOB;
    CREATE INDEX quarantine_body_digest ON quarantine (body_digest)
      WHERE body_digest IS NOT NULL AND released_at_us IS NULL;
  `,
} as const;
