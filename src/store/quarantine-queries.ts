/** The quarantine's questions as SQL, for one reading connection. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import type { Fault } from '../domain/notification.ts';
import type { QuarantineEntry, QuarantineRow } from '../domain/ports.ts';
import { bodyReader } from './bodies/body-reader.ts';

const columns = `id, received_at_us AS receivedAtUs, subscription, faults, body_id AS bodyId,
  released_at_us AS releasedAtUs`;

type StoredRow = Omit<QuarantineRow, 'reason' | 'faults' | 'bodyBytes'> & {
  faults: string;
  bodyId: number;
};

/** One page, newest first, of the entries below an id. */
export function quarantinePage(
  database: Database,
  options: { released: boolean; beforeId: number; rowsMax: number },
): QuarantineRow[] {
  return database
    .prepare<[number, number], StoredRow>(
      `SELECT ${columns} FROM quarantine
       WHERE id < ? ${options.released ? '' : 'AND released_at_us IS NULL'}
       ORDER BY id DESC LIMIT ?`,
    )
    .all(options.beforeId, options.rowsMax)
    .map((row) => toRow(row, bodyReader(database).keptBody(row.bodyId).length));
}

export function heldCount(database: Database): number {
  const held = 'SELECT count(*) FROM quarantine WHERE released_at_us IS NULL';
  return Number(database.prepare(held).pluck().get());
}

export function quarantineEntry(database: Database, id: number): QuarantineEntry {
  const row = database
    .prepare<[number], StoredRow & { headers: string }>(
      `SELECT ${columns}, headers FROM quarantine WHERE id = ?`,
    )
    .get(id);
  if (row === undefined) {
    throw new AppError(
      'not_found',
      `There is no quarantine entry ${id}. \`earshot quarantine list\` shows those that are held.`,
    );
  }
  const { headers, ...rest } = row;
  const reader = bodyReader(database);
  const body = reader.keptBody(row.bodyId);
  const encoding = reader.encoding(row.bodyId);
  // Written by our own writer, as pairs of name and value.
  const pairs = JSON.parse(headers) as [string, string][];
  return { ...toRow(rest, body.length), headers: pairs.flat(), body, encoding };
}

function toRow({ bodyId: _, ...row }: StoredRow, bodyBytes: number): QuarantineRow {
  // Written by our own writer, from the same type.
  const faults = JSON.parse(row.faults) as Fault[];
  return { ...row, faults, bodyBytes, reason: faults[0]?.code ?? 'unknown' };
}
