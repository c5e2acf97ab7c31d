/** Restores a data directory from a backup. Checks the backup before it changes the directory. */
import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { AppError } from '../../domain/app-error.ts';
import { syncFolder } from '../../host/files.ts';
import { createDirectory, databaseFileName, restoringFolderName } from '../engine/database.ts';
import { createAcquireLock } from '../engine/locks.ts';
import { sqliteCode } from '../engine/sqlite-error.ts';
import { type Backup, type BackupWatch, checkBackup, diskError } from './backup-folder.ts';

export interface RestoreOptions extends BackupWatch {
  dataDir: string;
  /** New folder in the data directory for its old contents, if any. */
  aside: string;
}

/**
 * Resolves when the restored directory is on disk. Rejects as `checkBackup` does, with `conflict` while the directory is
 * in use, and with `unavailable` if the disk fails or is full. The directory is then unchanged; after an interruption
 * while files are moved, no program opens it until the restore is repeated.
 */
export async function restoreBackup(backup: Backup, options: RestoreOptions): Promise<void> {
  const { dataDir } = options;
  createDirectory(dataDir);
  refuseInUse(dataDir);
  const release = await createAcquireLock(dataDir)('backup', { waitMs: 0 });
  const staging = join(dataDir, restoringFolderName);
  try {
    await stage(staging, backup, options).catch((error: unknown) => {
      rmSync(staging, { recursive: true, force: true });
      throw error;
    });
    await moveFiles(staging, oldContents(dataDir, backup), options);
  } catch (error) {
    throw diskError(error, dataDir);
  } finally {
    release();
  }
}

async function stage(staging: string, backup: Backup, options: RestoreOptions): Promise<void> {
  rmSync(staging, { recursive: true, force: true });
  await checkBackup(backup, options, staging);
  const folders = backup.files.map(({ path }) => dirname(join(staging, path)));
  for (const folder of new Set(folders)) await syncFolder(folder);
  refuseInUse(options.dataDir);
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
  for (const folder of old.length > 0 ? [aside, dataDir] : [dataDir]) await syncFolder(folder);
  rmSync(staging, { recursive: true });
}

function databaseFirst(names: readonly string[]): string[] {
  const rank = (name: string) => (name.startsWith(databaseFileName) ? 0 : 1);
  return names.toSorted((a, b) => rank(a) - rank(b));
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
  const file = join(dataDir, databaseFileName);
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return;
  let database: Database | undefined;
  try {
    database = new Sqlite(file, { fileMustExist: true, timeout: 0 });
    database.pragma('locking_mode = EXCLUSIVE');
    database.prepare('SELECT 1 FROM sqlite_schema').get();
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_BUSY') return;
    throw new AppError('conflict', `${dataDir} is in use by another program of earshot.`, {
      advice:
        'Stop the receiver (for example: `systemctl stop earshot`), then run the command again.',
    });
  } finally {
    database?.close();
  }
}
