/** The quarantine's questions as SQL, for one reading connection. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import type { QuarantineEntry, QuarantineRow } from '../domain/ports.ts';
import type { Fault } from '../domain/read-notifications.ts';

const columns = `quarantine.id, received_at_us AS receivedAtUs, subscription, faults,
  length(bytes) AS bodyBytes, released_at_us AS releasedAtUs`;

type StoredRow = Omit<QuarantineRow, 'reason' | 'faults'> & { faults: string };

/** One page, newest first, of the entries below an id. */
export function quarantinePage(
  database: Database,
  options: { released: boolean; beforeId: number; rowsMax: number },
): QuarantineRow[] {
  return database
    .prepare<[number, number], StoredRow>(
      `SELECT ${columns} FROM quarantine JOIN body ON body.id = body_id
       WHERE quarantine.id < ? ${options.released ? '' : 'AND released_at_us IS NULL'}
       ORDER BY quarantine.id DESC LIMIT ?`,
    )
    .all(options.beforeId, options.rowsMax)
    .map(withFaults);
}

export function quarantineEntry(database: Database, id: number): QuarantineEntry {
  const row = database
    .prepare<[number], StoredRow & { headers: string; body: Uint8Array }>(
      `SELECT ${columns}, headers, bytes AS body
       FROM quarantine JOIN body ON body.id = body_id WHERE quarantine.id = ?`,
    )
    .get(id);
  if (row === undefined) {
    throw new AppError(
      'not_found',
      `There is no quarantine entry ${id}. \`earshot quarantine list\` shows those that are held.`,
    );
  }
  // Written by our own writer, as pairs of name and value.
  const pairs = JSON.parse(row.headers) as [string, string][];
  return { ...withFaults(row), headers: pairs.flat(), body: row.body };
}

function withFaults<Row extends StoredRow>(row: Row) {
  // Written by our own writer, from the same type.
  const faults = JSON.parse(row.faults) as Fault[];
  return { ...row, faults, reason: faults[0]?.code ?? 'unknown' };
}
