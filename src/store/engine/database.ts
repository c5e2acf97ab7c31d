/** The only module that opens the database file. */

import { existsSync, lstatSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database, type Options, type Statement } from 'better-sqlite3';
import { createOwnerOnly, makeDirectory } from '../../core/host/files.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import { faultError } from '../../core/terms/faults.ts';
import { tables } from '../tables.ts';
import { checkpointBytes, type DataPlace } from './disk-limit.ts';
import { migrations } from './schema.ts';
import { openingError, sqliteCode } from './sqlite-error.ts';

export type { Database };

/** Opens any file of SQLite. Throws the error of SQLite. */
export const openSqlite = (file: string, options: Options): Database => new Sqlite(file, options);

/** File name in the data directory. */
export const databaseFileName = 'earshot.db';

/** Folder in the data directory where a restore builds its files. */
export const restoringFolderName = 'restoring';

/** Maximum time that a statement waits for a lock of another program. */
export const busyTimeoutMs = 5_000;

/** Opens the file for writing. Creates the directory (owner-only), the file and its tables. */
export function openForWriting(place: DataPlace): Database {
  const { dataDir } = place;
  createDirectory(dataDir);
  refuseLink(join(dataDir, databaseFileName));
  refuseInterruptedRestore(dataDir);
  const options = { timeout: busyTimeoutMs };
  return openFile(join(dataDir, databaseFileName), options, (database) => {
    refuseForeignFile(database);
    if (fileVersion(database) === 0) {
      // A full pack of bodies fills one page. With 4 kB a commit needs more system calls, with 16 kB more bytes.
      database.pragma('page_size = 8192');
      // Lets pruning shrink the file without rewriting it. Can only be set on an empty file.
      database.pragma('auto_vacuum = INCREMENTAL');
    }
    switchToWriteAheadLog(database);
    // In WAL mode the default may be NORMAL: a power failure can then lose the last commits.
    database.pragma('synchronous = FULL');
    // macOS: without it a sync reaches only the drive's cache. No effect on other systems.
    database.pragma('fullfsync = ON');
    // A checkpoint every 8 MB takes about 6 ms. Fewer checkpoints are slightly faster in total, but
    // each one delays all responses by 30 ms or more. A small reserve must contain the log several times.
    const pages = Math.min(1_000, Math.ceil(checkpointBytes(place) / 8_192));
    database.pragma(`wal_autocheckpoint = ${pages}`);
    // The write-ahead log may grow larger during a long read. It is truncated afterwards.
    database.pragma(`journal_size_limit = ${64 * 2 ** 20}`);
    // 4 MiB (a negative value is in KiB). The operating system caches the rest.
    database.pragma('cache_size = -4096');
    migrate(database);
    createMissing(database);
  });
}

/**
 * Switches to WAL mode, in which readers and the writer do not block each other. The first switch of a
 * file needs exclusive access. SQLite does not wait for it: when another process switches the file at
 * the same time, it returns SQLITE_BUSY at once.
 */
