/** Locks between programs: each is held on a file of its own, and ends with the process that holds it. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Sqlite, { type Database } from 'better-sqlite3';
import type { AcquireLock, LockName } from '../../domain/account.ts';
import { AppError, errorCodeOf } from '../../domain/app-error.ts';
import { createOwnerOnly } from '../../host/files.ts';
import { createDirectory } from './database.ts';
import { sqliteCode } from './sqlite-error.ts';

const tryEveryMs = 100;

const busyMessages: Record<LockName, string> = {
  receiver: 'A receiver serves this data directory already.',
  account:
    'Another earshot program is logging in to the account. Wait until it has finished, then run this again.',
  subscriptions:
    'Another earshot program is changing the subscriptions of this account. Wait until it has finished, then run this again.',
  certificate:
    'Another earshot program is getting a certificate. Wait until it has finished, then run this again.',
  index: 'Another earshot program is building the product index anew. Wait until it has finished.',
  summaries:
    'Another earshot program is looking for what is to be summarised. Wait until it has finished.',
  reconcile:
    'Another earshot program is comparing the log with the catalogue. Wait until it has finished, then run this again.',
  sinks: 'Another earshot program is handing notifications over to the sinks.',
  compact: 'Another earshot program is compacting the log. Wait until it has finished.',
  prune: 'Another earshot program is pruning the log. Wait until it has finished.',
  backup: 'Another earshot program is making or restoring a backup. Wait until it has finished.',
};

/**
 * Locks on the files `<dataDir>/<name>.lock`, which stay behind, empty. Each is SQLite's lock on that
 * file: the operating system gives it back when the process ends, by `kill -9` too. Rejects with
 * `conflict` when another holds it, `configuration` when there can be no such file.
 */
export function createAcquireLock(dataDir: string): AcquireLock {
  return async (name, { waitMs, signal }) => {
    const file = join(dataDir, `${name}.lock`);
    createDirectory(dataDir);
    const database = openLockFile(file);
    try {
      // Tries are counted instead of reading a clock, which may be set meanwhile.
      for (let waitedMs = 0; !holds(database); waitedMs += tryEveryMs) {
        if (waitedMs >= waitMs) throw new AppError('conflict', busyMessages[name]);
        await delay(tryEveryMs, undefined, signal === undefined ? {} : { signal });
      }
    } catch (error) {
      database.close();
      throw error;
    }
    return () => void database.close();
  };
}

function openLockFile(file: string): Database {
  try {
    createOwnerOnly(file);
    const database = new Sqlite(file, { fileMustExist: true, timeout: 0 });
    // The transaction is never committed; this way it leaves nothing on disk.
    database.pragma('journal_mode = MEMORY');
    return database;
  } catch (error) {
    throw unusable(file, error);
  }
}

/**
 * Tries once. IMMEDIATE, not EXCLUSIVE: of two that try together one gets it, where EXCLUSIVE may
 * refuse both. The write shows that the file is not read-only, where SQLite would begin without lock.
 */
function holds(database: Database): boolean {
  try {
    database.exec('BEGIN IMMEDIATE; PRAGMA user_version = 1');
    return true;
  } catch (error) {
    if (sqliteCode(error) === 'SQLITE_BUSY') return false;
    throw unusable(database.name, error);
  }
}

function unusable(file: string, cause: unknown): AppError {
  return new AppError(
    'configuration',
    `The file ${file} cannot be locked (${errorCodeOf(cause)}). Give the user that runs earshot write permission to the data directory and the files in it, or name another one in EARSHOT_DATA_DIR.`,
    { cause },
  );
}
