/** Removes files left by killed processes: unfinished and older product indexes. */
import { AppError } from '../../../core/terms/app-error.ts';
import { createAcquireLock } from '../../../store/engine/locks.ts';
import { removeStaleProductFiles, staleProductFiles } from './product-file.ts';

/**
 * Skips files of a running process: the operating system releases a lock only when its process ends. Called before
 * work that needs the disk space. Does not reject when files cannot be removed: they only use space.
 */
export async function removeLeftovers(dataDir: string): Promise<void> {
  try {
    // Acquires no lock without need: on a full disk its file may not open.
    if (staleProductFiles(dataDir).length === 0) return;
    const release = await createAcquireLock(dataDir)('index', { waitMs: 0 });
    try {
      removeStaleProductFiles(dataDir);
    } finally {
      release();
    }
  } catch (error) {
    const isFileError = error instanceof Error && 'code' in error;
    if (!(error instanceof AppError) && !isFileError) throw error;
  }
}
