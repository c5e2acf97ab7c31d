/** Locks between programs: one file per lock, released when the process ends. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Sqlite, { type Database } from 'better-sqlite3';
import type { AcquireLock, LockName } from '../../admin/account.ts';
import { createOwnerOnly } from '../../core/host/files.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { faultError } from '../../core/terms/faults.ts';
import { createDirectory } from './database.ts';
import { sqliteCode } from './sqlite-error.ts';

const retryIntervalMs = 100;

export const busyMessages: Record<LockName, string> = {
  receiver: 'A receiver is already running on this data directory.',
  checkpoint: 'Another earshot program is filling this receiver from the shared log.',
  leader: 'Another receiver runs the background jobs.',
  account:
    'Another earshot program is logging in to the account. Wait until it has finished, then run this command again.',
  subscriptions:
    'Another earshot program is changing the subscriptions of this account. Wait until it has finished, then run this command again.',
  certificate:
    'Another earshot program is getting a certificate. Wait until it has finished, then run this command again.',
  index: 'Another earshot program is rebuilding the product index. Wait until it has finished.',
  summaries: 'Another earshot program is writing summaries. Wait until it has finished.',
  reconcile:
    'Another earshot program is comparing the log with the catalogue. Wait until it has finished, then run this command again.',
  pull: 'Another earshot program is reading the queue of a pull subscription.',
  'pull-next': 'Another earshot program is waiting to read the queue of a pull subscription.',
  sinks: 'Another earshot program is delivering notifications to the sinks.',
  compact: 'Another earshot program is compacting the log. Wait until it has finished.',
  prune: 'Another earshot program is pruning the log. Wait until it has finished.',
  backup: 'Another earshot program is creating or restoring a backup. Wait until it has finished.',
};

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
        if (waitedMs >= waitMs) throw new AppError('conflict', busyMessages[name]);
        await delay(retryIntervalMs, undefined, signal === undefined ? {} : { signal });
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
