/** Writes which alerts are raised, go on, and are resolved. */
import type { Database } from 'better-sqlite3';
import type { Alert, AlertFinding } from '../domain/alerts.ts';
import { prepareTell } from './alert-delivery-writer.ts';
import type { SettleFindingsOptions } from './alert-messages.ts';
import { alertColumns, alertIn, type StoredAlert } from './alert-rows.ts';

/** Looks at what was judged alone, each by its key. */
export function prepareSettleFindings(database: Database) {
  const { lasting, raise, reword, resolve } = prepareAlerts(database);
  const tell = prepareTell(database);
  return ({ judged, findings, channels, atUs }: SettleFindingsOptions) => {
    const told = new Set(channels);
    const found = new Map(findings.map((finding) => [keyOf(finding), finding]));
    const raised: Alert[] = [];
    const resolved: Alert[] = [];
    for (const finding of found.values()) {
      const before = lasting(finding);
      const alert = before === null ? raise(finding, atUs) : reword(before.id, finding);
      if (before !== null && !isWorse(alert, before)) continue;
      raised.push(alert);
      tell(alert, 'raised', told, atUs);
    }
    for (const one of judged) {
      const before = found.has(keyOf(one)) ? null : lasting(one);
      if (before === null) continue;
      resolved.push(resolve(before.id, atUs));
      tell(before, 'resolved', told, atUs);
    }
    return { raised, resolved };
  };
}

type Subject = Pick<AlertFinding, 'kind' | 'subject'>;

const keyOf = ({ kind, subject }: Subject) => `${kind} ${subject}`;

const isWorse = (now: Alert, before: Alert) =>
  now.severity === 'critical' && before.severity !== 'critical';

function prepareAlerts(database: Database) {
  const prepare = (sql: string) => {
    const statement = database.prepare<[object], StoredAlert>(sql);
    return (values: object): Alert | null => {
      const row = statement.get(values);
      return row === undefined ? null : alertIn(row);
    };
  };
  const find = prepare(
    `SELECT ${alertColumns} FROM alert
     WHERE kind = @kind AND subject = @subject AND resolved_at_us IS NULL`,
  );
  const insert = prepare(
    `INSERT INTO alert (kind, subject, severity, cause, evidence, next_step, raised_at_us)
     VALUES (@kind, @subject, @severity, @cause, @evidence, @nextStep, @atUs)
     RETURNING ${alertColumns}`,
  );
  const update = prepare(
    `UPDATE alert SET severity = @severity, cause = @cause, evidence = @evidence,
       next_step = @nextStep WHERE id = @id RETURNING ${alertColumns}`,
  );
  // It may have been raised by a clock that was ahead.
  const end = prepare(
    `UPDATE alert SET resolved_at_us = max(raised_at_us, @atUs) WHERE id = @id
     RETURNING ${alertColumns}`,
  );
  const stored = (finding: AlertFinding) => ({
    ...finding,
    evidence: JSON.stringify(finding.evidence),
  });
  return {
    lasting: ({ kind, subject }: Subject) => find({ kind, subject }),
    raise: (finding: AlertFinding, atUs: number) => written(insert({ ...stored(finding), atUs })),
    reword: (id: number, finding: AlertFinding) => written(update({ ...stored(finding), id })),
    resolve: (id: number, atUs: number) => written(end({ id, atUs })),
  };
}

function written(alert: Alert | null): Alert {
  if (alert === null) throw new Error('An alert vanished within its transaction.');
  return alert;
}
