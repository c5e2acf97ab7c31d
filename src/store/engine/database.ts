/** The one place where the database file is opened; each setting has its reason. */

import { existsSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database, type Options, type Statement } from 'better-sqlite3';
import { AppError, errorCodeOf } from '../../domain/app-error.ts';
import { createOwnerOnly, makeDirectory } from '../../host/files.ts';
import { migrations } from './migrations.ts';
import { openingError, sqliteCode } from './sqlite-error.ts';

/** The file's name in the data directory. */
export const databaseFileName = 'earshot.db';

/** A folder in the data directory where a restore builds its file: the log is put into its place last. */
export const restoringFolderName = 'restoring';

/** How long a statement waits for another program's lock. */
export const busyTimeoutMs = 5_000;

/** Opens the file for writing; creates the directory (owner-only), the file and its tables. */
export function openForWriting(dataDir: string): Database {
  createDirectory(dataDir);
  refuseHalfRestored(dataDir);
  const options = { timeout: busyTimeoutMs };
  return opened(join(dataDir, databaseFileName), options, (database) => {
    refuseForeignFile(database);
    if (fileVersion(database) === 0) {
      // Three bodies of about 5 kB fit a page, and a commit needs a quarter of the system calls.
      database.pragma('page_size = 16384');
      // Lets a later prune give space back without rewriting the file; can only be chosen now.
      database.pragma('auto_vacuum = INCREMENTAL');
    }
    switchToWriteAheadLog(database);
    // In WAL mode the default may be NORMAL, which a power cut can cost the last commits.
    database.pragma('synchronous = FULL');
    // macOS: without it a sync stops at the drive's own cache. Elsewhere it has no effect.
    database.pragma('fullfsync = ON');
    // Pages move from the write-ahead log into the file every 8 MB, which takes some 6 ms. Seldomer is
    // a little faster, but then each time stalls every answer for 30 ms and more.
    database.pragma('wal_autocheckpoint = 500');
    // It may grow beyond that during a long read; afterwards it is cut back.
    database.pragma(`journal_size_limit = ${64 * 2 ** 20}`);
    // 8 MiB, negative because in KiB: what is needed beyond that, the system keeps.
    database.pragma('cache_size = -8192');
    migrate(database);
  });
}

/**
 * Readers never wait for the writer, nor it for them. The switch of a fresh file needs it exclusively, and SQLite does
 * not wait for another process that switches it at the same moment: it answers SQLITE_BUSY at once.
 */
