/**
 * The index's files: `products-<generation>.db` in the data directory. The highest generation is the current one. A
 * rebuild fills another file and then gives that the next number, so that queries and indexing change from one complete
 * file to the next.
 */
import { readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { AppError } from '../../domain/app-error.ts';
import { createOwnerOnly } from '../../host/files.ts';
import { busyTimeoutMs, prepared } from '../engine/database.ts';
import { sqliteCode, storeError } from '../engine/sqlite-error.ts';
import { productSchema, productSchemaVersion } from './product-schema.ts';

export const pageBytes = 4_096;
/** Size of the write-ahead log at which it is moved into the file: large, as the same pages are written again and again. */
export const usualLogPages = 16_000;
/** Size of the write-ahead log above which it is moved into the file while there is nothing to index. */
const idleLogBytesMax = 1_048_576;
const buildingName = 'products.building.db';
/** An index, or an unfinished one, and the files that SQLite creates next to it. */
const filePattern = /^products(?:-(\d{1,9})|\.building)\.db(-wal|-shm|-journal)?$/;

/** Path of the current file; null when there is none. */
export function currentProductFile(dataDir: string): string | null {
  const generation = newestGeneration(dataDir);
  return generation === 0 ? null : fileOf(dataDir, generation);
}

/** Opens the current file for indexing, or creates the first one. Replaces one that is unusable. */
export function openProductFile(dataDir: string): Database {
  const file = currentProductFile(dataDir) ?? fileOf(dataDir, 1);
  return openIfOurs(file) ?? replaceProductFile(dataDir);
}

/** Makes an empty file the current one: the old one is of another program or log, or damaged. */
export function replaceProductFile(dataDir: string): Database {
  const generation = newestGeneration(dataDir) + 1;
  const next = openForIndexing(fileOf(dataDir, generation));
  removeOlder(dataDir, generation);
  return next;
}

/** Opens a new file to be filled by a rebuild, and removes what an interrupted one has left. */
export function openBuildingFile(dataDir: string): Database {
  discardBuildingFile(dataDir);
  return openForIndexing(join(dataDir, buildingName));
}

/** Makes the rebuilt file the current one. It must be closed. */
export function installBuildingFile(dataDir: string): void {
  const generation = newestGeneration(dataDir) + 1;
  // Closing has moved everything into the file itself: its write-ahead log may be removed.
  renameSync(join(dataDir, buildingName), fileOf(dataDir, generation));
  discardBuildingFile(dataDir);
  removeOlder(dataDir, generation);
}

/** Drops an unfinished rebuild. */
export function discardBuildingFile(dataDir: string): void {
  removeFile(join(dataDir, buildingName));
}

/** Names of files that belong to no index in use: left by a rebuild, or a change of the index, that was killed. */
export function staleProductFiles(dataDir: string): string[] {
  const newest = newestGeneration(dataDir);
  return productFiles(dataDir).flatMap((one) => (one.generation === newest ? [] : [one.name]));
}

/** The caller holds the lock for the index, so that no rebuild is in progress. */
export function removeStaleProductFiles(dataDir: string): void {
  for (const name of staleProductFiles(dataDir)) rmSync(join(dataDir, name), { force: true });
}

/** Opens the current file for questions. Throws `unavailable` when there is none of this version. */
export function openProductsForReading(dataDir: string): Database {
  const file = currentProductFile(dataDir);
  if (file === null) throw notIndexed();
  const database = new Sqlite(file, { readonly: true, timeout: busyTimeoutMs });
  // 8 MiB, negative because in KiB.
  database.pragma('cache_size = -8192');
  if (version(database) === productSchemaVersion) return database;
  database.close();
  throw notIndexed();
}

function notIndexed(): AppError {
  return new AppError(
    'unavailable',
    'There is no product index yet. Run `earshot index rebuild`; the receiver makes it too when it starts, unless EARSHOT_INDEX=off.',
  );
}

function openForIndexing(file: string): Database {
  createOwnerOnly(file);
  const database = new Sqlite(file, { timeout: busyTimeoutMs });
  try {
    // Most pages that are written hold one new entry of an index.
    if (version(database) === 0) database.pragma(`page_size = ${pageBytes}`);
    database.pragma('journal_mode = WAL');
    // All of it can be built again, and the cursor lies in the same file: a power cut only costs time.
    database.pragma('synchronous = NORMAL');
    database.pragma(`wal_autocheckpoint = ${usualLogPages}`);
    database.pragma(`journal_size_limit = ${2 * usualLogPages * pageBytes}`);
    // 8 MiB, negative because in KiB, though indexes are written at random places: the system keeps more.
    database.pragma('cache_size = -8192');
    database.transaction(() => createTables(database)).immediate();
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Empties a large write-ahead log: SQLite itself keeps the file at its largest size. Does not wait for queries that read
 * from it; the next call tries again.
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

function openIfOurs(file: string): Database | null {
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

/** True when the file itself is at fault: only a new one helps. */
export function isDamage(error: unknown): boolean {
  return ['SQLITE_CORRUPT', 'SQLITE_NOTADB'].includes(sqliteCode(error) ?? '');
}

function createTables(database: Database): void {
  if (version(database) !== 0) return;
  database.exec(productSchema);
  database.pragma(`user_version = ${productSchemaVersion}`);
}

function version(database: Database): number {
  return Number(database.pragma('user_version', { simple: true }));
}

/** 0 for none. A write-ahead log alone is no index. */
function newestGeneration(dataDir: string): number {
  const indexes = productFiles(dataDir).filter(({ suffix }) => suffix === '');
  return Math.max(0, ...indexes.map(({ generation }) => generation));
}

/** The index's files; the generation of an unfinished one is -1. */
function productFiles(dataDir: string) {
  const isThere = statSync(dataDir, { throwIfNoEntry: false }) !== undefined;
  const names = isThere ? readdirSync(dataDir) : [];
  return names.flatMap((name) => {
    const [found, generation = -1, suffix = ''] = filePattern.exec(name) ?? [];
    return found === undefined ? [] : [{ name, generation: Number(generation), suffix }];
  });
}

/** Leaves what a program that indexes at the same time may have made since. */
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
  /** Identifies the notification at that position; null where nothing has been indexed. */
  mark: string | null;
}

export function indexProgress(index: Database): Progress {
  const progress = prepared<[], Progress>(index, 'SELECT position, mark FROM progress').get();
  return progress ?? { position: 0, mark: null };
}

/** False when another log has taken the place of the one that was indexed, such as a restored backup. */
export function fitsLog({ log, index }: { log: Database; index: Database }): boolean {
  const { position, mark } = indexProgress(index);
  return mark === null || markAt(log, position) === mark;
}

/** The last notification of this log that the index has read; 0 where it is that of another one. */
export function indexedPosition(files: { log: Database; index: Database }): number {
  return fitsLog(files) ? indexProgress(files.index).position : 0;
}

/** Reads the log. A failure is reported as one of the log: the index must not be replaced for it. */
export function readLog<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw storeError(error);
  }
}

/**
 * Distinguishes the notification at a position from those of other logs; null where there is none. Not its dedupe key:
 * a push that comes late gives its own to the row that had been recovered.
 */
export function markAt(log: Database, position: number): string | null {
  const sql = `SELECT received_at_us || ' ' || event || ' ' || product_id AS mark
    FROM notification WHERE position = ?`;
  return readLog(() => prepared<[number], Progress>(log, sql).get(position))?.mark ?? null;
}
