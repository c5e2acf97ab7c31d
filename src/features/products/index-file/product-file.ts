/**
 * Files of the product index: `products-<generation>.db` in the data directory. The highest generation is current. A
 * rebuild fills a separate file and then renames it to the next generation, so that queries and indexing switch
 * between complete files.
 */
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createOwnerOnly } from '../../../core/host/files.ts';
import { AppError } from '../../../core/terms/app-error.ts';
import {
  busyTimeoutMs,
  type Database,
  openSqlite,
  prepared,
} from '../../../store/engine/database.ts';
import { sqliteCode, storeError } from '../../../store/engine/sqlite-error.ts';
import { productIndexes, productSchemaVersion, productTables } from './product-schema.ts';

/** Three nodes of the box index fill a page; one would waste 40 % of a page of 4 KiB. */
export const pageBytes = 8_192;
/** Size of the write-ahead log that triggers a checkpoint. Large, because the same pages are written repeatedly. */
export const usualLogPages = 8_000;
/** Size of the write-ahead log above which a checkpoint runs while there is nothing to index. */
const idleLogBytesMax = 1_048_576;
const buildingName = 'products.building.db';
/** Matches an index, an unfinished index, and the files that SQLite creates next to them. */
const filePattern = /^products(?:-(\d{1,9})|\.building)\.db(-wal|-shm|-journal)?$/;

/** Returns the path of the current file; null if there is none. */
export function currentProductFile(dataDir: string): string | null {
  const generation = newestGeneration(dataDir);
  return generation === 0 ? null : fileOf(dataDir, generation);
}

/** Opens the current file for indexing, or creates the first one. Replaces an unusable file. */
export function openProductFile(dataDir: string): Database {
  const file = currentProductFile(dataDir) ?? fileOf(dataDir, 1);
  return openIfUsable(file) ?? replaceProductFile(dataDir);
}

/** Replaces the current file with an empty one: it is damaged, or of another version or log. */
export function replaceProductFile(dataDir: string): Database {
  const generation = newestGeneration(dataDir) + 1;
  const next = openForIndexing(fileOf(dataDir, generation));
  removeOlder(dataDir, generation);
  return next;
}

/**
 * Opens a new file for a rebuild, and removes the file of an interrupted rebuild. The file has only the index that
 * indexing itself uses, and no write-ahead log: nobody else reads it, and it is discarded after a failure.
 */
export function openBuildingFile(dataDir: string): Database {
  discardBuildingFile(dataDir);
  return openFile(join(dataDir, buildingName), (database) => {
    database.pragma('locking_mode = EXCLUSIVE');
    database.pragma('journal_mode = MEMORY');
    database.pragma('synchronous = OFF');
    database.pragma('cache_size = -16384');
    // For sorting: the system's folder of temporary files may be too small.
    database.pragma(`temp_store_directory = '${dataDir.replaceAll("'", "''")}'`);
    database.transaction(() => createTables(database)).immediate();
  });
}

/**
 * Creates the next missing index of a file; returns false if it has all. To sort all rows once takes a fifth of the
 * time of adding them to the indexes one by one.
 */
export function createNextIndex(database: Database): boolean {
  const isMissing = database
    .prepare('SELECT count(*) = 0 FROM sqlite_schema WHERE name = ?')
    .pluck();
  const next = Object.entries(productIndexes).find(([name]) => isMissing.get(name) === 1);
  if (next === undefined) return false;
  database.exec(`CREATE INDEX ${next[0]} ON ${next[1]}`);
  return true;
}

/** Makes the rebuilt file the current one. The file must be closed. */
export function installBuildingFile(dataDir: string): void {
  const generation = newestGeneration(dataDir) + 1;
  const file = openSync(join(dataDir, buildingName), 'r+');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(join(dataDir, buildingName), fileOf(dataDir, generation));
  discardBuildingFile(dataDir);
  removeOlder(dataDir, generation);
}

/** Discards an unfinished rebuild. */
export function discardBuildingFile(dataDir: string): void {
  removeFile(join(dataDir, buildingName));
}

/** Returns names of unused index files, left when a process was killed while it rebuilt or replaced the index. */
export function staleProductFiles(dataDir: string): string[] {
  const newest = newestGeneration(dataDir);
  return productFiles(dataDir).flatMap((one) => (one.generation === newest ? [] : [one.name]));
}

