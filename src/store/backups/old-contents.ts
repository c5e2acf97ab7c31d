/** What lies in a data directory before a backup is restored there: whether it is in use, and its way aside. */
import { mkdirSync, readdirSync, renameSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { AppError } from '../../domain/app-error.ts';
import { databaseFileName } from '../engine/database.ts';
import { sqliteCode } from '../engine/sqlite-error.ts';

export interface OldEntry {
  name: string;
  stats: Stats;
}

/** The log and the index with what SQLite puts beside them. */
const databases = /^(earshot|products-\d+|products\.building)\.db(-wal|-shm|-journal)?$/;

/** What a backup with these files takes the place of, by name; a backup without secrets leaves those that are there. */
export function oldContents(dataDir: string, paths: readonly string[]): OldEntry[] {
  const replaced = new Set(paths.map((path) => path.split('/')[0]));
  return namesIn(dataDir)
    .filter((name) => databases.test(name) || replaced.has(name))
    .map((name) => ({ name, stats: statSync(join(dataDir, name)) }));
}

function namesIn(folder: string): string[] {
  return statSync(folder, { throwIfNoEntry: false }) === undefined
    ? []
    : readdirSync(folder).toSorted();
}

/**
 * Throws `conflict` while any program has the log open. Each that has holds a lock on the file, which this asks for
 * alone: one that is damaged gives it, too.
 */
export function refuseInUse(dataDir: string): void {
  const file = join(dataDir, databaseFileName);
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return;
  let database: Database | undefined;
  try {
    database = new Sqlite(file, { fileMustExist: true, timeout: 0 });
    database.pragma('locking_mode = EXCLUSIVE');
    database.prepare('SELECT 1 FROM sqlite_schema').get();
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_BUSY') return;
    throw new AppError(
      'conflict',
      `${dataDir} is in use: a receiver or a command of earshot has its log open. Stop it (such as with \`systemctl stop earshot\`), then run this again.`,
    );
  } finally {
    database?.close();
  }
}

/** Nothing is deleted: it all goes into a folder within. */
export function moveAside(dataDir: string, entries: readonly OldEntry[], folder: string): void {
  if (entries.length === 0) return;
  mkdirSync(folder, { mode: 0o700 });
  // The log goes last: until then, what is there still is a data directory.
  const log = (name: string) => Number(name.startsWith(databaseFileName));
  for (const { name } of entries.toSorted((a, b) => log(a.name) - log(b.name))) {
    renameSync(join(dataDir, name), join(folder, name));
  }
}
