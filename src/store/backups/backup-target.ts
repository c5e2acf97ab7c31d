/** Target of a backup: checks before it is written, the unfinished file, disk errors, and progress. */
import {
  closeSync,
  fstatSync,
  openSync,
  readFileSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { AppError, errorCodeOf } from '../../domain/app-error.ts';
import { sizeText } from '../../domain/text.ts';
import { makeDirectory, writeOwnerOnly } from '../../host/files.ts';
import { databaseFileName } from '../engine/database.ts';
import { type DataPlace, diskSize, diskSpace } from '../engine/disk-limit.ts';

/** Suffixes of the file and of those that SQLite creates next to it. */
const suffixes = ['', '-journal', '-wal', '-shm'] as const;
const partEnding = '.part';

/**
 * File in the data directory with the path of the unfinished backup, which may be in any folder. If it exists while the
 * backup lock is free, the process that wrote the backup was killed.
 */
const markerName = 'backup-in-progress';

export interface Part {
  /** Path of the unfinished file. */
  path: string;
  /** Removes the file and its marker. */
  remove(): void;
}

/** Reserves the name of the unfinished file. The caller holds the backup lock. */
export async function reservePart({ dataDir }: DataPlace, file: string): Promise<Part> {
  const path = `${file}${partEnding}`;
  await writeOwnerOnly(join(dataDir, markerName), path);
  removePart(path);
  return { path, remove: () => removeUnfinished(dataDir) };
}

/** Removes the unfinished backup of a killed process. The caller holds the backup lock. */
export function removeUnfinished(dataDir: string): void {
  const path = unfinishedBackup(dataDir);
  if (path?.endsWith(partEnding)) removePart(path);
  rmSync(join(dataDir, markerName), { force: true });
}

/** Returns the path of the backup that is in progress or was interrupted; null if there is none. */
export function unfinishedBackup(dataDir: string): string | null {
  try {
    return readFileSync(join(dataDir, markerName), 'utf8');
  } catch {
    return null;
  }
}

function removePart(part: string): void {
  for (const suffix of suffixes) rmSync(`${part}${suffix}`, { force: true });
}

/** Creates the folder for backups, owner-only, if it is missing. Throws `configuration` if that fails. */
export function createFolder(folder: string): void {
  try {
    makeDirectory(folder);
  } catch (cause) {
    throw new AppError(
      'configuration',
      `Failed to create the folder ${folder} (${errorCodeOf(cause)}). Give the user that runs earshot write permission there, or specify another folder.`,
      { cause },
    );
  }
}

/** Throws `usage` for a missing folder, for the data directory, and for an existing file without `replace`. */
export function refuseTarget({ dataDir }: DataPlace, file: string, replace: boolean): void {
  const folder = statsOf(dirname(file));
  if (folder?.isDirectory() !== true) {
    throw new AppError(
      'usage',
      `The folder ${dirname(file)} does not exist. Create this folder, or specify a path that ends with a slash: earshot then creates the folder.`,
    );
  }
  // Compares inodes, because the path may be a link.
  const data = statsOf(dataDir);
  if (folder.ino === data?.ino && folder.dev === data.dev) {
    throw new AppError(
      'usage',
      `${dirname(file)} is the data directory. Specify another folder, preferably on another disk.`,
    );
  }
  const existing = statsOf(file);
  if (existing?.isDirectory() === true || (existing !== undefined && !replace)) {
    throw new AppError('usage', `${file} already exists. Specify another file, or add --force.`);
  }
}

/**
 * Throws `unavailable` without enough free space for the copy. On the disk of the data directory, twice the disk
 * reserve must stay free.
 */
export function requireSpaceFor(place: DataPlace, file: string): void {
  const database = join(place.dataDir, databaseFileName);
  const sizes = [database, `${database}-wal`].map((path) => statsOf(path)?.size ?? 0);
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const isSameDisk = statsOf(dirname(file))?.dev === statsOf(place.dataDir)?.dev;
  const space = isSameDisk ? diskSpace(place) : null;
  const needed = bytes + 2 * (space?.reserveBytes ?? 0);
  const free = diskSize(dirname(file))?.freeBytes ?? 0;
  if (free >= needed) return;
  throw new AppError(
    'unavailable',
    `${dirname(file)} has not enough free space for a backup: ${sizeText(free)} free, ${sizeText(needed)} needed${isSameDisk ? ' (including the disk reserve)' : ''}. Free some space, or specify a folder on another disk.`,
  );
}

/** Throws `configuration` if no owner-only file can be created. SQLite gives its own files the same permissions. */
export function createPart(part: string, holdsSecrets: boolean): void {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(part, 'wx', 0o600);
    if (holdsSecrets && (fstatSync(descriptor).mode & 0o077) !== 0) {
      throw new AppError(
        'configuration',
        `The file system of ${dirname(part)} lets other users read every file, and the backup contains secrets. Specify another folder, or add --without-secrets.`,
      );
    }
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new AppError(
      'configuration',
      `Failed to create ${part} (${errorCodeOf(cause)}). Give the user that runs earshot write permission to its folder, or specify another folder.`,
      { cause },
    );
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function statsOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

const full = ['SQLITE_FULL', 'ENOSPC', 'EDQUOT'];

/** Converts a disk error to an AppError with advice. Returns any other error unchanged. */
export function diskError(error: unknown, path: string): unknown {
  if (error instanceof AppError) return error;
  const code = errorCodeOf(error);
  const failed = (message: string) => new AppError('unavailable', message, { cause: error });
  if (full.includes(code)) {
    return failed(`The disk of ${path} is full (${code}). Free some space, or use another disk.`);
  }
  if (!/^(E[A-Z]+|SQLITE_IOERR.*)$/.test(code)) return error;
  return failed(
    `${path} cannot be read or written (${code}). Check its permissions, the disk, and the system log. Some file systems limit files to 4 GiB.`,
  );
}

export interface BackupProgress {
  /** Unit of `done`: `copying` pages or bytes, `comparing` rows, `sealing` and `verifying` bytes. */
  phase: 'copying' | 'comparing' | 'checking' | 'sealing' | 'verifying';
  done: number;
  /** Null if unknown. */
  total: number | null;
}

export interface BackupWatch {
  /** Called several times a second. */
  onProgress?: ((progress: BackupProgress) => void) | undefined;
  signal?: AbortSignal | undefined;
}

export function cancelled(): AppError {
  return new AppError('cancelled', 'Cancelled. The incomplete backup was removed.');
}
