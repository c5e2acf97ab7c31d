/** Finds out whether a program of the user's can be started, without starting it. */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import type { Io } from './io.ts';

/** Null when the program is there and may be run; else why not, in words that complete "… cannot be run: ". */
export type FindProgram = (program: string) => string | null;

/** Looks where the system would: at the path, if it is one, else in the folders of PATH. */
export function createFindProgram({
  env,
  workingDir,
}: Pick<Io, 'env' | 'workingDir'>): FindProgram {
  return (program) => {
    if (program.includes('/')) return faultOf(resolve(workingDir, program));
    const folders = (env.PATH ?? '').split(delimiter).map((folder) => resolve(workingDir, folder));
    const faults = folders.map((folder) => faultOf(join(folder, program)));
    if (faults.includes(null)) return null;
    return faults.find((fault) => fault !== absent) ?? 'there is none of this name on the PATH';
  };
}

const absent = 'there is no such file';

function faultOf(path: string): string | null {
  try {
    if (!statSync(path).isFile()) return 'it is no file';
  } catch {
    return absent;
  }
  try {
    accessSync(path, constants.X_OK);
    return null;
  } catch {
    return 'the user that runs earshot may not execute it';
  }
}
