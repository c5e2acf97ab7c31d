/** Locks between programs: one file per lock, released when the process ends. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Sqlite, { type Database } from 'better-sqlite3';
import { createOwnerOnly } from '../../core/host/files.ts';
import type { AcquireLock } from '../../core/host/job.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { faultError } from '../../core/terms/faults.ts';
import { createDirectory } from './database.ts';
import { sqliteCode } from './sqlite-error.ts';

const retryIntervalMs = 100;

/**
 * Acquires locks on the files `<dataDir>/<name>.lock`, which remain as empty files. Each is an SQLite
 * lock: the operating system releases it when the process ends, also after `kill -9`. Rejects with
 * `conflict` when the lock is held by another program, `configuration` when the file cannot be created.
 */
export function createAcquireLock(dataDir: string): AcquireLock {
  return async (name, { waitMs, signal }) => {
    const file = join(dataDir, `${name}.lock`);
    createDirectory(dataDir);
    const database = openLockFile(file);
    try {
      // Counts attempts: the system clock may be changed during the wait.
      for (let waitedMs = 0; !tryLock(database); waitedMs += retryIntervalMs) {
        if (waitedMs >= waitMs) throw busyError(name);
        await delay(retryIntervalMs, undefined, signal === undefined ? {} : { signal });
      }
    } catch (error) {
      database.close();
      throw error;
    }
    return () => void database.close();
  };
}

/** Returns the refusal of a lock that another program holds. */
const busyError = (name: string): AppError =>
  new AppError('conflict', `Another earshot program is doing the same work (lock "${name}").`, {
    advice: 'Wait until it has finished, then run this command again.',
  });

function openLockFile(file: string): Database {
  try {
    createOwnerOnly(file);
    const database = new Sqlite(file, { fileMustExist: true, timeout: 0 });
    // The transaction is never committed: with MEMORY it leaves nothing on disk.
    database.pragma('journal_mode = MEMORY');
    return database;
  } catch (error) {
    throw lockFileError(file, error);
  }
}

/**
 * Tries once to acquire the lock. IMMEDIATE, not EXCLUSIVE: when two programs try at the same time, one
 * succeeds; EXCLUSIVE may refuse both. The write detects a read-only file, on which SQLite begins
 * without a lock.
 */
function tryLock(database: Database): boolean {
  try {
    database.exec('BEGIN IMMEDIATE; PRAGMA user_version = 1');
    return true;
  } catch (error) {
    if (sqliteCode(error) === 'SQLITE_BUSY') return false;
    throw lockFileError(database.name, error);
  }
}

function lockFileError(file: string, cause: unknown): AppError {
  return faultError('configuration', `The file ${file} cannot be locked`, cause);
}
