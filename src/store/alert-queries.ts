/** The questions about alerts as SQL, for one reading connection. */
import type { Database } from 'better-sqlite3';
import { type Alert, type AlertDelivery, alertWaitMaxUs } from '../domain/alerts.ts';
import type { AlertQuestion, DueDeliveriesOptions } from './alert-messages.ts';
import { alertColumns, alertIn, givenUpShownUs, type StoredAlert } from './alert-rows.ts';

/** Answers one question; the answer is what the port's call of that name resolves with. */
export function askAlerts(database: Database, question: AlertQuestion): unknown {
  switch (question.kind) {
    case 'alerts':
      return alerts(database, question.options);
    case 'due-deliveries':
      return dueDeliveries(database, question.options);
    case 'untold':
      return untold(database, question.nowUs);
  }
}

/** In the order of raising, which a clock that is set back does not change. */
function alerts(database: Database, { all, limit }: { all: boolean; limit: number }): Alert[] {
  const source = all
    ? 'alert'
    : 'alert INDEXED BY alert_lasting WHERE alert.resolved_at_us IS NULL';
  return database
    .prepare<[number], StoredAlert>(
      `SELECT ${alertColumns} FROM ${source} ORDER BY alert.id DESC LIMIT ?`,
    )
    .all(limit)
    .map(alertIn);
}

function dueDeliveries(
  database: Database,
  { nowUs, limit, channel }: DueDeliveriesOptions,
): AlertDelivery[] {
  const isDue = `(due_at_us <= @nowUs OR due_at_us > @nowUs + ${alertWaitMaxUs})`;
  const isNext = `NOT EXISTS (
    SELECT 1 FROM alert_delivery AS earlier JOIN alert AS other ON other.id = earlier.alert_id
    WHERE earlier.ended_at_us IS NULL AND earlier.channel = delivery.channel
      AND earlier.id < delivery.id AND other.kind = alert.kind AND other.subject = alert.subject)`;
  const ofChannel = channel === undefined ? '' : 'AND delivery.channel = @channel';
  return find(
    database,
    `WHERE delivery.ended_at_us IS NULL ${ofChannel} AND ${isDue} AND ${isNext}
     ORDER BY delivery.id LIMIT @limit`,
    { nowUs, limit, channel },
  ).map(({ delivery }) => delivery);
}

function untold(database: Database, nowUs: number): (AlertDelivery & { isGivenUp: boolean })[] {
  return find(
    database,
    `WHERE delivery.ended_at_us IS NULL OR delivery.ended_at_us >= @sinceUs ORDER BY delivery.id`,
    { sinceUs: nowUs - givenUpShownUs },
  ).map(({ delivery, endedAtUs }) => ({ ...delivery, isGivenUp: endedAtUs !== null }));
}

type StoredDelivery = Omit<AlertDelivery, 'id' | 'alert'> & {
  deliveryId: number;
  endedAtUs: number | null;
};

/** Deliveries with their alerts as they are now. */
function find(database: Database, which: string, values: object) {
  return database
    .prepare<[object], StoredAlert & StoredDelivery>(
      `SELECT ${alertColumns}, delivery.id AS deliveryId, delivery.change, delivery.channel,
         delivery.attempts, delivery.due_at_us AS dueAtUs, delivery.error,
         delivery.ended_at_us AS endedAtUs
       FROM alert_delivery AS delivery JOIN alert ON alert.id = delivery.alert_id ${which}`,
    )
    .all(values)
    .map(({ deliveryId, change, channel, attempts, dueAtUs, error, endedAtUs, ...alert }) => ({
      delivery: {
        id: deliveryId,
        alert: alertIn(alert),
        change,
        channel,
        attempts,
        dueAtUs,
        error,
      },
      endedAtUs,
    }));
}
