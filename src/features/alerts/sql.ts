/** Tables of alerts and of the deliveries to notification channels. */

import { weekUs } from '../../core/terms/dates.ts';
import type { Alert, AlertFinding } from '../../core/terms/evaluation.ts';
import type { AlertChannel } from '../../core/terms/ports.ts';
import { type Database, prepared } from '../../store/engine/database.ts';
import {
  type AlertDelivery,
  type AlertQuery,
  type Alerts,
  alertWaitMaxUs,
  type ListedAlert,
} from './terms.ts';

export const schema = `
  -- Ids are never reused, so that a delayed answer cannot match another row.
  -- \`evidence\` and \`channels\` (to which it was sent) are JSON arrays.
  CREATE TABLE IF NOT EXISTS alert (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    level TEXT NOT NULL,
    text TEXT NOT NULL,
    evidence TEXT NOT NULL,
    next_step TEXT NOT NULL,
    raised_at_us INTEGER NOT NULL,
    resolved_at_us INTEGER,
    channels TEXT NOT NULL
  ) STRICT;
  -- At most one active alert per kind and subject.
  CREATE UNIQUE INDEX IF NOT EXISTS alert_lasting ON alert (kind, subject) WHERE resolved_at_us IS NULL;
  -- A successful delivery is removed. An abandoned one has \`ended_at_us\`, and is removed when it is not shown any more.
  CREATE TABLE IF NOT EXISTS alert_delivery (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    alert_id INTEGER NOT NULL,
    change TEXT NOT NULL,
    channel TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    due_at_us INTEGER NOT NULL,
    error TEXT,
    ended_at_us INTEGER
  ) STRICT;
  CREATE INDEX IF NOT EXISTS alert_delivery_waiting ON alert_delivery (channel, id) WHERE ended_at_us IS NULL;
`;

type Options<Name extends keyof Alerts> = Parameters<Alerts[Name]>[0];

/** A stored row: `evidence` is JSON, written only by this module. */
type StoredAlert = Omit<Alert, 'evidence'> & { evidence: string };

type StoredDelivery = Omit<AlertDelivery, 'id' | 'alert'> & {
  deliveryId: number;
  isGivenUp: 0 | 1;
};

const alertColumns = `alert.id, alert.kind, alert.subject, alert.level, alert.text,
  alert.evidence, alert.next_step AS nextStep, alert.raised_at_us AS raisedAtUs,
  alert.resolved_at_us AS resolvedAtUs`;

const endless = Number.MAX_SAFE_INTEGER;

/** Time for which an abandoned delivery is shown. */
const abandonedShownUs = weekUs;

export const reads = {
  /** Returns alerts by id, newest first: times are not in order after the clock was set back. */
  alerts(
    database: Database,
    { all, resolved = false, limit, ...bounds }: AlertQuery,
  ): ListedAlert[] {
    const source = all
      ? 'alert WHERE true'
      : 'alert INDEXED BY alert_lasting WHERE alert.resolved_at_us IS NULL';
    const { beforeId = endless, sinceUs = -endless, untilUs = endless } = bounds;
    return prepared<[object], StoredAlert & { channels: string }>(
      database,
      `SELECT ${alertColumns}, alert.channels FROM ${source}
         AND alert.id < @beforeId AND alert.raised_at_us < @untilUs
         AND (alert.resolved_at_us IS NULL OR alert.resolved_at_us >= @sinceUs)
         ${resolved ? 'AND alert.resolved_at_us IS NOT NULL' : ''}
       ORDER BY alert.id DESC LIMIT @limit`,
    )
      .all({ beforeId, sinceUs, untilUs, limit })
      .map(({ channels, ...row }) => ({
        ...alertIn(row),
        channels: JSON.parse(channels) as AlertChannel[],
      }));
  },

  /** Returns the number of deliveries that have not ended, due or not. */
  openDeliveries(database: Database): number {
    return Number(
      prepared(database, 'SELECT count(*) FROM alert_delivery WHERE ended_at_us IS NULL')
        .pluck()
        .get(),
    );
  },

  dueDeliveries(database: Database, options: Options<'dueDeliveries'>): AlertDelivery[] {
    const isDue = `(due_at_us <= @nowUs OR due_at_us > @nowUs + ${alertWaitMaxUs})`;
    const isNext = `NOT EXISTS (
      SELECT 1 FROM alert_delivery AS earlier JOIN alert AS other ON other.id = earlier.alert_id
      WHERE earlier.ended_at_us IS NULL AND earlier.channel = delivery.channel
        AND earlier.id < delivery.id AND other.kind = alert.kind AND other.subject = alert.subject)`;
    return deliveries(
      database,
      `WHERE delivery.ended_at_us IS NULL AND delivery.channel = @channel AND ${isDue} AND ${isNext}
       ORDER BY delivery.id LIMIT @limit`,
      options,
    );
  },

  unsentDeliveries(database: Database, nowUs: number): (AlertDelivery & { isGivenUp: boolean })[] {
    return deliveries(
      database,
      `WHERE delivery.ended_at_us IS NULL OR delivery.ended_at_us >= @sinceUs ORDER BY delivery.id`,
      { sinceUs: nowUs - abandonedShownUs },
    );
  },
};

