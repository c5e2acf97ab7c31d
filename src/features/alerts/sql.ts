/** Table of alerts, with the state that each notification channel has accepted. */

import type { Alert, AlertFinding } from '../../core/terms/evaluation.ts';
import { type Database, prepared } from '../../store/engine/database.ts';
import type { AlertQuery, AlertReader, Alerts, ListedAlert } from './terms.ts';

export const schema = `
  -- Ids are never reused, so that a delayed answer cannot match another row.
  -- \`evidence\` and \`channels\` are JSON arrays.
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
  CREATE INDEX IF NOT EXISTS alert_resolved ON alert (resolved_at_us) WHERE resolved_at_us IS NOT NULL;
`;

type Options<Name extends keyof Alerts> = Parameters<Alerts[Name]>[0];

/** A stored row, with JSON that only this module writes. */
type StoredAlert = Omit<ListedAlert, 'evidence' | 'channels'> & {
  evidence: string;
  channels: string;
};

const alertColumns = `id, kind, subject, level, text, evidence, next_step AS nextStep, raised_at_us AS raisedAtUs,
  resolved_at_us AS resolvedAtUs, channels`;

const endless = Number.MAX_SAFE_INTEGER;

export const reads = {
  /** Returns alerts by id, newest first: times are not in order after the clock was set back. */
  alerts(
    database: Database,
    { all, resolved = false, limit, ...bounds }: AlertQuery,
  ): ListedAlert[] {
    const source = all
      ? 'alert WHERE true'
      : 'alert INDEXED BY alert_lasting WHERE resolved_at_us IS NULL';
    const { beforeId = endless, sinceUs = -endless, untilUs = endless } = bounds;
    return prepared<[object], StoredAlert>(
      database,
      `SELECT ${alertColumns} FROM ${source}
         AND id < @beforeId AND raised_at_us < @untilUs
         AND (resolved_at_us IS NULL OR resolved_at_us >= @sinceUs)
         ${resolved ? 'AND resolved_at_us IS NOT NULL' : ''}
       ORDER BY id DESC LIMIT @limit`,
    )
      .all({ beforeId, sinceUs, untilUs, limit })
      .map(alertIn);
  },

  unsent(database: Database, query: Parameters<AlertReader['unsent']>[0]): ListedAlert[] {
    const isUnsent = `EXISTS (SELECT 1 FROM json_each(channels) AS one
      WHERE one.value ->> 'channel' = @channel AND (one.value ->> 'sent' IS NULL
        OR (resolved_at_us IS NULL AND level = 'critical' AND one.value ->> 'sent' = 'warning')
        OR (resolved_at_us IS NOT NULL AND one.value ->> 'sent' <> 'resolved')))`;
    return prepared<[object], StoredAlert>(
      database,
      `SELECT ${alertColumns} FROM alert
       WHERE id IN (SELECT id FROM alert WHERE resolved_at_us IS NULL
           UNION ALL SELECT id FROM alert WHERE resolved_at_us >= @resolvedSinceUs)
         AND ${isUnsent} ORDER BY id LIMIT @limit`,
    )
      .all(query)
      .map(alertIn);
  },
};

export const writes = {
  /** Raises, updates and resolves only the alerts whose keys are in `checked` or `findings`. */
  settleFindings(
    database: Database,
    options: Options<'settleFindings'>,
  ): { raised: Alert[]; resolved: Alert[] } {
    const { checked, findings, atUs } = options;
    const found = new Map(findings.map((finding) => [keyOf(finding), finding]));
    const raised: Alert[] = [];
    const resolved: Alert[] = [];
    for (const finding of found.values()) {
      const before = activeAlert(database, finding);
      const alert = raise(database, finding, before, options);
      const isWorse = alert.level === 'critical' && before?.level !== 'critical';
      if (before === null || isWorse) raised.push(alert);
    }
    for (const one of checked) {
      const before = found.has(keyOf(one)) ? null : activeAlert(database, one);
      if (before !== null) resolved.push(resolve(database, before, atUs));
    }
    return { raised, resolved };
  },

  recordAttempt(database: Database, options: Options<'recordAttempt'>): void {
    const { id, channel } = options;
    const channels = prepared<[number], string>(database, 'SELECT channels FROM alert WHERE id = ?')
      .pluck()
      .get(id);
    if (channels === undefined) return;
    const changed = (JSON.parse(channels) as ListedAlert['channels']).map((one) => {
      if (one.channel !== channel) return one;
      return 'sent' in options
        ? { ...one, sent: options.sent, error: null }
        : { ...one, error: options.error };
    });
    const text = JSON.stringify(changed);
    prepared(database, 'UPDATE alert SET channels = ? WHERE id = ?').run(text, id);
  },
};

type Subject = Pick<AlertFinding, 'kind' | 'subject'>;

const keyOf = ({ kind, subject }: Subject) => `${kind} ${subject}`;

function activeAlert(database: Database, { kind, subject }: Subject): ListedAlert | null {
  const row = prepared<[object], StoredAlert>(
    database,
    `SELECT ${alertColumns} FROM alert
     WHERE kind = @kind AND subject = @subject AND resolved_at_us IS NULL`,
  ).get({ kind, subject });
  return row === undefined ? null : alertIn(row);
}

/**
 * Adds an alert, or updates the active one. Channels that were added since then get it, too. One that becomes critical
 * again is sent again.
 */
function raise(
  database: Database,
  finding: AlertFinding,
  before: ListedAlert | null,
  { channels, atUs }: Options<'settleFindings'>,
): Alert {
  const isAgain = before?.level === 'warning' && finding.level === 'critical';
  const known = (before?.channels ?? []).map((one) =>
    isAgain && one.sent === 'critical'
      ? { ...one, sent: 'warning' as const, repeats: (one.repeats ?? 0) + 1 }
      : one,
  );
  const added = [...new Set(channels)].filter(
    (one) => !known.some(({ channel }) => channel === one),
  );
  const all = [...known, ...added.map((channel) => ({ channel, sent: null, error: null }))];
  const row = prepared<[object], StoredAlert>(
    database,
    `INSERT INTO alert (kind, subject, level, text, evidence, next_step, raised_at_us, channels)
     VALUES (@kind, @subject, @level, @text, @evidence, @nextStep, @atUs, @channels)
     ON CONFLICT (kind, subject) WHERE resolved_at_us IS NULL DO UPDATE SET
       level = excluded.level, text = excluded.text, evidence = excluded.evidence,
       next_step = excluded.next_step, channels = excluded.channels
     RETURNING ${alertColumns}`,
  ).get({
    ...finding,
    evidence: JSON.stringify(finding.evidence),
    atUs,
    channels: JSON.stringify(all),
  });
  if (row === undefined) throw new Error('The alert is missing in its own transaction.');
  return withoutChannels(alertIn(row));
}

/** Never sets a time before the alert was raised, even when the clock was set back. */
function resolve(database: Database, alert: ListedAlert, atUs: number): Alert {
  const resolvedAtUs = Math.max(alert.raisedAtUs, atUs);
  const sql = 'UPDATE alert SET resolved_at_us = @resolvedAtUs WHERE id = @id';
  prepared(database, sql).run({ id: alert.id, resolvedAtUs });
  return { ...withoutChannels(alert), resolvedAtUs };
}

const withoutChannels = ({ channels: _, ...alert }: ListedAlert): Alert => alert;

function alertIn({ evidence, channels, ...row }: StoredAlert): ListedAlert {
  return {
    ...row,
    evidence: JSON.parse(evidence) as ListedAlert['evidence'],
    channels: JSON.parse(channels) as ListedAlert['channels'],
  };
}
