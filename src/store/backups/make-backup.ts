/** Makes a backup: a copy of the store in one file, which has its name only when it was checked. */
import { renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncFolder } from '../../host/files.ts';
import { requireDatabase } from '../engine/database.ts';
import type { DataPlace } from '../engine/disk-limit.ts';
import { createTakeLock } from '../engine/locks.ts';
import { removeLeftovers } from '../leftovers.ts';
import type { KeptFile } from './backup-contents.ts';
import type { BackupOrigin, Copied } from './backup-messages.ts';
import {
  createFolder,
  createPart,
  type Part,
  refuseTarget,
  requireRoomFor,
  reservePart,
} from './backup-target.ts';
import { type BackupWatch, copyOnThread } from './copy-on-thread.ts';
import { diskError } from './disk-error.ts';

export interface BackupOptions extends BackupWatch {
  place: DataPlace;
  /** Absolute path of the copy. */
  file: string;
  /** Creates the folder of the file where it is missing. */
  createsFolder: boolean;
  /** Replaces an existing file. */
  replace: boolean;
  about: BackupOrigin;
  files: readonly KeptFile[];
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
  const { place, file, createsFolder, replace, about, files, onProgress, signal } = options;
  requireDatabase(place.dataDir);
  if (createsFolder) createFolder(dirname(file));
  refuseTarget(place, file, replace);
  await removeLeftovers(place.dataDir);
  await requireRoomFor(place, file);
  const release = await createTakeLock(place.dataDir)('backup', { waitMs: 0 });
  let part: Part | undefined;
  try {
    part = await reservePart(place, file);
    createPart(part.path, files.length > 0);
    const watch = { onProgress, signal };
    const copied = await copyOnThread(place, { file: part.path, about, files }, watch);
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
