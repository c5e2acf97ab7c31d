/** Keeps room on the disk: what makes the store grow is refused in time, and what ends things still has room. */
import { readdirSync, statfsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { AppError } from '../../domain/app-error.ts';
import type { DiskSpace } from '../../domain/ports.ts';
import { sizeText } from '../../domain/text.ts';

/** Kept unless told otherwise: so much, and of a small disk no more than this share. */
const reserveBytesUsual = 256 * 2 ** 20;

const reserveShareMax = 1 / 20;

/** While there is plenty; less is looked at each time. */
const lookEveryMs = 100;

/** A data directory, and what is kept free on its disk: the usual where that is not set, nothing with 0. */
export interface DataPlace {
  dataDir: string;
  diskReserveBytes?: number | undefined;
}

/**
 * The room as it is now; 40 µs on a slow and busy machine. Write-ahead logs are kept free once more, for their way
 * into the files that they belong to. Null where the file system does not say, or has no size, as those of the
 * kernel's own.
 */
export function diskSpace({ dataDir, diskReserveBytes }: DataPlace): DiskSpace | null {
  try {
    const size = diskSize(dataDir);
    if (size === null) return null;
    const keptBytes = diskReserveBytes ?? usualReserveOf(size);
    const reserveBytes = keptBytes === 0 ? 0 : keptBytes + walBytes(dataDir);
    return { ...size, reserveBytes };
  } catch {
    return null;
  }
}

/** The reserve without a setting, by the disk of the data directory, or of where it will be made. */
export function defaultReserveBytes(dataDir: string): number | null {
  const path = resolve(dataDir);
  try {
    const size = diskSize(path);
    return size === null ? null : usualReserveOf(size);
  } catch {
    return path === dirname(path) ? null : defaultReserveBytes(dirname(path));
  }
}

function usualReserveOf({ totalBytes }: Pick<DiskSpace, 'totalBytes'>): number {
  return Math.floor(Math.min(reserveBytesUsual, totalBytes * reserveShareMax));
}

/** Null for a file system without a size, as the kernel's own. */
export function diskSize(path: string): Pick<DiskSpace, 'freeBytes' | 'totalBytes'> | null {
  const { bavail, blocks, bsize, frsize } = statfsSync(path);
  if (blocks === 0) return null;
  // Blocks are counted in `frsize`; `bsize` is the size to transfer, and may be larger (statfs(2)).
  const blockBytes = frsize || bsize;
  return { freeBytes: bavail * blockBytes, totalBytes: blocks * blockBytes };
}

function walBytes(dataDir: string): number {
  return readdirSync(dataDir)
    .filter((name) => name.endsWith('-wal'))
    .map((name) => statSync(join(dataDir, name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, bytes) => sum + bytes, 0);
}

/** The function throws `unavailable` while less is free than is kept. Called before each transaction that adds. */
export function createDiskLimit(place: DataPlace): () => void {
  let plentyUntilMs = 0;
  return () => {
    const nowMs = performance.now();
    if (nowMs < plentyUntilMs) return;
    const room = diskSpace(place);
    if (room === null || hasSpareRoom(room)) {
      plentyUntilMs = nowMs + lookEveryMs;
      return;
    }
    if (room.freeBytes >= room.reserveBytes) return;
    const [free, kept] = [room.freeBytes, room.reserveBytes].map(sizeText);
    throw new AppError(
      'unavailable',
      `The disk is nearly full: ${free} are free, and the last ${kept} are kept, so that nothing is lost (EARSHOT_DISK_RESERVE). Free some space: intake goes on by itself.`,
    );
  };
}

/** Twice as much is free as is kept. */
function hasSpareRoom({ freeBytes, reserveBytes }: DiskSpace): boolean {
  return freeBytes >= 2 * reserveBytes;
}

/**
 * Throws `unavailable` unless twice the reserve is free: for work that is less important than intake. `what` is the
 * subject of the message, such as `A backup`.
 */
export function requireFreeSpace(place: DataPlace, what: string): void {
  const room = diskSpace(place);
  if (room === null || hasSpareRoom(room)) return;
  throw insufficientSpace(what, room.freeBytes, 2 * room.reserveBytes);
}

/** Free bytes above twice the reserve, with write-ahead logs counted once; below 0 while intake needs all of it. */
export function spareBytes(place: DataPlace): number {
  const room = diskSpace(place);
  if (room === null) return Number.POSITIVE_INFINITY;
  const { freeBytes, reserveBytes } = room;
  return freeBytes - 2 * reserveBytes + (reserveBytes > 0 ? walBytes(place.dataDir) : 0);
}

/** The error of work that pauses because it would use more of the disk than is spare. */
export function insufficientSpace(what: string, freeBytes: number, neededBytes: number): AppError {
  const [free, needed] = [freeBytes, neededBytes].map(sizeText);
  return new AppError(
    'unavailable',
    `${what} leaves the last ${needed} of the disk to intake, and ${free} are free. Free some space: it resumes automatically.`,
  );
}
