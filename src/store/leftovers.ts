/** Removes files that killed processes have left: an unfinished backup, an unfinished index, and older indexes. */
import type { LockName } from '../domain/account.ts';
import { AppError } from '../domain/app-error.ts';
import { removeUnfinished, unfinishedBackup } from './backups/backup-target.ts';
import { createAcquireLock } from './engine/locks.ts';
import { removeStaleProductFiles, staleProductFiles } from './products/product-file.ts';

const kinds: readonly {
  /** Held by whoever still needs these files. */
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
 * Leaves files alone whose process is alive: the operating system releases the lock of one that was killed. Called by
 * those who need the disk space next. Never rejects for files that cannot be removed: they only take up space.
 */
export async function removeLeftovers(dataDir: string): Promise<void> {
  const acquireLock = createAcquireLock(dataDir);
  for (const { lock, exist, remove } of kinds) {
    try {
      // Without leftovers no lock is taken: on a full disk its file may not even open.
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