export const writes = {
  /** Raises, updates and resolves only the alerts whose keys are in `checked` or `findings`. */
  settleFindings(
    database: Database,
    { checked, findings, channels, atUs }: Options<'settleFindings'>,
  ): { raised: Alert[]; resolved: Alert[] } {
    const found = new Map(findings.map((finding) => [keyOf(finding), finding]));
    const raised: Alert[] = [];
    const resolved: Alert[] = [];
    for (const finding of found.values()) {
      const before = activeAlert(database, finding);
      const alert = raise(database, finding, { channels, atUs });
      const isWorse = alert.level === 'critical' && before?.level !== 'critical';
      if (before !== null && !isWorse) continue;
      raised.push(alert);
      queueDeliveries(database, alert, 'raised', { channels, atUs });
    }
    for (const one of checked) {
      const before = found.has(keyOf(one)) ? null : activeAlert(database, one);
      if (before === null) continue;
      resolved.push(resolve(database, before, atUs));
      queueDeliveries(database, before, 'resolved', { channels, atUs });
    }
    return { raised, resolved };
  },

  /** Changes only a waiting delivery. */
  settleDelivery(database: Database, options: Options<'settleDelivery'>): void {
    const { id, atUs, outcome } = options;
    if (outcome === 'sent') {
      prepared(database, 'DELETE FROM alert_delivery WHERE id = ? AND ended_at_us IS NULL').run(id);
      return;
    }
    const isGivenUp = outcome === 'given-up';
    prepared(
      database,
      `UPDATE alert_delivery SET attempts = attempts + 1, error = @error,
         due_at_us = coalesce(@nextAttemptAtUs, due_at_us), ended_at_us = @endedAtUs
       WHERE id = @id AND ended_at_us IS NULL`,
    ).run({
      id,
      error: options.error,
      nextAttemptAtUs: isGivenUp ? null : options.nextAttemptAtUs,
      endedAtUs: isGivenUp ? atUs : null,
    });
    if (!isGivenUp) return;
    prepared(database, 'DELETE FROM alert_delivery WHERE ended_at_us < ?').run(
      atUs - abandonedShownUs,
    );
  },
};

type Subject = Pick<AlertFinding, 'kind' | 'subject'>;

const keyOf = ({ kind, subject }: Subject) => `${kind} ${subject}`;

function activeAlert(database: Database, { kind, subject }: Subject): Alert | null {
  const row = prepared<[object], StoredAlert>(
    database,
    `SELECT ${alertColumns} FROM alert
     WHERE kind = @kind AND subject = @subject AND resolved_at_us IS NULL`,
  ).get({ kind, subject });
  return row === undefined ? null : alertIn(row);
}

/** Adds an alert, or updates the active one. */
function raise(
  database: Database,
  finding: AlertFinding,
  { channels, atUs }: { channels: readonly AlertChannel[]; atUs: number },
): Alert {
  const evidence = JSON.stringify(finding.evidence);
  const row = prepared<[object], StoredAlert>(
    database,
    `INSERT INTO alert (kind, subject, level, text, evidence, next_step, raised_at_us, channels)
     VALUES (@kind, @subject, @level, @text, @evidence, @nextStep, @atUs, @channels)
     ON CONFLICT (kind, subject) WHERE resolved_at_us IS NULL DO UPDATE SET
       level = excluded.level, text = excluded.text, evidence = excluded.evidence,
       next_step = excluded.next_step,
       channels = iif(excluded.level = 'critical' AND alert.level <> 'critical',
                      excluded.channels, alert.channels)
     RETURNING ${alertColumns}`,
  ).get({ ...finding, evidence, atUs, channels: JSON.stringify(channels) });
  if (row === undefined) throw new Error('The alert is missing in its own transaction.');
  return alertIn(row);
}

/** Never sets a time before the alert was raised, even when the clock was set back. */
function resolve(database: Database, alert: Alert, atUs: number): Alert {
  const resolvedAtUs = Math.max(alert.raisedAtUs, atUs);
  const sql = 'UPDATE alert SET resolved_at_us = @resolvedAtUs WHERE id = @id';
  prepared(database, sql).run({ id: alert.id, resolvedAtUs });
  return { ...alert, resolvedAtUs };
}

function queueDeliveries(
  database: Database,
  { id }: Pick<Alert, 'id'>,
  change: AlertDelivery['change'],
  { channels, atUs }: { channels: readonly AlertChannel[]; atUs: number },
): void {
  for (const channel of new Set(channels)) {
    prepared(
      database,
      `INSERT INTO alert_delivery (alert_id, change, channel, attempts, due_at_us)
       VALUES (@id, @change, @channel, 0, @atUs)`,
    ).run({ id, change, channel, atUs });
  }
}

/** Returns deliveries with the current state of their alerts. */
function deliveries(
  database: Database,
  which: string,
  values: object,
): (AlertDelivery & { isGivenUp: boolean })[] {
  return prepared<[object], StoredAlert & StoredDelivery>(
    database,
    `SELECT ${alertColumns}, delivery.id AS deliveryId, delivery.change, delivery.channel,
       delivery.attempts, delivery.due_at_us AS dueAtUs, delivery.error,
       delivery.ended_at_us IS NOT NULL AS isGivenUp
     FROM alert_delivery AS delivery JOIN alert ON alert.id = delivery.alert_id ${which}`,
  )
    .all(values)
    .map(({ deliveryId: id, change, channel, attempts, dueAtUs, error, isGivenUp, ...alert }) => ({
      ...{ id, alert: alertIn(alert), change, channel, attempts, dueAtUs, error },
      isGivenUp: isGivenUp === 1,
    }));
}

function alertIn({ evidence, ...row }: StoredAlert): Alert {
  return { ...row, evidence: JSON.parse(evidence) as string[] };
}
