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

export const sharesCommits = true;

type Options<Name extends keyof Alerts> = Parameters<Alerts[Name]>[0];

/** A stored row: `evidence` is JSON, written only by this module. */
type StoredAlert = Omit<Alert, 'evidence'> & { evidence: string };

type StoredDelivery = Omit<AlertDelivery, 'id' | 'alert'> & {
  deliveryId: number;
  endedAtUs: number | null;
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
    const byChannel = options.channel === undefined ? '' : 'AND delivery.channel = @channel';
    return deliveries(
      database,
      `WHERE delivery.ended_at_us IS NULL ${byChannel} AND ${isDue} AND ${isNext}
       ORDER BY delivery.id LIMIT @limit`,
      options,
    ).map(({ delivery }) => delivery);
  },

  unsentDeliveries(database: Database, nowUs: number): (AlertDelivery & { isGivenUp: boolean })[] {
    return deliveries(
      database,
      `WHERE delivery.ended_at_us IS NULL OR delivery.ended_at_us >= @sinceUs ORDER BY delivery.id`,
      { sinceUs: nowUs - abandonedShownUs },
    ).map(({ delivery, endedAtUs }) => ({ ...delivery, isGivenUp: endedAtUs !== null }));
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
      const alert =
        before === null ? raise(database, finding, atUs) : update(database, before.id, finding);
      const isWorse = alert.level === 'critical' && before?.level !== 'critical';
      if (before !== null && !isWorse) continue;
      raised.push(alert);
      queueDeliveries(database, alert, 'raised', { channels, atUs });
    }
    for (const one of checked) {
      const before = found.has(keyOf(one)) ? null : activeAlert(database, one);
      if (before === null) continue;
      resolved.push(resolve(database, before.id, atUs));
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

function raise(database: Database, finding: AlertFinding, atUs: number): Alert {
  return written(
    database,
    `INSERT INTO alert (kind, subject, level, text, evidence, next_step, raised_at_us, channels)
     VALUES (@kind, @subject, @level, @text, @evidence, @nextStep, @atUs, '[]')`,
    { ...finding, evidence: JSON.stringify(finding.evidence), atUs },
  );
}

function update(database: Database, id: number, finding: AlertFinding): Alert {
  return written(
    database,
    `UPDATE alert SET level = @level, text = @text, evidence = @evidence,
       next_step = @nextStep WHERE id = @id`,
    { ...finding, evidence: JSON.stringify(finding.evidence), id },
  );
}

/** Never sets a time before the alert was raised, even when the clock was set back. */
function resolve(database: Database, id: number, atUs: number): Alert {
  const sql = 'UPDATE alert SET resolved_at_us = max(raised_at_us, @atUs) WHERE id = @id';
  return written(database, sql, { id, atUs });
}

function written(database: Database, sql: string, values: object): Alert {
  const statement = prepared<[object], StoredAlert>(database, `${sql} RETURNING ${alertColumns}`);
  const row = statement.get(values);
  if (row === undefined) throw new Error('The alert is missing in its own transaction.');
  return alertIn(row);
}

/**
 * Queues a change for each given channel and for those of earlier changes of the alert: a command that resolves an
 * alert may run without the receiver's settings.
 */
function queueDeliveries(
  database: Database,
  { id }: Pick<Alert, 'id'>,
  change: AlertDelivery['change'],
  { channels, atUs }: { channels: readonly AlertChannel[]; atUs: number },
): void {
  const kept =
    prepared<[object], string>(
      database,
      `UPDATE alert SET channels = (SELECT json_group_array(value) FROM
         (SELECT value FROM json_each(channels) UNION SELECT value FROM json_each(@channels)))
       WHERE id = @id RETURNING channels`,
    )
      .pluck()
      .get({ id, channels: JSON.stringify(channels) }) ?? '[]';
  for (const channel of new Set<AlertChannel>([...channels, ...JSON.parse(kept)])) {
    prepared(
      database,
      `INSERT INTO alert_delivery (alert_id, change, channel, attempts, due_at_us)
       VALUES (@id, @change, @channel, 0, @atUs)`,
    ).run({ id, change, channel, atUs });
  }
}

/** Returns deliveries with the current state of their alerts. */
function deliveries(database: Database, which: string, values: object) {
  return prepared<[object], StoredAlert & StoredDelivery>(
    database,
    `SELECT ${alertColumns}, delivery.id AS deliveryId, delivery.change, delivery.channel,
       delivery.attempts, delivery.due_at_us AS dueAtUs, delivery.error,
       delivery.ended_at_us AS endedAtUs
     FROM alert_delivery AS delivery JOIN alert ON alert.id = delivery.alert_id ${which}`,
  )
    .all(values)
    .map(({ deliveryId: id, change, channel, attempts, dueAtUs, error, endedAtUs, ...alert }) => {
      const rest = { change, channel, attempts, dueAtUs, error };
      return { delivery: { id, alert: alertIn(alert), ...rest }, endedAtUs };
    });
}

function alertIn({ evidence, ...row }: StoredAlert): Alert {
  return { ...row, evidence: JSON.parse(evidence) as string[] };
}
