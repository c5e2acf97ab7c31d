/** Restores a data directory from a backup. Checks the backup before it changes the directory. */

import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { syncFolder } from '../../core/host/files.ts';
import { AppError } from '../../core/terms/app-error.ts';
import {
  createDirectory,
  type Database,
  databaseFileName,
  openSqlite,
  restoringFolderName,
} from '../../store/engine/database.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import { sqliteCode } from '../../store/engine/sqlite-error.ts';
import type { TablesSlot } from '../../store/tables.ts';
import { type Backup, checkBackup, diskError } from './backup-folder.ts';

export interface RestoreOptions {
  dataDir: string;
  tables: readonly TablesSlot[];
  /** New folder in the data directory for its old contents, if any. */
  aside: string;
  signal?: AbortSignal;
}

/**
 * Resolves when the restored directory is on disk. Rejects as `checkBackup` does, with `conflict` while the directory is
 * in use, and with `unavailable` if the disk fails or is full. The directory is then unchanged; after an interruption
 * while files are moved, no program opens it until the restore is repeated.
 */
export async function restoreBackup(backup: Backup, options: RestoreOptions): Promise<void> {
  const { dataDir, tables, signal } = options;
  createDirectory(dataDir);
  const release = await createAcquireLock(dataDir)('backup', { waitMs: 0 });
  const staging = join(dataDir, restoringFolderName);
  let isMoving = false;
  try {
    rmSync(staging, { recursive: true, force: true });
    await checkBackup(backup, { tables, to: staging, signal });
    for (const { path } of backup.files) await syncFolder(dirname(join(staging, path)));
    refuseInUse(dataDir);
    isMoving = true;
    await moveFiles(staging, oldContents(dataDir, backup), options);
  } catch (error) {
    if (!isMoving) rmSync(staging, { recursive: true, force: true });
    throw diskError(error, dataDir);
  } finally {
    release();
  }
}

/** The database is moved out first and in last: meanwhile, no program opens the directory. */
async function moveFiles(
  staging: string,
  old: readonly string[],
  { dataDir, aside }: RestoreOptions,
): Promise<void> {
  if (old.length > 0) mkdirSync(aside, { mode: 0o700 });
  for (const name of databaseFirst(old)) renameSync(join(dataDir, name), join(aside, name));
  for (const name of databaseFirst(readdirSync(staging)).toReversed()) {
    renameSync(join(staging, name), join(dataDir, name));
  }
  if (old.length > 0) await syncFolder(aside);
  await syncFolder(dataDir);
  rmSync(staging, { recursive: true });
}

function databaseFirst(names: readonly string[]): string[] {
  const isLast = (name: string) => Number(!name.startsWith(databaseFileName));
  return names.toSorted((a, b) => isLast(a) - isLast(b));
}

/** Matches the log, the index, and the files that SQLite adds. */
const databases = /^(earshot|products-\d+|products\.building)\.db(-wal|-shm|-journal)?$/;

/** Returns the names in the data directory that the backup replaces. */
export function oldContents(dataDir: string, { files }: Backup): string[] {
  if (statSync(dataDir, { throwIfNoEntry: false }) === undefined) return [];
  const replaced = new Set(files.map(({ path }) => path.split('/')[0]));
  return readdirSync(dataDir).filter((name) => databases.test(name) || replaced.has(name));
}

/**
 * Throws `conflict` while any program has the log open. Tests that with an exclusive lock on the file, which also works
 * for a damaged file.
 */
export function refuseInUse(dataDir: string): void {
  let database: Database | undefined;
  try {
    database = openSqlite(join(dataDir, databaseFileName), { fileMustExist: true, timeout: 0 });
    database.pragma('locking_mode = EXCLUSIVE');
    database.prepare('SELECT 1 FROM sqlite_schema').get();
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_BUSY') return;
    const advice = 'Stop the receiver (`systemctl stop earshot`), then run the command again.';
    throw new AppError('conflict', `${dataDir} is in use by another program.`, { advice });
  } finally {
    database?.close();
  }
}
