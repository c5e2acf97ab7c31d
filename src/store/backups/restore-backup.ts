/** Makes a data directory of a backup: checked before anything of the old one is touched. */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { AppError } from '../../domain/app-error.ts';
import { sizeText } from '../../domain/text.ts';
import { syncFolder, writeOwnerOnly } from '../../host/files.ts';
import { createDirectory, databaseFileName, restoringFolderName } from '../engine/database.ts';
import { createTakeLock } from '../engine/locks.ts';
import { dropContents } from './backup-contents.ts';
import { wasEnded } from './backup-job.ts';
import type { BackupWatch } from './copy-on-thread.ts';
import { diskError } from './disk-error.ts';
import { freeBytesOf } from './free-bytes.ts';
import { type InspectedBackup, inspectBackup } from './inspect-backup.ts';
import { moveAside, oldContents, refuseInUse } from './old-contents.ts';
import { copySealed, verifySealed } from './verify-backup.ts';

export interface RestoreOptions extends BackupWatch {
  /** Absolute path of the backup. */
  file: string;
  dataDir: string;
  /** True for the path of a file that a backup may contain. */
  isKept: (path: string) => boolean;
  /** Where the old contents go, if there are any: a folder in the data directory that is not there yet. */
  aside: string;
}

/**
 * Resolves when the directory is that of the backup, and on disk. Rejects as `inspectBackup` does, with `invalid` for a
 * backup that is not as it was made, `conflict` while the directory is in use, `unavailable` where the disk fails or has
 * no room, `cancelled` when the signal is aborted; then the directory is as it was.
 */
export async function restoreBackup(options: RestoreOptions): Promise<InspectedBackup> {
  const { file, dataDir, aside } = options;
  const backup = inspectBackup(file, options.isKept);
  createDirectory(dataDir);
  refuseInUse(dataDir);
  const release = await createTakeLock(dataDir)('backup', { waitMs: 0 });
  // One that was left over is begun anew.
  const staging = join(dataDir, restoringFolderName);
  try {
    rmSync(staging, { recursive: true, force: true });
    await requireRoomFor(dataDir, backup.bytes);
    mkdirSync(staging, { mode: 0o700 });
    await build(staging, backup, options);
    refuseInUse(dataDir);
    const paths = backup.files.map(({ path }) => path);
    moveAside(dataDir, oldContents(dataDir, paths), aside);
    moveIn(staging, options);
    await syncFolder(dataDir);
    return backup;
  } catch (error) {
    throw diskError(error, dataDir);
  } finally {
    rmSync(staging, { recursive: true, force: true });
    release();
  }
}

async function requireRoomFor(folder: string, bytes: number): Promise<void> {
  const free = await freeBytesOf(folder);
  if (free >= bytes) return;
  throw new AppError(
    'unavailable',
    `${folder} has no room for the backup: ${sizeText(free)} are free, and it takes ${sizeText(bytes)}. Free some space there.`,
  );
}

async function build(
  staging: string,
  backup: InspectedBackup,
  { file, onProgress, signal }: RestoreOptions,
): Promise<void> {
  const watch = { onProgress, signal };
  const database = join(staging, databaseFileName);
  await copySealed(file, database, backup, watch);
  // Once more from the disk: what will be used is what counts.
  await verifySealed(database, backup, watch);
  for (const { path, bytes } of backup.files) await writeOwnerOnly(join(staging, path), bytes);
  becomeStore(database);
  if (signal?.aborted) throw wasEnded();
}

function becomeStore(file: string): void {
  const database = new Sqlite(file, { fileMustExist: true });
  try {
    database.pragma('synchronous = FULL');
    database.pragma('fullfsync = ON');
    database.transaction(() => dropContents(database)).immediate();
    database.pragma('journal_mode = WAL');
  } finally {
    database.close();
  }
}

/** The log comes last: what is there before is no store that anybody would open. */
function moveIn(staging: string, { dataDir, aside }: RestoreOptions): void {
  const names = readdirSync(staging).filter((name) => name !== databaseFileName);
  for (const name of [...names, databaseFileName]) {
    if (existsSync(join(dataDir, name))) {
      throw new AppError(
        'conflict',
        `A program has made ${join(dataDir, name)} meanwhile; the old contents are in ${aside}. Stop the receiver, then run this again.`,
      );
    }
    renameSync(join(staging, name), join(dataDir, name));
  }
}
