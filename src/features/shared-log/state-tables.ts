/** The tables of the store that changes write: all of a node's state, except notifications. Read and written in parts. */
import { createBodyReader, createBodyWriter } from '../../store/bodies/bodies.ts';
import { type Database, prepared } from '../../store/engine/database.ts';
import { partBytesMax } from './entry.ts';

/** Tables of each node: notifications, which entries contain, and its own work. */
export const ownTables: ReadonlySet<string> = new Set([
  'notification',
  'body',
  'body_encoding',
  'backup_run',
  'compaction',
  'copied_change',
  'shared_copy',
  'shared_log',
  'shared_result',
  'sqlite_sequence',
  'write_check',
]);

const rowsMax = 2_000;

/** Rows of a table, in the order of its columns. */
export interface TablePart {
  table: string;
  columns: string[];
  rows: unknown[][];
  /** Bodies of quarantine entries by their row, with their Content-Encoding. */
  bodies: { bytes: Uint8Array; encoding: string | null }[];
  /** True for the first part: the rows that the table has are removed. */
  isFirst: boolean;
}

/** Returns the names of all state tables. */
export function stateTablesOf(database: Database): string[] {
  return database
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .pluck()
    .all()
    .filter((name) => !ownTables.has(name));
}

/** Returns the parts of all state tables. The caller's transaction keeps them consistent. */
export function* readStateTables(database: Database): Generator<TablePart> {
  for (const table of stateTablesOf(database)) yield* readTable(database, table);
  yield {
    table: 'sqlite_sequence',
    columns: ['name', 'seq'],
    rows: prepared<[], [string, number]>(
      database,
      "SELECT name, seq FROM sqlite_sequence WHERE name <> 'notification'",
    )
      .raw()
      .all(),
    ...{ bodies: [], isFirst: true },
  };
}

function* readTable(database: Database, table: string): Generator<TablePart> {
  const columns = (database.pragma(`table_info(${table})`) as { name: string }[]).map(
    ({ name }) => name,
  );
  const select = database
    .prepare<[], unknown[]>(`SELECT ${columns.join(', ')} FROM ${table}`)
    .raw();
  const reader = createBodyReader(database, 'transaction');
  const bodyColumn = table === 'quarantine' ? columns.indexOf('body_id') : -1;
  let part: TablePart = { table, columns, rows: [], bodies: [], isFirst: true };
  let bytes = 0;
  for (const row of select.iterate()) {
    part.rows.push(row);
    bytes += row.reduce<number>((sum, value) => sum + sizeOf(value), 0);
    if (bodyColumn !== -1) {
      const id = Number(row[bodyColumn]);
      const body = { bytes: reader.storedBody(id), encoding: reader.encoding(id) };
      part.bodies.push(body);
      bytes += body.bytes.length;
    }
    if (part.rows.length < rowsMax && bytes < partBytesMax) continue;
    yield part;
    part = { table, columns, rows: [], bodies: [], isFirst: false };
    bytes = 0;
  }
  if (part.isFirst || part.rows.length > 0) yield part;
}

function sizeOf(value: unknown): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 8;
}

/** Writes one part. */
export function writeStateTable(
  database: Database,
  { table, columns, rows, bodies, isFirst }: TablePart,
): void {
  // The names are part of SQL.
  if (![table, ...columns].every((name) => /^[a-z_]+$/.test(name))) {
    throw new Error('A checkpoint contains an invalid name.');
  }
  if (isFirst) {
    const others = table === 'sqlite_sequence' ? "WHERE name <> 'notification'" : '';
    database.prepare(`DELETE FROM ${table} ${others}`).run();
  }
  const insert = database.prepare(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
  );
  const writer = createBodyWriter(database);
  const bodyColumn = columns.indexOf('body_id');
  for (const [i, row] of rows.entries()) {
    const body = bodies[i];
    if (body !== undefined) row[bodyColumn] = writer.add(deliveryOf(body));
    insert.run(...row);
  }
  writer.end();
}

function deliveryOf({ bytes, encoding }: TablePart['bodies'][number]) {
  return {
    body: bytes,
    encoded: encoding === null ? undefined : { encoding, content: bytes },
  };
}
