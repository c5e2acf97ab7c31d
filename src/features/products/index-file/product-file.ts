/**
 * Files of the product index: `products-<generation>.db` in the data directory. The highest generation is current. A
 * file that is damaged, of another version or of another log is replaced by an empty one of the next generation, which
 * is then filled from the log. Only programs that index replace a file; a query that finds damage reports it to them
 * with an empty file, `products-<generation>.db-damaged`.
 */
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createOwnerOnly } from '../../../core/host/files.ts';
import { AppError } from '../../../core/terms/app-error.ts';
import {
  busyTimeoutMs,
  type Database,
  inodeOf,
  openSqlite,
  prepared,
} from '../../../store/engine/database.ts';
import { sqliteCode, storeError } from '../../../store/engine/sqlite-error.ts';
import { truncateLog } from '../../../store/engine/writer-connection.ts';

/** Increased with each change of the tables or of derived values. An index of another version is rebuilt. */
const productSchemaVersion = 2;

/** Three nodes of the box index fill a page; one would waste 40 % of a page of 4 KiB. */
export const pageBytes = 8_192;
/** Size of the write-ahead log that triggers a checkpoint. Large, because the same pages are written repeatedly. */
export const usualLogPages = 8_000;
/** Size of the write-ahead log above which a checkpoint runs while there is nothing to index. */
const idleLogBytesMax = 1_048_576;
/** Matches an index, the files that SQLite creates next to it, and the report of its damage. */
const filePattern = /^products-(\d{1,9})\.db(-wal|-shm|-damaged)?$/;

/** Returns the path of the current file; null if there is none. */
export function currentProductFile(dataDir: string): string | null {
  const [newest] = generations(dataDir);
  return newest === undefined ? null : fileOf(dataDir, newest);
}

/**
 * Opens the current file for indexing, or creates the first one with these tables, as SQL. Replaces a file of another
 * version.
 */
export function openProductFile(dataDir: string, tables: string): Database {
  const [generation = 1] = generations(dataDir);
  // A process that was killed may have left them. Removed first: their space may be needed.
  removeOlder(dataDir, generation);
  const database = openForIndexing(fileOf(dataDir, generation), tables);
  if (version(database) === productSchemaVersion) return database;
  database.close();
  return replaceProductFile(dataDir, database.name, tables);
}

/** Replaces a file with an empty one, or opens the one by which another program has replaced it. */
export function replaceProductFile(dataDir: string, replaced: string, tables: string): Database {
  const generation = Number(filePattern.exec(basename(replaced))?.[1]) + 1;
  const next = openForIndexing(fileOf(dataDir, generation), tables);
  removeOlder(dataDir, generation);
  return next;
}

/** Reports damage of a file to the programs that index. Queries then fail until the file is replaced. */
export function reportDamage(file: string): void {
  try {
    writeFileSync(damageReport(file), '', { mode: 0o600 });
  } catch {
    // The directory may be read-only for this program: another one finds the damage again.
  }
}

/** An open file. The inode distinguishes it from a later one of the same name. */
export interface OpenIndex {
  index: Database;
  inode: number;
}

/** Returns false when the current file was replaced. */
export function isCurrentFile(dataDir: string, { index, inode }: OpenIndex): boolean {
  return index.name === currentProductFile(dataDir) && inodeOf(index.name) === inode;
}

export function isReportedDamaged(file: string): boolean {
  return existsSync(damageReport(file));
}

function damageReport(file: string): string {
  return `${file}-damaged`;
}

export function damagedIndex(cause?: unknown): AppError {
  return new AppError('unavailable', 'The product index is damaged.', {
    advice:
      'Repeat the query: a running receiver rebuilds the index. With EARSHOT_INDEX=off, or without a receiver, run `earshot query products`.',
    cause,
  });
}

/** Error of a query whose file was replaced before its end. */
export function replacedIndex(cause?: unknown): AppError {
  return new AppError('unavailable', 'The product index was replaced during the query.', {
    advice: 'Repeat the query.',
    cause,
  });
}

/** Opens the current file for queries. Throws `unavailable` if there is none of this version, or if it is damaged. */
export function openProductsForReading(dataDir: string): Database {
  // The newest file has no tables yet while it is created.
  for (const generation of generations(dataDir)) {
    const file = fileOf(dataDir, generation);
    if (isReportedDamaged(file)) throw damagedIndex();
    const database = openSqlite(file, { readonly: true, timeout: busyTimeoutMs });
    try {
      // 8 MiB; a negative value is in KiB.
      database.pragma('cache_size = -8192');
      if (version(database) === productSchemaVersion) return database;
    } catch (error) {
      database.close();
      if (!isDamage(error)) throw error;
      reportDamage(file);
      throw damagedIndex(error);
    }
    database.close();
  }
  throw new AppError(
    'unavailable',
    'There is no product index yet. Start the receiver without EARSHOT_INDEX=off, or run `earshot query products`.',
  );
}

