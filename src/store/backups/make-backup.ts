/** Makes a backup: a folder that gets its name when it is complete, checked and on disk. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { truncate } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/dates.ts';
import type { BackupRun } from '../../domain/ports.ts';
import { sizeText } from '../../domain/text.ts';
import {
  createOwnerOnly,
  makeDirectory,
  readOwnerOnly,
  syncFolder,
  writeOwnerOnly,
} from '../../host/files.ts';
import type { Remote } from '../../host/rpc.ts';
import { databaseFileName, requireDatabase } from '../engine/database.ts';
import { type DataPlace, diskSize } from '../engine/disk-limit.ts';
import { createAcquireLock } from '../engine/locks.ts';
import { withThread } from '../engine/thread.ts';
import {
  type Backup,
  type BackupWatch,
  backupFormat,
  backupsIn,
  cancelled,
  compactTime,
  diskError,
  keptFiles,
  manifestName,
  partEnding,
  readBackup,
  sumOf,
} from './backup-folder.ts';
import type { BackupOperations } from './backup-thread.ts';

const progressEveryMs = 200;

export interface BackupOptions extends BackupWatch {
  place: DataPlace;
  /** Absolute path of the folder for backups; created if it is missing. */
  folder: string;
  /** Version of earshot. */
  version: string;
  nowUs: () => number;
  /** Records the result; not of wrong usage, conflicts and cancellation. Must not reject. */
  record: (run: BackupRun) => Promise<void>;
}

/**
 * The backup contains all that was committed before the call. Rejects with `configuration` or `usage` for an unsuitable
 * folder, `conflict` while another program makes a backup, `unavailable` if the disk or the store fails, and `cancelled`
 * when the signal is aborted; then removes what it wrote.
 */
export async function makeBackup(options: BackupOptions): Promise<Backup> {
  const { folder, nowUs, record } = options;
  const startedAtUs = nowUs();
  const path = join(folder, `earshot-${compactTime(startedAtUs)}`);
  const recordRun = (end: Pick<BackupRun, 'bytes' | 'lastPosition' | 'error'>) =>
    record({ file: path, startedAtUs, endedAtUs: nowUs(), ...end });
  try {
    const { bytes, lastPosition, ...backup } = await writeBackup(
      path,
      formatDateUs(startedAtUs),
      options,
    );
    await recordRun({ bytes, lastPosition, error: null });
    return { ...backup, bytes, lastPosition };
  } catch (cause) {
    const error = diskError(cause, path);
    const isOurs = isAppError(error) && error.code !== 'internal';
    const isIgnored = isOurs && ['usage', 'conflict', 'cancelled'].includes(error.code);
    const reason = isOurs ? errorText(error) : 'Internal error.';
    if (!isIgnored) await recordRun({ bytes: null, lastPosition: null, error: reason });
    throw error;
  }
}

async function writeBackup(path: string, madeAt: string, options: BackupOptions): Promise<Backup> {
  const { place, folder, signal } = options;
  const part = `${path}${partEnding}`;
  requireDatabase(place.dataDir);
  refuseDataDir(place.dataDir, folder);
  const release = await createAcquireLock(place.dataDir)('backup', { waitMs: 0 });
  try {
    makeDirectory(folder);
    removeIncomplete(folder);
    requireSpace(place.dataDir, folder);
    if (existsSync(path)) throw new AppError('conflict', `${path} already exists.`);
    createPart(part);
    await writeFiles(part, madeAt, options);
    // Until then, the signal truncates the database.
    if (signal?.aborted) throw cancelled();
    renameSync(part, path);
    await syncFolder(folder);
    return readBackup(path);
  } catch (error) {
    rmSync(part, { recursive: true, force: true });
    throw error;
  } finally {
    release();
  }
}

function refuseDataDir(dataDir: string, folder: string): void {
  let existing = folder;
  while (!existsSync(existing)) existing = dirname(existing);
  if (!`${realpathSync(existing)}/`.startsWith(`${realpathSync(dataDir)}/`)) return;
  throw new AppError('usage', `${folder} is in the data directory. Specify another folder.`);
}

function removeIncomplete(folder: string): void {
  for (const { path } of backupsIn(folder)) {
    if (path.endsWith(partEnding)) rmSync(path, { recursive: true });
  }
}

/** The thread, too, checks the disk of the data directory. */
function requireSpace(dataDir: string, folder: string): void {
  const needed = statSync(join(dataDir, databaseFileName)).size;
  const free = diskSize(folder)?.freeBytes ?? 0;
  if (free >= needed) return;
  const sizes = `${sizeText(free)} free, ${sizeText(needed)} needed`;
  throw new AppError('unavailable', `${folder} has not enough free space: ${sizes}.`);
}

function createPart(part: string): void {
  mkdirSync(part, { mode: 0o700 });
  if ((statSync(part).mode & 0o077) === 0) return;
  throw new AppError('configuration', `The file system of ${part} has no owner-only files.`, {
    advice: 'Specify another folder: the backup contains secrets.',
  });
}

/** The manifest is written last, after all other files are on disk. */
async function writeFiles(part: string, madeAt: string, options: BackupOptions): Promise<void> {
  const { place, version } = options;
  const files = [];
  for (const path of secretFilesIn(place.dataDir)) {
    const text = readOwnerOnly(join(place.dataDir, path));
    if (text === null) continue;
    await writeOwnerOnly(join(part, path), text);
    files.push(await sumOf(join(part, path), path, () => undefined));
  }
  const { content, sum } = await copyDatabase(join(part, databaseFileName), options);
  const about = { format: backupFormat, madeAt, version, ...content, files: [...files, sum] };
  await writeOwnerOnly(join(part, manifestName), `${JSON.stringify(about, null, 2)}\n`);
}

function secretFilesIn(dataDir: string): string[] {
  const folders = ['.', 'acme'].map((name) => join(dataDir, name)).filter(existsSync);
  return folders
    .flatMap((folder) => readdirSync(folder).map((name) => relative(dataDir, join(folder, name))))
    .filter((path) => keptFiles.test(path) && path !== databaseFileName);
}

async function copyDatabase(file: string, { place, onProgress, signal }: BackupOptions) {
  createOwnerOnly(file);
  // SQLite's check is one call, which ends early only if the file is truncated meanwhile.
  const stop = () => void truncate(file).catch(() => undefined);
  signal?.addEventListener('abort', stop, { once: true });
  const total = statSync(join(place.dataDir, databaseFileName)).size;
  const show = () => onProgress?.(Math.min(statSync(file).size, total), total);
  const timer = setInterval(show, progressEveryMs);
  try {
    const copy = (thread: Remote<BackupOperations>) => thread.copy(file);
    return await withThread('backups/backup-thread', place, copy, signal);
  } finally {
    clearInterval(timer);
  }
}
