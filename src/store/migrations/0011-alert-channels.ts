/** Version 11: the channels that an alert was sent to, so that its end is sent there, too. */

export const alertChannelsKept = {
  number: 11,
  name: 'channels of alerts',
  /* A JSON array; null for alerts of older versions. */
  sql: 'ALTER TABLE alert ADD COLUMN channels TEXT;',
} as const;
