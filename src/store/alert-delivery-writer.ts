/** Writes what is to be told of alerts, and what came of telling it. */
import type { Database } from 'better-sqlite3';
import type { Alert, AlertChannel, AlertDelivery } from '../domain/alerts.ts';
import type { SettleDeliveryOptions } from './alert-messages.ts';
import { givenUpShownUs } from './alert-rows.ts';

/**
 * Queues a change for each of the channels, and for those that an earlier change of the alert went to: a command that
 * ends an alert may run without the receiver's settings.
 */
export function prepareTell(database: Database) {
  const keep = database
    .prepare<[object], string>(
      `UPDATE alert SET channels = (SELECT json_group_array(value) FROM
         (SELECT value FROM json_each(coalesce(channels, '[]')) UNION SELECT value FROM json_each(@channels)))
       WHERE id = @id RETURNING channels`,
    )
    .pluck();
  const insert = database.prepare(
    `INSERT INTO alert_delivery (alert_id, change, channel, attempts, due_at_us)
     VALUES (@id, @change, @channel, 0, @atUs)`,
  );
  return (
    { id }: Pick<Alert, 'id'>,
    change: AlertDelivery['change'],
    channels: ReadonlySet<AlertChannel>,
    atUs: number,
  ): void => {
    const kept = keep.get({ id, channels: JSON.stringify([...channels]) }) ?? '[]';
    const all = new Set<AlertChannel>([...channels, ...JSON.parse(kept)]);
    for (const channel of all) insert.run({ id, change, channel, atUs });
  };
}

/** Only a delivery that waits is changed: one that is over stays as it is. */
export function prepareSettleDelivery(database: Database) {
  const told = database.prepare('DELETE FROM alert_delivery WHERE id = ? AND ended_at_us IS NULL');
  const fail = database.prepare(
    `UPDATE alert_delivery SET attempts = attempts + 1, error = @error,
       due_at_us = coalesce(@nextTryAtUs, due_at_us), ended_at_us = @endedAtUs
     WHERE id = @id AND ended_at_us IS NULL`,
  );
  const forget = database.prepare('DELETE FROM alert_delivery WHERE ended_at_us < ?');
  return (options: SettleDeliveryOptions): void => {
    const { id, atUs } = options;
    switch (options.outcome) {
      case 'told':
        return void told.run(id);
      case 'failed': {
        const { error, nextTryAtUs } = options;
        return void fail.run({ id, error, nextTryAtUs, endedAtUs: null });
      }
      case 'given-up':
        fail.run({ id, error: options.error, nextTryAtUs: null, endedAtUs: atUs });
        return void forget.run(atUs - givenUpShownUs);
    }
  };
}
