/** Enforces the disk reserve: refuses writes that grow the store while free space is short. */
import { readdirSync, statfsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { AppError } from '../../core/terms/app-error.ts';
import type { DiskSpace } from '../../core/terms/ports.ts';
import { sizeText } from '../../core/terms/text.ts';

/** The default disk reserve: 5 % of the disk, within these limits. The lower one contains the largest commit twice. */
const [reserveBytesMin, reserveBytesMax] = [8 * 2 ** 20, 256 * 2 ** 20];

/** Interval between checks while enough space is free. Otherwise each call checks. */
const checkIntervalMs = 100;

/** Interval between two attempts to get space while writes are refused. */
const truncateIntervalMs = 1_000;

/** A data directory and its disk reserve: the default when not set, none with 0. */
export interface DataPlace {
  dataDir: string;
  diskReserveBytes?: number | undefined;
}

/**
 * Returns the current disk space; takes 40 µs on a slow and busy machine. The size of the write-ahead
 * logs is added to the reserve: a checkpoint needs it. Null when the file system does not report its
 * size or has none (kernel file systems).
 */
export function diskSpace({ dataDir, diskReserveBytes }: DataPlace): DiskSpace | null {
  try {
    const size = diskSize(dataDir);
    if (size === null) return null;
    const baseBytes = diskReserveBytes ?? defaultReserveOf(size);
    const reserveBytes = baseBytes === 0 ? 0 : baseBytes + walBytes(dataDir);
    return { ...size, reserveBytes };
  } catch {
    return null;
  }
}

/** Returns the default reserve for the disk of the data directory, which need not exist yet. */
export function defaultReserveBytes(dataDir: string): number | null {
  const path = resolve(dataDir);
  try {
    const size = diskSize(path);
    return size === null ? null : defaultReserveOf(size);
  } catch {
    return path === dirname(path) ? null : defaultReserveBytes(dirname(path));
  }
}

function defaultReserveOf({ totalBytes }: Pick<DiskSpace, 'totalBytes'>): number {
  return Math.floor(Math.min(Math.max(totalBytes / 20, reserveBytesMin), reserveBytesMax));
}

/** Returns the size of a write-ahead log at which a checkpoint runs: an eighth of the reserve; infinite without one. */
export function checkpointBytes({ dataDir, diskReserveBytes }: DataPlace): number {
  return (diskReserveBytes ?? defaultReserveBytes(dataDir) ?? 0) / 8 || Number.POSITIVE_INFINITY;
}

/** Returns null for a file system without a size (kernel file systems). */
export function diskSize(path: string): Pick<DiskSpace, 'freeBytes' | 'totalBytes'> | null {
  const { bavail, blocks, bsize, frsize } = statfsSync(path);
  if (blocks === 0) return null;
  // Blocks are counted in `frsize`; `bsize` is the transfer size and may be larger (statfs(2)).
  const blockBytes = frsize || bsize;
  return { freeBytes: bavail * blockBytes, totalBytes: blocks * blockBytes };
}

function walBytes(dataDir: string): number {
  return readdirSync(dataDir)
    .filter((name) => name.endsWith('-wal'))
    .map((name) => statSync(join(dataDir, name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * Returns a check for each transaction that adds data: it throws `unavailable` while less than the reserve is free.
 * First calls `truncateLog`, which truncates the write-ahead log if possible: without writes nothing else does, and its
 * size is part of the reserve.
 */
export function createDiskLimit(place: DataPlace, truncateLog: () => void): () => void {
  let [nextCheckAtMs, nextTruncateAtMs] = [0, 0];
  return () => {
    const nowMs = performance.now();
    if (nowMs < nextCheckAtMs) return;
    let space = diskSpace(place);
    if (space !== null && space.freeBytes < space.reserveBytes && nowMs >= nextTruncateAtMs) {
      nextTruncateAtMs = nowMs + truncateIntervalMs;
      truncateLog();
      space = diskSpace(place);
    }
    if (space === null || hasSpareSpace(space)) {
      nextCheckAtMs = nowMs + checkIntervalMs;
      return;
    }
    if (space.freeBytes >= space.reserveBytes) return;
    const [free, reserve] = [space.freeBytes, space.reserveBytes].map(sizeText);
    throw new AppError(
      'unavailable',
      `The disk is nearly full: ${free} free, below the reserve of ${reserve} (EARSHOT_DISK_RESERVE). Free some space: intake resumes automatically.`,
    );
  };
}

/** Returns true when at least twice the reserve is free. */
function hasSpareSpace({ freeBytes, reserveBytes }: DiskSpace): boolean {
  return freeBytes >= 2 * reserveBytes;
}

/**
 * Throws `unavailable` unless twice the reserve is free. For work that is less important than intake.
 * `what` is the subject of the message, such as `Backup`.
 */
export function requireFreeSpace(place: DataPlace, what: string): void {
  const space = diskSpace(place);
  if (space === null || hasSpareSpace(space)) return;
  throw insufficientSpace(what, space.freeBytes, 2 * space.reserveBytes);
}

/** Returns the free bytes above twice the reserve (write-ahead logs counted once); negative while intake needs all of it. */
export function spareBytes(place: DataPlace): number {
  const space = diskSpace(place);
  if (space === null) return Number.POSITIVE_INFINITY;
  const { freeBytes, reserveBytes } = space;
  return freeBytes - 2 * reserveBytes + (reserveBytes > 0 ? walBytes(place.dataDir) : 0);
}

/** Returns the error of work that pauses because it would use more disk space than is spare. */
export function insufficientSpace(what: string, freeBytes: number, neededBytes: number): AppError {
  const [free, needed] = [freeBytes, neededBytes].map(sizeText);
  return new AppError(
    'unavailable',
    `${what} is paused: only ${free} of disk space is free, and ${needed} must stay free for intake. Free some space: the work resumes automatically.`,
  );
}
