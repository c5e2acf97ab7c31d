/** Reports to status and doctor that a folder is not set up. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { checkConfig } from '../config/config.ts';
import { subscriptionsFileName } from '../config/subscriptions-file.ts';
import type { Io } from './io.ts';
import { painter } from './output.ts';

/** Name of the file in the data directory with the answers of an unfinished run. */
export const setupFileName = 'setup.json';

/** Returns true if the working folder has settings of its own, or data. */
export function hasSettings({ workingDir, env }: Pick<Io, 'workingDir' | 'env'>): boolean {
  return (
    Object.keys(env).some((variable) => variable.startsWith('EARSHOT_')) ||
    ['.env', subscriptionsFileName, 'data'].some((file) => existsSync(join(workingDir, file)))
  );
}

/** Prints how to set up the folder, unless that is done. */
export async function printFolderNote(io: Io): Promise<void> {
  const text = await folderNote(io);
  if (text !== null) io.stderr.write(`${painter(io, io.stderr)('yellow', text)}\n`);
}

async function folderNote(io: Io): Promise<string | null> {
  if (!hasSettings(io)) {
    return 'This folder is not set up. To set up a receiver: `earshot setup`. To try earshot without an account: `earshot demo`.';
  }
  const { dataDir = '' } = checkConfig(io, ['dataDir']).config;
  const isUnfinished = existsSync(join(dataDir, setupFileName));
  return isUnfinished ? 'Setup is not finished. To continue: `earshot setup`.' : null;
}
