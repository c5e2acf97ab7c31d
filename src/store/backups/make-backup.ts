/** Makes a backup: a copy of the store in one file, which has its name only when it was checked. */
import { renameSync, statSync } from 'node:fs';
import { truncate } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { syncFolder } from '../../host/files.ts';
import { requireDatabase } from '../engine/database.ts';
import type { DataPlace } from '../engine/disk-limit.ts';
import { createAcquireLock } from '../engine/locks.ts';
import type { Remote } from '../engine/rpc.ts';
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
  requireRoomFor,
  reservePart,
} from './backup-target.ts';
import type { BackupOperations, Copied, CopyRequest } from './backup-thread.ts';

const progressEveryMs = 200;

export interface BackupOptions extends BackupWatch, Omit<CopyRequest, 'file'> {
  place: DataPlace;
  /** Absolute path of the copy. */
  file: string;
  /** Creates the folder of the file where it is missing. */
  createsFolder: boolean;
  /** Replaces an existing file. */
  replace: boolean;
}

export interface MadeBackup extends Copied {
  /** Of the file. */
  bytes: number;
}

/**
 * Whatever was committed when it is called is in the copy. Until that is complete it has another name, `….part`.
 * Rejects with `configuration` or `usage` where it cannot be made there, `conflict` while another program makes one,
 * `unavailable` where the disk or the store fails, `cancelled` when the signal is aborted; then nothing is left.
 */
export async function makeBackup(options: BackupOptions): Promise<MadeBackup> {
  const { place, file, createsFolder, replace, about, files } = options;
  requireDatabase(place.dataDir);
  if (createsFolder) createFolder(dirname(file));
  refuseTarget(place, file, replace);
  await removeLeftovers(place.dataDir);
  requireRoomFor(place, file);
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
    // It may have come meanwhile.
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
 * Rejects with `cancelled` when the signal is aborted, and has cut the file short then: SQLite checks a whole database in
 * one call, which ends early only in this way.
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
    // Also where it was aborted in the last moment: the file may have been cut short after it was checked.
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
