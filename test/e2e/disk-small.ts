/** A small file system of a test's own, that can be filled up and emptied again. Mounting takes root. */
import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

export interface SmallDisk {
  folder: string;
  /** Leaves not one free page. */
  fill(): void;
  /** Takes away what `fill` has put there. */
  free(): void;
}

const pageBytes = 4_096;

export function mountSmallDisk(mebibytes: number): SmallDisk {
  const folder = temporaryDirectory();
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', folder]);
  onTestFinished(() => void spawnSync('umount', ['--lazy', folder]));
  const filler = join(folder, 'filler');
  return {
    folder,
    fill: () => {
      const page = Buffer.alloc(pageBytes);
      try {
        for (;;) appendFileSync(filler, page);
      } catch (error) {
        const isFull = error instanceof Error && 'code' in error && error.code === 'ENOSPC';
        if (!isFull) throw error;
      }
    },
    free: () => rmSync(filler, { force: true }),
  };
}
