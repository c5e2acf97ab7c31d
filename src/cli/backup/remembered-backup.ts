/** Makes a backup, and remembers what came of it. */

import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import type { BackupRun } from '../../domain/backups.ts';
import {
  type BackupOptions,
  type MadeBackup,
  makeBackup,
} from '../../store/backups/make-backup.ts';
import { readKeptFiles } from './kept-files.ts';

export interface RememberedBackup extends MadeBackup {
  run: BackupRun;
  /** Paths below the data directory. */
  files: readonly string[];
}

type Options = Omit<BackupOptions, 'about' | 'files'> & {
  /** Of earshot. */
  version: string;
  withSecrets: boolean;
};

/**
 * Rejects as `makeBackup` does, and remembers that as well, but for what was asked wrongly, or ended by the user.
 * `remember` must not reject.
 */
export async function makeRememberedBackup(
  { version, withSecrets, ...options }: Options,
  world: { nowUs: () => number; remember: (run: BackupRun) => Promise<void> },
): Promise<RememberedBackup> {
  const { file, place } = options;
  const startedAtUs = world.nowUs();
  const remembered = async (end: Pick<BackupRun, 'bytes' | 'lastPosition' | 'error'>) => {
    const run: BackupRun = { file, startedAtUs, endedAtUs: world.nowUs(), ...end };
    await world.remember(run);
    return run;
  };
  try {
    const files = withSecrets ? readKeptFiles(place.dataDir) : [];
    const about = { madeAtUs: startedAtUs, version };
    const made = await makeBackup({ ...options, about, files });
    const { bytes, lastPosition } = made;
    const run = await remembered({ bytes, lastPosition, error: null });
    return { ...made, run, files: files.map(({ path }) => path) };
  } catch (error) {
    const isOurs = error instanceof AppError && error.code !== 'internal';
    const isPassedOver = (['usage', 'conflict', 'cancelled'] as const).some((code) =>
      isAppError(error, code),
    );
    const reason = isOurs ? errorText(error) : 'The program failed in a way it should not.';
    if (!isPassedOver) await remembered({ bytes: null, lastPosition: null, error: reason });
    throw error;
  }
}
