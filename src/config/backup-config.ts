/** What is backed up, and whether that is done by itself. */
import { frozen } from './frozen.ts';
import { type DataConfig, readDataConfig } from './read-config.ts';
import { type Environment, readVariables, refuseProblems } from './read-variables.ts';

export interface BackupConfig extends DataConfig {
  /** Where backups are put by themselves; null where none are made. */
  folder: string | null;
  everyHours: number;
  /** How many stay there. */
  keep: number;
}

/** Throws one `configuration` error that lists every problem. */
export function readBackupConfig(environment: Environment): Readonly<BackupConfig> {
  const place = readDataConfig(environment);
  const { values, problems } = readVariables(environment, [
    'backupDir',
    'backupEvery',
    'backupKeep',
  ]);
  refuseProblems(problems);
  const { backupDir: folder = null, backupEvery: everyHours, backupKeep: keep } = values;
  return frozen({ ...place, folder, everyHours, keep });
}