/** Removes unused index files. The caller holds the index lock, so that no rebuild is in progress. */
export function removeStaleProductFiles(dataDir: string): void {
  for (const name of staleProductFiles(dataDir)) rmSync(join(dataDir, name), { force: true });
}

/** Opens the current file for queries. Throws `unavailable` if there is none of this version. */
export function openProductsForReading(dataDir: string): Database {
  const file = currentProductFile(dataDir);
  if (file === null) throw notIndexed();
  const database = openSqlite(file, { readonly: true, timeout: busyTimeoutMs });
  // 8 MiB; a negative value is in KiB.
  database.pragma('cache_size = -8192');
  if (version(database) === productSchemaVersion) return database;
  database.close();
  throw notIndexed();
}

function notIndexed(): AppError {
  return new AppError(
    'unavailable',
    'There is no product index yet. Start the receiver without EARSHOT_INDEX=off, or run `earshot admin index rebuild`.',
  );
}

function openForIndexing(file: string): Database {
  return openFile(file, (database) => {
    database.pragma('journal_mode = WAL');
    // The index can be rebuilt, and its cursor is in the same file: a power failure only costs time.
    database.pragma('synchronous = NORMAL');
    database.pragma(`wal_autocheckpoint = ${usualLogPages}`);
    database.pragma(`journal_size_limit = ${2 * usualLogPages * pageBytes}`);
    // 8 MiB; a negative value is in KiB. Random writes need more, but the system caches the file.
    database.pragma('cache_size = -8192');
    const create = database.transaction(() => {
      createTables(database);
      while (version(database) === productSchemaVersion && createNextIndex(database));
    });
    create.immediate();
  });
}

function openFile(file: string, prepare: (database: Database) => void): Database {
  createOwnerOnly(file);
  const database = openSqlite(file, { timeout: busyTimeoutMs });
  try {
    // Small pages: most page writes add one entry to an index.
    if (version(database) === 0) database.pragma(`page_size = ${pageBytes}`);
    prepare(database);
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
  if (bytes <= idleLogBytesMax) return;
  database.pragma('busy_timeout = 0');
  try {
    database.pragma('wal_checkpoint(TRUNCATE)');
  } finally {
    database.pragma(`busy_timeout = ${busyTimeoutMs}`);
  }
}

/** Returns null for a file that is damaged or of another version. */
function openIfUsable(file: string): Database | null {
  try {
    const database = openForIndexing(file);
    if (version(database) === productSchemaVersion) return database;
    database.close();
    return null;
  } catch (error) {
    if (isDamage(error)) return null;
    throw error;
  }
}

/** Returns true when the file is damaged and must be replaced. */
export function isDamage(error: unknown): boolean {
  return ['SQLITE_CORRUPT', 'SQLITE_NOTADB'].includes(sqliteCode(error) ?? '');
}

function createTables(database: Database): void {
  if (version(database) !== 0) return;
  database.exec(productTables);
  database.pragma(`user_version = ${productSchemaVersion}`);
}

function version(database: Database): number {
  return Number(database.pragma('user_version', { simple: true }));
}

/** Returns 0 if there is no index. A write-ahead log alone is not an index. */
function newestGeneration(dataDir: string): number {
  const indexes = productFiles(dataDir).filter(({ suffix }) => suffix === '');
  return Math.max(0, ...indexes.map(({ generation }) => generation));
}

/** Lists the files of the index. An unfinished index has generation -1. */
function productFiles(dataDir: string) {
  const exists = statSync(dataDir, { throwIfNoEntry: false }) !== undefined;
  const names = exists ? readdirSync(dataDir) : [];
  return names.flatMap((name) => {
    const [found, generation = -1, suffix = ''] = filePattern.exec(name) ?? [];
    return found === undefined ? [] : [{ name, generation: Number(generation), suffix }];
  });
}

/** Removes older generations; another process that indexes may have created newer ones. */
function removeOlder(dataDir: string, current: number): void {
  for (const { generation } of productFiles(dataDir)) {
    if (generation > 0 && generation < current) removeFile(fileOf(dataDir, generation));
  }
}

function fileOf(dataDir: string, generation: number): string {
  return join(dataDir, `products-${generation}.db`);
}

function removeFile(file: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true });
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
