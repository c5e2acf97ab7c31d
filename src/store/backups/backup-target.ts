/** The place of a backup: the checks before it is written, the file in which it grows, failures of its disk, its progress. */
import {
  closeSync,
  fstatSync,
  openSync,
  readFileSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AppError, errorCodeOf } from '../../domain/app-error.ts';
import { sizeText } from '../../domain/text.ts';
import { makeDirectory, writeOwnerOnly } from '../../host/files.ts';
import { databaseFileName } from '../engine/database.ts';
import { type DataPlace, diskSize, diskSpace } from '../engine/disk-limit.ts';

/** The file itself and those that SQLite creates next to it. */
const suffixes = ['', '-journal', '-wal', '-shm'] as const;
const partEnding = '.part';

/**
 * The file in the data directory that names the unfinished backup. Whoever holds the lock for backups and finds it
 * knows that the process behind it was killed, in whichever folder it wrote.
 */
const noteName = 'backup-in-progress';

export interface Part {
  /** Path of the unfinished file. */
  path: string;
  /** Removes it, with its note. */
  remove(): void;
}

/** Reserves the name of the unfinished file. The caller holds the lock for backups. */
export async function reservePart({ dataDir }: DataPlace, file: string): Promise<Part> {
  const path = `${file}${partEnding}`;
  await writeOwnerOnly(join(dataDir, noteName), path);
  removePart(path);
  return { path, remove: () => removeUnfinished(dataDir) };
}

/** Removes the backup that a killed process has left. The caller holds the lock for backups. */
export function removeUnfinished(dataDir: string): void {
  const path = unfinishedBackup(dataDir);
  if (path?.endsWith(partEnding)) removePart(path);
  rmSync(join(dataDir, noteName), { force: true });
}

/** Path of the backup that is in progress or was interrupted; null when there is none. */
export function unfinishedBackup(dataDir: string): string | null {
  try {
    return readFileSync(join(dataDir, noteName), 'utf8');
  } catch {
    return null;
  }
}

function removePart(part: string): void {
  for (const suffix of suffixes) rmSync(`${part}${suffix}`, { force: true });
}

/** Creates the folder for backups, owner-only, where it is missing. Throws `configuration` where that fails. */
export function createFolder(folder: string): void {
  try {
    makeDirectory(folder);
  } catch (cause) {
    throw new AppError(
      'configuration',
      `${folder} cannot be created as a folder (${errorCodeOf(cause)}). Give the user that runs earshot write permission there, or name another folder, or a file such as backup.db.`,
      { cause },
    );
  }
}

/** Throws `usage` for a missing folder, the data directory, and a file that exists and is not to be replaced. */
export function refuseTarget({ dataDir }: DataPlace, file: string, replace: boolean): void {
  const folder = statsOf(dirname(file));
  if (folder?.isDirectory() !== true) {
    throw new AppError(
      'usage',
      `There is no folder ${dirname(file)} for the file ${basename(file)}. Create it, owner-only; or name a folder, ending in a slash: that is created.`,
    );
  }
  // By its number: a link may lead there.
  const data = statsOf(dataDir);
  if (folder.ino === data?.ino && folder.dev === data.dev) {
    throw new AppError(
      'usage',
      `${dirname(file)} is the data directory itself, whose files are in use. Name another folder, best on another disk.`,
    );
  }
  const there = statsOf(file);
  if (there?.isDirectory() === true || (there !== undefined && !replace)) {
    throw new AppError('usage', `${file} is there already. Name another file, or add --force.`);
  }
}

/**
 * Throws `unavailable` without room for as much as is to be copied. On the disk of the data directory, more has to stay
 * free than intake needs.
 */
export function requireRoomFor(place: DataPlace, file: string): void {
  const database = join(place.dataDir, databaseFileName);
  const sizes = [database, `${database}-wal`].map((path) => statsOf(path)?.size ?? 0);
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const isSameDisk = statsOf(dirname(file))?.dev === statsOf(place.dataDir)?.dev;
  const room = isSameDisk ? diskSpace(place) : null;
  const needed = bytes + 2 * (room?.reserveBytes ?? 0);
  const free = diskSize(dirname(file))?.freeBytes ?? 0;
  if (free >= needed) return;
  throw new AppError(
    'unavailable',
    `${dirname(file)} has no room for a backup: ${sizeText(free)} are free, and it takes ${sizeText(needed)}${isSameDisk ? ', with what is kept free for what is received' : ''}. Free some space there, or name a folder on another disk.`,
  );
}

/** Throws `configuration` where no owner-only file can be created. SQLite gives the same rights to the files it adds. */
export function createPart(part: string, holdsSecrets: boolean): void {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(part, 'wx', 0o600);
    if (holdsSecrets && (fstatSync(descriptor).mode & 0o077) !== 0) {
      throw new AppError(
        'configuration',
        `${dirname(part)} is on a file system that lets others read every file, and a backup holds secrets. Name another folder, or add --without-secrets.`,
      );
    }
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new AppError(
      'configuration',
      `${basename(part)} cannot be made in ${dirname(part)} (${errorCodeOf(cause)}). Give the user that runs earshot write permission to that folder, or name another one.`,
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

/** The error of a disk that a backup is written to, or read from, with what to do. Any other error stays as it is. */
export function diskError(error: unknown, path: string): unknown {
  if (error instanceof AppError) return error;
  const code = errorCodeOf(error);
  const failed = (message: string) => new AppError('unavailable', message, { cause: error });
  if (full.includes(code)) {
    return failed(`The disk of ${path} is full (${code}). Free some space there, or name another.`);
  }
  if (!/^(E[A-Z]+|SQLITE_IOERR.*)$/.test(code)) return error;
  return failed(
    `${path} cannot be read or written (${code}). Look at its rights, at that disk, and at the system log; some file systems hold no file above 4 GiB.`,
  );
}

export interface BackupProgress {
  /** `copying` counts pages or bytes, `comparing` rows, `sealing` and `verifying` bytes. */
  phase: 'copying' | 'comparing' | 'checking' | 'sealing' | 'verifying';
  done: number;
  /** Null where it is not known. */
  total: number | null;
}

export interface BackupWatch {
  /** Called several times a second. */
  onProgress?: ((progress: BackupProgress) => void) | undefined;
  signal?: AbortSignal | undefined;
}

export function cancelled(): AppError {
  return new AppError('cancelled', 'Ended before it was finished; nothing of it was kept.');
}
