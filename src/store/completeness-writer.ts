/** Writes what it takes to know that nothing is missing. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import type { ReconcileRun, Uptime } from '../domain/coverage.ts';
import { type ChangeWriter, createChangeWriter } from './change-writer.ts';
import type { CompletenessChange } from './completeness-messages.ts';
import { prepareRecover } from './recover-writer.ts';

type Options<Kind extends CompletenessChange['kind']> = Extract<
  CompletenessChange,
  { kind: Kind }
>['options'];

const hoursMax = 1_000;

export type CompletenessWriter = ChangeWriter<CompletenessChange>;

export function createCompletenessWriter(database: Database): CompletenessWriter {
  return createChangeWriter<CompletenessChange>({
    recover: prepareRecover(database),
    'save-coverage': prepareSaveCoverage(database),
    'mark-up': prepareMarkUp(database),
    'begin-run': prepareBeginRun(database),
    'end-run': prepareEndRun(database),
  });
}

function prepareSaveCoverage(database: Database) {
  const save = database.prepare(
    `INSERT INTO coverage (subscription, event, hour_us, expected, pushed, late, recovered, missing,
       compared_at_us)
     VALUES (@subscription, @event, @hourUs, @expected, @pushed, @late, @recovered, @missing,
       @comparedAtUs)
     ON CONFLICT (subscription, event, hour_us) DO UPDATE SET
       expected = excluded.expected, pushed = excluded.pushed, late = excluded.late,
       recovered = excluded.recovered, missing = excluded.missing,
       compared_at_us = excluded.compared_at_us`,
  );
  return (hours: Options<'save-coverage'>): void => {
    if (hours.length > hoursMax) {
      throw new AppError(
        'invalid',
        `The coverage of at most ${hoursMax} hours can be saved at once.`,
      );
    }
    for (const hour of hours) save.run(hour);
  };
}

function prepareMarkUp(database: Database) {
  // A clock that was set back takes nothing away.
  const mark = database.prepare(
    `INSERT INTO uptime VALUES (@fromUs, max(@fromUs, @toUs))
     ON CONFLICT (from_us) DO UPDATE SET to_us = max(to_us, excluded.to_us)`,
  );
  return (uptime: Uptime): void => {
    mark.run(uptime);
  };
}

function prepareBeginRun(database: Database) {
  const insert = database.prepare(
    `INSERT INTO reconcile_run (request, started_at_us) VALUES (?, ?)
     ON CONFLICT (request) WHERE ended_at_us IS NULL DO NOTHING`,
  );
  const open = database.prepare<[string], ReconcileRun>(
    `SELECT id, request, started_at_us AS startedAtUs
     FROM reconcile_run WHERE request = ? AND ended_at_us IS NULL`,
  );
  return ({ request, atUs }: Options<'begin-run'>) => {
    insert.run(request, atUs);
    return open.get(request);
  };
}

function prepareEndRun(database: Database) {
  const end = database.prepare(
    `UPDATE reconcile_run SET ended_at_us = max(started_at_us, ?)
     WHERE id = ? AND ended_at_us IS NULL`,
  );
  return ({ id, atUs }: Options<'end-run'>): void => {
    end.run(atUs, id);
  };
}
