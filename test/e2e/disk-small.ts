/** A small file system of a test's own, that can be filled up and emptied again. Mounting takes root. */
import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

export interface SmallDisk {
  folder: string;
  /** Leaves not one free page, as something else on the disk that grows. */
  fill(): void;
  /** Takes so much away at once. */
  take(mebibytes: number): void;
  /** Takes away what `fill` and `take` have put there. */
  free(): void;
  freeBytes(): number;
}

/** In CI it must be possible. */
export const canMount = process.env.CI !== undefined || process.getuid?.() === 0;

const pageBytes = 4_096;

export function mountSmallDisk(mebibytes: number): SmallDisk {
  const folder = temporaryDirectory();
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', folder]);
  onTestFinished(() => void spawnSync('umount', ['--lazy', folder]));
  const filler = join(folder, 'filler');
  const append = (bytes: number) => appendFileSync(filler, Buffer.alloc(bytes));
  return {
    folder,
    fill: () => {
      for (const bytes of [2 ** 20, pageBytes]) untilFull(() => append(bytes));
    },
    take: (taken) => append(taken * 2 ** 20),
    free: () => rmSync(filler, { force: true }),
    freeBytes: () => {
      const { bavail, bsize } = statfsSync(folder);
      return bavail * bsize;
    },
  };
}

function untilFull(step: () => void): void {
  try {
    for (;;) step();
  } catch (error) {
    const isFull = error instanceof Error && 'code' in error && error.code === 'ENOSPC';
    if (!isFull) throw error;
  }
}