function openForIndexing(file: string, tables: string): Database {
  createOwnerOnly(file);
  const database = openSqlite(file, { timeout: busyTimeoutMs });
  try {
    // Small pages: most page writes add one entry to an index.
    if (version(database) === 0) database.pragma(`page_size = ${pageBytes}`);
    database.pragma('journal_mode = WAL');
    // The index can be rebuilt, and its cursor is in the same file: a power failure only costs time.
    database.pragma('synchronous = NORMAL');
    database.pragma(`wal_autocheckpoint = ${usualLogPages}`);
    database.pragma(`journal_size_limit = ${2 * usualLogPages * pageBytes}`);
    // 4 MiB; a negative value is in KiB. Random writes need more, but the system caches the file.
    database.pragma('cache_size = -4096');
    database.transaction(() => createTables(database, tables)).immediate();
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Empties a large write-ahead log; SQLite itself never shrinks the file. Does not wait for queries that read
 * from it; the next call retries.
 */
export function shrinkIdleLog(database: Database): void {
  const bytes = statSync(`${database.name}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (bytes > idleLogBytesMax) truncateLog(database);
}

/** Returns true when the file is damaged and must be replaced. */
export function isDamage(error: unknown): boolean {
  return ['SQLITE_CORRUPT', 'SQLITE_NOTADB'].includes(sqliteCode(error) ?? '');
}

function createTables(database: Database, tables: string): void {
  if (version(database) !== 0) return;
  database.exec(tables);
  database.pragma(`user_version = ${productSchemaVersion}`);
}

function version(database: Database): number {
  return Number(database.pragma('user_version', { simple: true }));
}

/** Returns the generations, newest first. A write-ahead log alone is not an index. */
function generations(dataDir: string): number[] {
  const indexes = productFiles(dataDir).filter(({ suffix }) => suffix === '');
  return indexes.map(({ generation }) => generation).toSorted((a, b) => b - a);
}

function productFiles(dataDir: string) {
  const exists = statSync(dataDir, { throwIfNoEntry: false }) !== undefined;
  const names = exists ? readdirSync(dataDir) : [];
  return names.flatMap((name) => {
    const [found, generation, suffix = ''] = filePattern.exec(name) ?? [];
    return found === undefined ? [] : [{ name, generation: Number(generation), suffix }];
  });
}

/** Removes older generations; another process that indexes may have created newer ones. */
function removeOlder(dataDir: string, current: number): void {
  for (const { name, generation } of productFiles(dataDir)) {
    if (generation < current) rmSync(join(dataDir, name), { force: true });
  }
}

function fileOf(dataDir: string, generation: number): string {
  return join(dataDir, `products-${generation}.db`);
}

/** The cursor of the index. */
interface Progress {
  position: number;
  /** Identifies the notification at that position; null if nothing has been indexed. */
  mark: string | null;
}

export function indexProgress(index: Database): Progress {
  const progress = prepared<[], Progress>(index, 'SELECT position, mark FROM progress').get();
  return progress ?? { position: 0, mark: null };
}

/** Returns false when the indexed log was replaced by another one, such as a restored backup. */
export function fitsLog({ log, index }: { log: Database; index: Database }): boolean {
  const { position, mark } = indexProgress(index);
  return mark === null || markAt(log, position) === mark;
}

/** Returns the last indexed position of this log; 0 if the index is of another log. */
export function indexedPosition(files: { log: Database; index: Database }): number {
  return fitsLog(files) ? indexProgress(files.index).position : 0;
}

/** Reads the log, and marks errors as errors of the log: they must not cause a replacement of the index. */
export function readLog<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw storeError(error);
  }
}

/**
 * Returns a mark that distinguishes the notification at a position from those of other logs; null if there is none.
 * The dedupe key is unsuitable: a late push changes that of the recovered row.
 */
export function markAt(log: Database, position: number): string | null {
  const sql = `SELECT received_at_us || ' ' || event || ' ' || product_id AS mark
    FROM notification WHERE position = ?`;
  return readLog(() => prepared<[number], Progress>(log, sql).get(position))?.mark ?? null;
}
