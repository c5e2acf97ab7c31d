/** Writes what is to be told of alerts, and what came of telling it. */
import type { Database } from 'better-sqlite3';
import type { Alert, AlertChannel, AlertDelivery } from '../domain/alerts.ts';
import type { SettleDeliveryOptions } from './alert-messages.ts';
import { givenUpShownUs } from './alert-rows.ts';

/** Tells a change through each of the channels, from now on. */
export function prepareTell(database: Database) {
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
    for (const channel of channels) insert.run({ id, change, channel, atUs });
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
