/** Removes files left by killed processes: unfinished backups, unfinished indexes, and older indexes. */
import type { LockName } from '../domain/account.ts';
import { AppError } from '../domain/app-error.ts';
import { removeUnfinished, unfinishedBackup } from './backups/backup-target.ts';
import { createAcquireLock } from './engine/locks.ts';
import { removeStaleProductFiles, staleProductFiles } from './products/product-file.ts';

const kinds: readonly {
  /** Lock held by the process that still needs these files. */
  lock: LockName;
  exist(dataDir: string): boolean;
  remove(dataDir: string): void;
}[] = [
  {
    lock: 'backup',
    exist: (dataDir) => unfinishedBackup(dataDir) !== null,
    remove: removeUnfinished,
  },
  {
    lock: 'index',
    exist: (dataDir) => staleProductFiles(dataDir).length > 0,
    remove: removeStaleProductFiles,
  },
];

/**
 * Skips files of a running process: the operating system releases a lock only when its process ends. Called before
 * work that needs the disk space. Does not reject when files cannot be removed: they only use space.
 */
export async function removeLeftovers(dataDir: string): Promise<void> {
  const acquireLock = createAcquireLock(dataDir);
  for (const { lock, exist, remove } of kinds) {
    try {
      // Acquires no lock without need: on a full disk its file may not open.
      if (!exist(dataDir)) continue;
      const release = await acquireLock(lock, { waitMs: 0 });
      try {
        remove(dataDir);
      } finally {
        release();
      }
    } catch (error) {
      const isFileError = error instanceof Error && 'code' in error;
      if (!(error instanceof AppError) && !isFileError) throw error;
    }
  }
}
