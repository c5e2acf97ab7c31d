/** Rows of tables as they are copied: of the whole state of a node in a checkpoint, of notifications in a copy of a log. */
import { createBodyReader, createBodyWriter } from '../../store/bodies/bodies.ts';
import { type Database, prepared } from '../../store/engine/database.ts';

/** Tables of each node: notifications, which entries contain, and its own work. */
export const ownTables: ReadonlySet<string> = new Set([
  'notification',
  'body',
  'backup_run',
  'compaction',
  'shared_log',
  'shared_result',
  'sqlite_sequence',
  'write_check',
]);

/** Limits of a part: rows, and the bytes after which it ends. */
const rowsMax = 2_000;
const partBytesMax = 4 * 2 ** 20;

export type Row = Record<string, unknown>;

export interface TablePart {
  table: string;
  rows: Row[];
  /** Bodies that the rows refer to. */
  bodies: { id: number; bytes: Uint8Array }[];
}

/** Returns the names of all state tables. */
function stateTablesOf(database: Database): string[] {
  return database
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .pluck()
    .all()
    .filter((name) => !ownTables.has(name));
}

/** Returns the parts of all state tables. The caller's transaction keeps them consistent. */
export function* readStateTables(database: Database): Generator<TablePart> {
  // First: new rows raise a sequence, and would add a missing one.
  const sequences = "SELECT name, seq FROM sqlite_sequence WHERE name <> 'notification'";
  const rows = prepared<[], Row>(database, sequences).all();
  yield { table: 'sqlite_sequence', rows, bodies: [] };
  for (const table of stateTablesOf(database)) {
    yield* partsOf(
      database,
      table,
      prepared<[], Row>(database, `SELECT * FROM ${table}`).iterate(),
    );
  }
}

/** Splits rows of a table into parts, with the bodies that they refer to. */
export function* partsOf(
  database: Database,
  table: string,
  rows: Iterable<Row>,
): Generator<TablePart> {
  const reader = createBodyReader(database, 'transaction');
  let part: TablePart = { table, rows: [], bodies: [] };
  let bytes = 0;
  for (const row of rows) {
    part.rows.push(row);
    bytes += Object.values(row).reduce<number>((sum, value) => sum + sizeOf(value), 0);
    const id = Number(row.body_id);
    if (row.body_id !== undefined && part.bodies.every((body) => body.id !== id)) {
      const body = { id, bytes: reader.storedBody(id) };
      part.bodies.push(body);
      bytes += body.bytes.length;
    }
    if (part.rows.length < rowsMax && bytes < partBytesMax) continue;
    yield part;
    part = { table, rows: [], bodies: [] };
    bytes = 0;
  }
  if (part.rows.length > 0) yield part;
}

function sizeOf(value: unknown): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 8;
}

/** Removes the rows of all state tables, before those of a checkpoint are written. */
export function clearStateTables(database: Database): void {
  for (const table of stateTablesOf(database)) database.exec(`DELETE FROM ${table}`);
  database.exec("DELETE FROM sqlite_sequence WHERE name <> 'notification'");
}

/** Writes the rows of a part. A row of a known notification keeps its body, which never changes. */
export function writePart(database: Database, { table, rows, bodies }: TablePart): void {
  const writer = createBodyWriter(database);
  const ids = new Map(bodies.map(({ id, bytes }) => [id, writer.add(bytes)]));
  writer.end();
  for (const row of rows) {
    const names = Object.keys(row);
    // The names are part of SQL.
    if (![table, ...names].every((name) => /^[a-z_]+$/.test(name))) {
      throw new Error('A copied row contains an invalid name.');
    }
    const changes = names
      .filter((name) => name !== 'body_id' && name !== 'position')
      .map((name) => `${name} = excluded.${name}`);
    const update = `ON CONFLICT (position) DO UPDATE SET ${changes.join(', ')}`;
    prepared<[object]>(
      database,
      `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map((name) => `@${name}`).join(', ')})
       ${table === 'notification' ? update : ''}`,
    ).run('body_id' in row ? { ...row, body_id: ids.get(Number(row.body_id)) ?? 0 } : row);
  }
}
