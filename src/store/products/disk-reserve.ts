/** Room on the disk that indexing leaves alone: what is received comes first. */
import { statfsSync } from 'node:fs';
import { AppError } from '../../domain/app-error.ts';

/** Some 40,000 notifications with their bodies; many hours of the whole catalogue. */
const reserveBytes = 256 * 2 ** 20;

/** Throws `unavailable` while less than the reserve is free in a folder. */
export function requireRoom(folder: string): void {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= reserveBytes) return;
  const [free, reserve] = [bavail * bsize, reserveBytes].map((bytes) =>
    Math.floor(bytes / 2 ** 20),
  );
  throw new AppError(
    'unavailable',
    `Only ${free} MiB are free, and indexing leaves the last ${reserve} MiB to what is received. Make room: it goes on by itself.`,
  );
}
