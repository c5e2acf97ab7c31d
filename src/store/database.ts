/** The one place where the database file is opened; each setting has its reason. */
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import { fileVersion, migrate, refuseForeignFile, schemaVersion } from './migrate.ts';
import { errorCodeOf } from './sqlite-error.ts';

/** The file's name in the data directory. */
export const databaseFileName = 'earshot.db';

/** How long a statement waits for another program's lock. */
export const busyTimeoutMs = 5_000;

/** Opens the file for writing; creates the directory (owner-only), the file and its tables. */
export function openForWriting(dataDir: string): Database {
  createDirectory(dataDir);
  const database = new Sqlite(join(dataDir, databaseFileName), { timeout: busyTimeoutMs });
  try {
    refuseForeignFile(database);
    if (fileVersion(database) === 0) {
      // Three bodies of about 5 kB fit a page, and a commit needs a quarter of the system calls.
      database.pragma('page_size = 16384');
      // Lets a later prune give space back without rewriting the file; can only be chosen now.
      database.pragma('auto_vacuum = INCREMENTAL');
    }
    // Readers never wait for the writer, nor it for them.
    database.pragma('journal_mode = WAL');
    // In WAL mode the default may be NORMAL, which a power cut can cost the last commits.
    database.pragma('synchronous = FULL');
    // macOS: without it a sync stops at the drive's own cache. Elsewhere it has no effect.
    database.pragma('fullfsync = ON');
    // Pages move from the write-ahead log into the file every 8 MB, which takes some 6 ms. Seldomer is
    // a little faster, but then each time stalls every answer for 30 ms and more.
    database.pragma('wal_autocheckpoint = 500');
    // It may grow beyond that during a long read; afterwards it is cut back.
    database.pragma(`journal_size_limit = ${64 * 2 ** 20}`);
    // 16 MiB, negative because in KiB: for the index, should its inserts be random.
    database.pragma('cache_size = -16384');
    migrate(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Opens an existing file for reading only. Rejects with `configuration` when there is none. */
export function openForReading(dataDir: string): Database {
  requireDatabase(dataDir);
  const file = join(dataDir, databaseFileName);
  const database = new Sqlite(file, { readonly: true, timeout: busyTimeoutMs });
  try {
    refuseForeignFile(database);
    if (fileVersion(database) < schemaVersion) {
      throw new AppError(
        'configuration',
        `${file} was written by an older earshot. Run \`npm start\` once: it brings the file up to date.`,
      );
    }
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Throws `configuration` when there is no database, so that a mistyped path does not make one. */
export function requireDatabase(dataDir: string): void {
  try {
    if (statSync(join(dataDir, databaseFileName), { throwIfNoEntry: false }) !== undefined) return;
  } catch (cause) {
    throw new AppError(
      'configuration',
      `The data directory ${dataDir} cannot be entered by this user. Run the command as the user of the receiver: sudo -u earshot …`,
      { cause },
    );
  }
  throw new AppError(
    'configuration',
    `There is no database in ${dataDir}. Set EARSHOT_DATA_DIR to the data directory of the receiver, or run \`npm start\` first.`,
  );
}

/** Tells whether a path still is the file it was; -1 when nothing is there. */
export function inodeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.ino ?? -1;
}

/** Creates the data directory, owner-only, where it is not there. Throws `configuration`. */
export function createDirectory(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new AppError(
      'configuration',
      `The data directory ${dataDir} cannot be created (${errorCodeOf(error)}). Create it, or name another one in EARSHOT_DATA_DIR.`,
      { cause: error },
    );
  }
}
