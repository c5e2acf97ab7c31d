/** Counts the rows of every table of a database, and makes a digest of each: what two copies are compared by. */
import { createHash, type Hash } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import type { BackupJob } from './backup-job.ts';

export interface TableDigest {
  name: string;
  rows: number;
  /** SHA-256 of all values, row by row in the order of the table's key. */
  digest: string;
}

/** Longer ones are hashed where they lie. */
const shortBytesMax = 64;
const textLengthMax = 64 * 2 ** 10;
/** Looking at a clock for each would cost as much as the row. */
const rowsPerTurn = 64;

/** All tables, by name; SQLite's own, such as the one of positions given so far, among them. */
export function tableNames(database: Database): string[] {
  return database
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .pluck()
    .all();
}

export async function digestTables(
  database: Database,
  names: readonly string[],
  job: BackupJob,
): Promise<TableDigest[]> {
  job.progress = { phase: 'comparing', done: 0, total: null };
  const digests: TableDigest[] = [];
  for (const name of names) digests.push(await digestTable(database, name, job));
  return digests;
}

async function digestTable(database: Database, name: string, job: BackupJob): Promise<TableDigest> {
  // Without an index, a table is read in the order of its key.
  const read = database.prepare<[], unknown[]>(`SELECT * FROM "${name}" NOT INDEXED`).raw();
  const hash = createHash('sha256');
  let text = '';
  let rows = 0;
  for (const row of read.iterate()) {
    rows += 1;
    job.progress.done += 1;
    for (const value of row) text = addValue(hash, text, value);
    if (text.length > textLengthMax) {
      hash.update(text);
      text = '';
    }
    if (rows % rowsPerTurn === 0) await job.turn();
  }
  return { name, rows, digest: hash.update(text).digest('hex') };
}

/** Each value has its kind and length in front, so that no two rows make the same text. */
function addValue(hash: Hash, text: string, value: unknown): string {
  if (typeof value === 'string') return `${text}s${value.length}:${value}`;
  if (!Buffer.isBuffer(value)) return `${text}${value};`;
  const begun = `${text}b${value.length}:`;
  if (value.length <= shortBytesMax) return begun + value.toString('latin1');
  hash.update(begun).update(value);
  return '';
}
