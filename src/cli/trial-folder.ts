/** Finds the settings of the working folder: its own, or those of a trial below; and reports what is missing. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseEnv } from 'node:util';
import { checkConfig } from '../config/config.ts';
import { subscriptionsFileName } from '../config/subscriptions-file.ts';
import { AppError } from '../domain/app-error.ts';
import { printable } from '../domain/text.ts';
import { nameCalledIn } from './called-as.ts';
import type { Io } from './io.ts';
import { painter } from './output.ts';

/** Default folder of a trial. */
export const trialFolderDefault = 'sandbox-trial';

/** Begin of the `.env` of a trial. */
export const trialHeader = '# Written by `earshot setup --sandbox`';

/** Commands that write settings or data of a folder, or need none. */
const withoutTrial = ['setup', 'restore', 'demo', 'sandbox', 'completion'];

/** Returns true if the folder is that of a trial. */
export function isTrial(folder: string): boolean {
  const path = join(folder, '.env');
  return existsSync(path) && readFileSync(path, 'utf8').startsWith(trialHeader);
}

/** Returns a trial in a folder below: the one that runs, otherwise the default one, otherwise any. Null for none. */
export function findTrial(folder: string): string | null {
  const isFolder = existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : [];
  const below = isFolder.filter((one) => one.isDirectory()).map(({ name }) => name);
  const trials = [trialFolderDefault, ...below].map((name) => join(folder, name)).filter(isTrial);
  const isRunning = (trial: string) => existsSync(join(trial, 'data', 'receiver.json'));
  return trials.find(isRunning) ?? trials[0] ?? null;
}

/** Returns true if the working folder has settings of its own, or data. */
export function hasSettings({ workingDir, env }: Pick<Io, 'workingDir' | 'env'>): boolean {
  return (
    Object.keys(env).some((variable) => variable.startsWith('EARSHOT_')) ||
    ['.env', subscriptionsFileName, 'data'].some((file) => existsSync(join(workingDir, file)))
  );
}

/** Commands that report the state of a receiver, and first whether there is one. */
const reporting = ['status', 'doctor'];

/**
 * Makes a command use the settings of a trial if the working folder has none, and prints that. `status` and `doctor` also
 * print how to set up the folder or how to continue its trial. Throws `usage` for `start`, because the catalogue of the
 * trial may not run.
 */
export async function useFolder(io: Io, name: string): Promise<void> {
  const { workingDir } = io;
  const note = (style: 'dim' | 'yellow', text: string) =>
    io.stderr.write(`${painter(io, io.stderr)(style, text)}\n`);
  const trial = withoutTrial.includes(name) ? null : findTrial(workingDir);
  const shown = printable(relative(workingDir, trial ?? workingDir));
  const hasOwn = hasSettings(io);
  if (trial !== null && !hasOwn && name === 'start') {
    throw new AppError('usage', `The only settings here are those of the trial in ./${shown}.`, {
      advice: `${continueText(shown)} To set up a receiver: \`earshot setup\`.`,
    });
  }
  if (trial !== null && !hasOwn) {
    note('dim', `Using the trial in ./${shown}.`);
    const settings = parseEnv(readFileSync(join(trial, '.env'), 'utf8'));
    io.env = { ...io.env, ...settings };
    io.envFileNames = new Set(Object.keys(settings));
    io.workingDir = trial;
  } else if (trial !== null && name === 'status') {
    const status = `cd ${shown} && ${nameCalledIn(trial, io)} status`;
    note('dim', `A trial is in ./${shown}. Its status: ${status}`);
  }
  if (!reporting.includes(name)) return;
  if (!isTrial(io.workingDir)) {
    const text = await setupNote(io);
    if (text !== null) note('yellow', text);
    return;
  }
  const { findRunning } = await import('./running-receiver.ts');
  if ((await findRunning(join(io.workingDir, 'data'), 0)) !== null) return;
  io.trialStep = continueText(printable(relative(workingDir, io.workingDir)));
  note('yellow', `The trial is stopped. ${io.trialStep}`);
}

function continueText(trial: string): string {
  const dir = ['', trialFolderDefault].includes(trial) ? '' : ` --dir ${trial}`;
  return `To continue the trial: \`earshot setup --sandbox${dir}\`.`;
}

/** Returns how to set up the folder; null if that is done. */
async function setupNote(io: Io): Promise<string | null> {
  if (!hasSettings(io)) {
    return 'This folder is not set up. To set up a receiver: `earshot setup`. To try earshot without an account: `earshot setup --sandbox`.';
  }
  const { dataDir = '' } = checkConfig(io, ['dataDir']).config;
  const { setupFileName } = await import('./setup/answers.ts');
  const isUnfinished = existsSync(join(dataDir, setupFileName));
  return isUnfinished ? 'Setup is not finished. To continue: `earshot setup`.' : null;
}