function switchToWriteAheadLog(database: Database): void {
  const deadlineMs = performance.now() + busyTimeoutMs;
  for (;;) {
    try {
      database.pragma('journal_mode = WAL');
      return;
    } catch (error) {
      if (sqliteCode(error) !== 'SQLITE_BUSY' || performance.now() >= deadlineMs) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

/** Prevents a new empty log from hiding an interrupted restore. */
function refuseInterruptedRestore(dataDir: string): void {
  if (existsSync(join(dataDir, databaseFileName))) return;
  if (!existsSync(join(dataDir, restoringFolderName))) return;
  throw new AppError(
    'configuration',
    `A restore into ${dataDir} is running or was interrupted. After an interruption, run \`earshot restore\` again with the same backup.`,
  );
}

/** Opens an existing file read-only. Throws `configuration` when there is none. */
function openForReading(dataDir: string): Database {
  requireDatabase(dataDir);
  const file = join(dataDir, databaseFileName);
  return openFile(file, { readonly: true, timeout: busyTimeoutMs }, (database) => {
    // 4 MiB instead of the 16 MiB of better-sqlite3, for each thread. Most pages are read once, in order.
    database.pragma('cache_size = -4096');
    requireSchema(database);
  });
}

/**
 * Opens an existing file to copy it. Writes nothing except the checkpoint of the write-ahead log.
 * Throws `configuration` when there is no file.
 */
export function openForCopying(dataDir: string): Database {
  requireDatabase(dataDir);
  const file = join(dataDir, databaseFileName);
  return openFile(file, { timeout: busyTimeoutMs }, (database) => {
    requireSchema(database);
    database.pragma('query_only = ON');
    // For the checkpoint, as in `openForWriting`.
    database.pragma('synchronous = FULL');
    database.pragma('fullfsync = ON');
    // 4 MiB (a negative value is in KiB): each page is read once, in order.
    database.pragma('cache_size = -4096');
  });
}

/** Opens a file and prepares it. Closes it again on failure. */
function openFile(file: string, options: Options, prepare: (database: Database) => void): Database {
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

/** Through another name, SQLite does not find the write-ahead log, which contains the last commits. */
function refuseLink(file: string): void {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats === undefined || (!stats.isSymbolicLink() && stats.nlink <= 1)) return;
  const [what, advice] = stats.isSymbolicLink()
    ? ['a symbolic link', 'Set EARSHOT_DATA_DIR to the folder that contains the file itself.']
    : [
        'a file with several names (hard links)',
        'Remove the other names, or replace them by backups (`earshot backup`).',
      ];
  throw new AppError('configuration', `${file} is ${what}.`, { advice });
}

/** Creates one value per connection, on first use. */
export function perConnection<Value extends object>(
  create: (database: Database) => Value,
): (database: Database) => Value {
  const values = new WeakMap<Database, Value>();
  return (database) => {
    const known = values.get(database);
    if (known !== undefined) return known;
    const value = create(database);
    values.set(database, value);
    return value;
  };
}

/** Maximum cached statements per connection. The number of texts is not limited: queries combine conditions. */
const statementsMax = 256;
const statements = perConnection(() => new Map<string, Statement>());

/** Returns the statement with this text, prepared once per connection. */
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
  // The caller knows the type of the selected rows.
  return statement as ReturnType<typeof database.prepare<Bound, Row>>;
}

/** Throws `configuration` when there is no database, so that a mistyped path does not create one. */
export function requireDatabase(dataDir: string): void {
  try {
    if (statSync(dataDir, { throwIfNoEntry: false })?.isFile()) {
      throw new AppError(
        'configuration',
        `${dataDir} is a file, not a data directory. Set --data-dir or EARSHOT_DATA_DIR to the folder that contains ${databaseFileName}.`,
      );
    }
    refuseLink(join(dataDir, databaseFileName));
    if (statSync(join(dataDir, databaseFileName), { throwIfNoEntry: false }) !== undefined) return;
  } catch (cause) {
    if (isAppError(cause)) throw cause;
    throw new AppError(
      'configuration',
      `This user has no access to the data directory ${dataDir}. Run the command as the user that runs earshot: sudo -u earshot …`,
      { cause },
    );
  }
  throw new AppError(
    'configuration',
    `There is no database in ${dataDir}. Set EARSHOT_DATA_DIR or --data-dir to the data directory of the receiver. A receiver creates the database at its first start.`,
  );
}

/** Returns the inode of a file, to detect that it was replaced; -1 when there is none. */
export function inodeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.ino ?? -1;
}

/**
 * Returns the inodes of a database and of the two files that SQLite keeps next to it while it is open.
 * Commits to a removed write-ahead log are lost at the next start.
 */
export function inodesOf(file: string): { database: number; wal: number; shm: number } {
  return { database: inodeOf(file), wal: inodeOf(`${file}-wal`), shm: inodeOf(`${file}-shm`) };
}

/**
 * Creates the data directory (owner-only) when it is missing. Throws `configuration`, also when every
 * user may write to it: they could replace the files that earshot reads. A group may write to it:
 * container volumes are set up this way.
 */
export function createDirectory(dataDir: string): void {
  try {
    makeDirectory(dataDir);
  } catch (error) {
    throw faultError(
      'configuration',
      `The data directory ${dataDir} (EARSHOT_DATA_DIR) cannot be created`,
      error,
    );
  }
  if (isWritableByAll(statSync(dataDir))) {
    throw new AppError(
      'configuration',
      `Every user of this machine can write to the data directory ${dataDir}. Run: chmod o-w ${dataDir}. Or set EARSHOT_DATA_DIR to a new folder in this directory: earshot creates that folder with owner-only access.`,
    );
  }
}

/** Returns true when every user may add files to a folder. */
export function isWritableByAll({ mode }: Pick<Stats, 'mode'>): boolean {
  return (mode & 0o002) !== 0;
}

export interface ReaderConnection {
  database(): Database;
  close(): void;
}

/** An idle connection also keeps removed files open, and the writer cannot reopen while it does. */
const checkIntervalMs = 250;

/** Opens the file at once, and again after it was replaced. Throws as `openForReading` does. */
export function createReaderConnection(dataDir: string): ReaderConnection {
  let database = openForReading(dataDir);
  let inodes = inodesOf(database.name);
  const isStale = () => {
    const now = inodesOf(database.name);
    return now.database !== inodes.database || now.wal !== inodes.wal || now.shm !== inodes.shm;
  };
  const timer = setInterval(() => {
    if (database.open && isStale()) database.close();
  }, checkIntervalMs).unref();
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

/** Schema version that this program reads and writes. */
export const schemaVersion = migrations.length;

/** SQLite's application id of an earshot database: the letters "ears". */
const applicationId = 0x65617273;

/**
 * Applies the missing migrations, one transaction each. The version is read again under the lock: when two programs
 * start together, only one applies them.
 */
export function migrate(database: Database): void {
  for (const [i, sql] of migrations.entries()) {
    if (fileVersion(database) > i) continue;
    const apply = database.transaction(() => {
      if (fileVersion(database) > i) return;
      database.exec(sql);
      database.pragma(`application_id = ${applicationId}`);
      database.pragma(`user_version = ${i + 1}`);
    });
    apply.immediate();
  }
}

/** Creates the tables and indexes of features that the file does not have yet. */
function createMissing(database: Database): void {
  // A thread that only reads must not wait for the lock.
  if (tables().size === 0) return;
  const create = database.transaction(() => {
    for (const { schema } of tables().values()) database.exec(schema);
  });
  create.immediate();
}

/**
 * Returns the schema of a new file of a version: `type name`, and the SQL code; null for an automatic index. `own` is that
 * of the store itself, `all` also has the loaded tables of features.
 */
export function expectedSchema(version: number): Record<'own' | 'all', Map<string, string | null>> {
  const database = new Sqlite(':memory:');
  try {
    for (const sql of migrations.slice(0, version)) database.exec(sql);
    const own = schemaOf(database);
    createMissing(database);
    return { own, all: schemaOf(database) };
  } finally {
    database.close();
  }
}

/** Returns the same of a file. */
export function schemaOf(database: Database): Map<string, string | null> {
  const rows = database
    .prepare<[], [string, string, string | null]>('SELECT type, name, sql FROM sqlite_schema')
    .raw()
    .all();
  return new Map(rows.map(([type, name, sql]) => [`${type} ${name}`, sql]));
}

/** Throws `configuration` for a file of another program or of a newer earshot. Accepts an empty file. */
function refuseForeignFile(database: Database): void {
  // One transaction: another process may create the tables between two separate reads.
  const { id, version, tables } = database.transaction(() => ({
    id: database.pragma('application_id', { simple: true }),
    version: fileVersion(database),
    tables: hasTables(database),
  }))();
  if (id !== applicationId && (id !== 0 || version !== 0 || tables)) {
    throw new AppError('configuration', `${database.name} is a SQLite file of another program.`, {
      advice: 'Set EARSHOT_DATA_DIR to another folder.',
    });
  }
  if (version > schemaVersion) {
    throw new AppError(
      'configuration',
      `${database.name} was written by a newer version of earshot (schema ${version}; this version supports up to ${schemaVersion}).`,
      { advice: 'Install the newer version, or restore a backup of this version.' },
    );
  }
}

/** Throws `configuration` also for an empty file. */
function requireSchema(database: Database): void {
  refuseForeignFile(database);
  if (fileVersion(database) === schemaVersion) return;
  throw new AppError(
    'configuration',
    `${database.name} does not have the tables of this version.`,
    {
      advice: 'Run `earshot start` once to create them.',
    },
  );
}

/** Returns the schema version of a file; 0 for an empty one. */
export function fileVersion(database: Database): number {
  return Number(database.pragma('user_version', { simple: true }));
}

function hasTables(database: Database): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined;
}
