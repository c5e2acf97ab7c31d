/** Small file system for one test, which can be filled and emptied. Mounting requires root. */
import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

/** True if the tests can mount a disk; required in CI. */
export const canMount = process.env.CI !== undefined || process.getuid?.() === 0;

const pageBytes = 4_096;

export function mountSmallDisk(mebibytes: number) {
  const folder = temporaryDirectory();
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', folder]);
  onTestFinished(() => void spawnSync('umount', ['--lazy', folder]));
  const filler = join(folder, 'filler');
  const append = (bytes: number) => appendFileSync(filler, Buffer.alloc(bytes));
  return {
    folder,
    /** Fills the disk to the last page, as another program might. */
    fill: () => {
      for (const bytes of [2 ** 20, pageBytes]) untilFull(() => append(bytes));
    },
    /** Uses this much more space at once. */
    use: (used: number) => append(used * 2 ** 20),
    /** Frees what `fill` and `use` took. */
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