function switchToWriteAheadLog(database: Database): void {
  const giveUpAtMs = performance.now() + busyTimeoutMs;
  for (;;) {
    try {
      database.pragma('journal_mode = WAL');
      return;
    } catch (error) {
      if (sqliteCode(error) !== 'SQLITE_BUSY' || performance.now() >= giveUpAtMs) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

/** A log that was begun anew here would hide that another one was to be in its place. */
function refuseHalfRestored(dataDir: string): void {
  if (existsSync(join(dataDir, databaseFileName))) return;
  if (!existsSync(join(dataDir, restoringFolderName))) return;
  throw new AppError(
    'configuration',
    `A restore into ${dataDir} is under way, or was interrupted. Run \`earshot restore\` again with the same backup; what was there before is in the newest folder before-restore-… there.`,
  );
}

/** Opens an existing file for reading only. Rejects with `configuration` when there is none. */
function openForReading(dataDir: string): Database {
  requireDatabase(dataDir);
  const file = join(dataDir, databaseFileName);
  return opened(file, { readonly: true, timeout: busyTimeoutMs }, (database) => {
    // 4 MiB; better-sqlite3 would take 16 in each thread. Most is read once, in order.
    database.pragma('cache_size = -4096');
    refuseForeignFile(database);
    if (fileVersion(database) < schemaVersion) {
      throw new AppError('configuration', `${file} was written by an older earshot.`, {
        advice: 'Run `earshot start` once: it brings the file up to date.',
      });
    }
  });
}

/**
 * Opens an existing file to copy it, one of an older version too. Nothing is written but what the write-ahead log
 * holds into the file. Rejects with `configuration` when there is none.
 */
export function openForCopying(dataDir: string): Database {
  requireDatabase(dataDir);
  const file = join(dataDir, databaseFileName);
  return opened(file, { timeout: busyTimeoutMs }, (database) => {
    refuseForeignFile(database);
    if (fileVersion(database) === 0) {
      throw new AppError(
        'configuration',
        `There is nothing in ${file} yet. Run \`earshot start\` once.`,
      );
    }
    database.pragma('query_only = ON');
    // For the pages of the write-ahead log, as in writing.
    database.pragma('synchronous = FULL');
    database.pragma('fullfsync = ON');
    // 4 MiB, negative because in KiB: all is read once, in order.
    database.pragma('cache_size = -4096');
  });
}

/** Opens a file and prepares it. Where that fails it is closed again. */
function opened(file: string, options: Options, prepare: (database: Database) => void): Database {
  let database: Database | undefined;
  try {
    if (options.readonly !== true) createOwnerOnly(file);
    database = new Sqlite(file, options);
    prepare(database);
    return database;
  } catch (error) {
    database?.close();
    throw openingError(error, file);
  }
}

/** A value of each connection, made when it is first needed. */
export function perConnection<Value>(
  make: (database: Database) => Value,
): (database: Database) => Value {
  const values = new WeakMap<Database, { value: Value }>();
  return (database) => {
    let found = values.get(database);
    if (found === undefined) {
      found = { value: make(database) };
      values.set(database, found);
    }
    return found.value;
  };
}

/** Statements that a connection keeps; conditions are put together, so that there may be more in time. */
const statementsMax = 256;
const statements = perConnection(() => new Map<string, Statement>());

/** The statement of this text, prepared once for each connection. */
export function prepared<Bound extends unknown[] | object = unknown[], Row = unknown>(
  database: Database,
  sql: string,
) {
  const known = statements(database);
  let statement = known.get(sql);
  if (statement === undefined) {
    const [oldest] = known.keys();
    if (known.size >= statementsMax && oldest !== undefined) known.delete(oldest);
    statement = database.prepare(sql);
    known.set(sql, statement);
  }
  // The rows of a statement are what its caller selects.
  return statement as ReturnType<typeof database.prepare<Bound, Row>>;
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
  if (statSync(dataDir, { throwIfNoEntry: false })?.isFile()) {
    throw new AppError(
      'configuration',
      `${dataDir} is a file, not a data directory. Name the folder that holds ${databaseFileName}, with --data-dir or EARSHOT_DATA_DIR.`,
    );
  }
  throw new AppError(
    'configuration',
    `There is no database in ${dataDir}. Set EARSHOT_DATA_DIR or --data-dir to the data directory of the receiver, or run \`earshot start\` first.`,
  );
}

/** Tells whether a path still is the file it was; -1 when nothing is there. */
export function inodeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.ino ?? -1;
}

/**
 * The inodes of a database and of the two files that SQLite keeps next to it while it is open. Commits that go to a
 * write-ahead log which was removed are in no file that the next start finds.
 */
export function inodesOf(file: string): { database: number; wal: number; shm: number } {
  return { database: inodeOf(file), wal: inodeOf(`${file}-wal`), shm: inodeOf(`${file}-shm`) };
}

/**
 * Creates the data directory, owner-only, where it is not there. Throws `configuration`, also for one that every user
 * may write to: whoever can put files into it, or take them away, decides what earshot reads. A group may: that is
 * how containers are given their volumes.
 */
export function createDirectory(dataDir: string): void {
  try {
    makeDirectory(dataDir);
  } catch (error) {
    throw new AppError(
      'configuration',
      `The data directory ${dataDir} cannot be created (${errorCodeOf(error)}). Create it, or name another one in EARSHOT_DATA_DIR.`,
      { cause: error },
    );
  }
  if (isWritableByAll(statSync(dataDir))) {
    throw new AppError(
      'configuration',
      `Every user of this machine may write to the data directory ${dataDir}. Run: chmod o-w ${dataDir}. Or name a folder in it in EARSHOT_DATA_DIR: earshot makes it for itself.`,
    );
  }
}

/** Whether every user may put files into a folder. */
export function isWritableByAll({ mode }: Pick<Stats, 'mode'>): boolean {
  return (mode & 0o002) !== 0;
}

export interface ReaderConnection {
  database(): Database;
  close(): void;
}

/** A connection that nobody asks keeps removed files open too, and with them the writer from starting over. */
const checkEveryMs = 250;

/** Opens the file at once. Throws as `openForReading` does, then and at each later opening. */
export function createReaderConnection(dataDir: string): ReaderConnection {
  let database = openForReading(dataDir);
  let inodes = inodesOf(database.name);
  const isStale = () => {
    const now = inodesOf(database.name);
    return now.database !== inodes.database || now.wal !== inodes.wal || now.shm !== inodes.shm;
  };
  const timer = setInterval(() => {
    if (database.open && isStale()) database.close();
  }, checkEveryMs).unref();
  return {
    database: () => {
      if (!database.open || isStale()) {
        database.close();
        database = openForReading(dataDir);
        inodes = inodesOf(database.name);
      }
      return database;
    },
    close: () => {
      clearInterval(timer);
      database.close();
    },
  };
}

/** The version of the file's schema that this program reads and writes. */
export const schemaVersion = migrations.length;

/** SQLite's mark for "a file of this application": the letters "ears". */
const applicationId = 0x65617273;

/**
 * Applies what is missing, one transaction each; a fresh file gets all in one, which syncs the disk once. The lock is
 * taken before the version is read again, so that two programs that start together do the work once.
 */
export function migrate(database: Database): void {
  const version = fileVersion(database);
  const missing = migrations.slice(version).map((sql, i) => ({ number: version + i + 1, sql }));
  for (const steps of version === 0 ? [missing] : missing.map((one) => [one])) {
    database
      .transaction(() => {
        for (const step of steps) apply(database, step);
      })
      .immediate();
  }
}

function apply(database: Database, { number, sql }: { number: number; sql: string }): void {
  if (fileVersion(database) >= number) return;
  database.exec(sql);
  database.pragma(`application_id = ${applicationId}`);
  database.pragma(`user_version = ${number}`);
}

/** Rejects a file that is another program's, or a newer earshot's. An empty file passes. */
export function refuseForeignFile(database: Database): void {
  // One transaction: between single reads, another process may create the tables.
  const { id, version, tables } = database.transaction(() => ({
    id: database.pragma('application_id', { simple: true }),
    version: fileVersion(database),
    tables: hasTables(database),
  }))();
  if (id !== applicationId && (id !== 0 || version !== 0 || tables)) {
    throw new AppError('configuration', `${database.name} is a SQLite file of another program.`, {
      advice: 'Name another folder in EARSHOT_DATA_DIR.',
    });
  }
  if (version > schemaVersion) {
    throw new AppError(
      'configuration',
      `${database.name} was written by a newer earshot (schema ${version}, this program knows up to ${schemaVersion}).`,
      { advice: 'Install that version again, or restore a backup made before the upgrade.' },
    );
  }
}

/** The schema version of a file; 0 for an empty one. */
export function fileVersion(database: Database): number {
  return Number(database.pragma('user_version', { simple: true }));
}

function hasTables(database: Database): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined;
}
