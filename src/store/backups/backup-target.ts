/** Where a backup is written: that it may be made there, that there is room, and the file it grows in. */
import { closeSync, fstatSync, openSync, rmSync, type Stats, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AppError } from '../../domain/app-error.ts';
import { errorCodeOf } from '../../domain/error-code.ts';
import { sizeText } from '../../domain/size-text.ts';
import { databaseFileName } from '../database.ts';
import { type DataPlace, diskRoom } from '../disk-limit.ts';
import { freeBytesOf } from './free-bytes.ts';

/** What SQLite puts beside a file that it works on. */
const besides = ['', '-journal', '-wal', '-shm'] as const;

/** Removes what an interrupted backup has left. */
export function removePart(part: string): void {
  for (const suffix of besides) rmSync(`${part}${suffix}`, { force: true });
}

/** Throws `usage` for a place that is none, or in use, and for a file that is there and is not to be replaced. */
export function refuseTarget({ dataDir }: DataPlace, file: string, replace: boolean): void {
  const folder = statsOf(dirname(file));
  if (folder?.isDirectory() !== true) {
    throw new AppError(
      'usage',
      `There is no folder ${dirname(file)}. Make it, owner-only, or name another one.`,
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
export async function requireRoomFor(place: DataPlace, file: string): Promise<void> {
  const database = join(place.dataDir, databaseFileName);
  const sizes = [database, `${database}-wal`].map((path) => statsOf(path)?.size ?? 0);
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const isSameDisk = statsOf(dirname(file))?.dev === statsOf(place.dataDir)?.dev;
  const room = isSameDisk ? diskRoom(place) : null;
  const needed = bytes + 2 * (room?.reserveBytes ?? 0);
  const free = await freeBytesOf(dirname(file));
  if (free >= needed) return;
  throw new AppError(
    'unavailable',
    `${dirname(file)} has no room for a backup: ${sizeText(free)} are free, and it takes ${sizeText(needed)}${isSameDisk ? ', with what is kept free for what is received' : ''}. Free some space there, or name a folder on another disk.`,
  );
}

/** Throws `configuration` where there can be no file that is ours alone. SQLite gives the same rights to what it puts beside it. */
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
