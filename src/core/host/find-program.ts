/** Finds the program of a command line, as the system does. */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import type { Io } from '../cli/io.ts';

/** Returns null if the program can be executed; otherwise the reason, to follow "… cannot be run: ". */
export type FindProgram = (program: string) => string | null;

/** Searches by path if there is a slash, otherwise in the folders of PATH. */
export function createFindProgram({
  env,
  workingDir,
}: Pick<Io, 'env' | 'workingDir'>): FindProgram {
  const isExecutable = (path: string) => {
    try {
      accessSync(path, constants.X_OK);
      return statSync(path).isFile();
    } catch {
      return false;
    }
  };
  return (program) => {
    const folders = program.includes('/') ? [''] : (env.PATH ?? '').split(delimiter);
    const paths = folders.map((folder) => resolve(workingDir, join(folder, program)));
    return paths.some(isExecutable) ? null : 'there is no executable file of this name';
  };
}
