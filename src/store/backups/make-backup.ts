/** Makes a backup: a copy of the store in one file, which gets its name after it was checked. */
import { renameSync, statSync } from 'node:fs';
import { truncate } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { syncFolder } from '../../host/files.ts';
import type { Remote } from '../../host/rpc.ts';
import { requireDatabase } from '../engine/database.ts';
import type { DataPlace } from '../engine/disk-limit.ts';
import { createAcquireLock } from '../engine/locks.ts';
import { withThread } from '../engine/thread.ts';
import { removeLeftovers } from '../leftovers.ts';
import {
  type BackupWatch,
  cancelled,
  createFolder,
  createPart,
  diskError,
  type Part,
  refuseTarget,
  requireSpaceFor,
  reservePart,
} from './backup-target.ts';
import type { BackupOperations, Copied, CopyRequest } from './backup-thread.ts';

const progressEveryMs = 200;

export interface BackupOptions extends BackupWatch, Omit<CopyRequest, 'file'> {
  place: DataPlace;
  /** Absolute path of the copy. */
  file: string;
  /** Creates the folder of the file if it is missing. */
  createsFolder: boolean;
  /** Replaces an existing file. */
  replace: boolean;
}

export interface MadeBackup extends Copied {
  /** Size of the file. */
  bytes: number;
}

/**
 * Copies all that was committed before the call. Until the copy is complete, its name ends with `.part`.
 * Rejects with `configuration` or `usage` for an unsuitable file, `conflict` while another process makes a backup,
 * `unavailable` if the disk or the store fails, and `cancelled` when the signal is aborted; then removes the copy.
 */
export async function makeBackup(options: BackupOptions): Promise<MadeBackup> {
  const { place, file, createsFolder, replace, about, files } = options;
  requireDatabase(place.dataDir);
  if (createsFolder) createFolder(dirname(file));
  refuseTarget(place, file, replace);
  await removeLeftovers(place.dataDir);
  requireSpaceFor(place, file);
  const release = await createAcquireLock(place.dataDir)('backup', { waitMs: 0 });
  let part: Part | undefined;
  try {
    part = await reservePart(place, file);
    createPart(part.path, files.length > 0);
    const request = { file: part.path, about, files };
    const copied = await withThread<BackupOperations, Copied>(
      'backups/backup-thread',
      place,
      (backup) => copy(backup, request, options),
    );
    // The file may have been created meanwhile.
    refuseTarget(place, file, replace);
    renameSync(part.path, file);
    await syncFolder(dirname(file));
    return { ...copied, bytes: statSync(file).size };
  } catch (error) {
    throw diskError(error, file);
  } finally {
    part?.remove();
    release();
  }
}

/**
 * Rejects with `cancelled` when the signal is aborted. It then truncates the file, because SQLite's check of a database
 * is one call that cannot be interrupted otherwise.
 */
async function copy(
  backup: Remote<BackupOperations>,
  request: CopyRequest,
  { onProgress, signal }: BackupWatch,
): Promise<Copied> {
  const ended = new AbortController();
  const stop = () => {
    void backup.stop().catch(() => undefined);
    void truncate(request.file).catch(() => undefined);
  };
  try {
    const answer = backup.copy(request);
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted) stop();
    const shown = showProgress(backup, ended.signal, onProgress);
    await Promise.allSettled([answer]);
    ended.abort();
    await shown;
    // Even after success: the file may have been truncated after it was checked.
    if (signal?.aborted) throw cancelled();
    return await answer;
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

async function showProgress(
  backup: Pick<Remote<BackupOperations>, 'progress'>,
  signal: AbortSignal,
  onProgress: BackupWatch['onProgress'],
): Promise<void> {
  while (onProgress !== undefined && !signal.aborted) {
    await delay(progressEveryMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    const progress = await backup.progress().catch(() => null);
    if (progress !== null) onProgress(progress);
  }
}
