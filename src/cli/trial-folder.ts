/** Finds the trial whose settings commands use in a folder without settings of its own. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseEnv } from 'node:util';
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

/**
 * Makes a command use the settings of a trial if the working folder has none, and prints that. Throws `usage` for
 * `start`, because the catalogue of the trial may not run.
 */
export function useTrial(io: Io, name: string): void {
  const { workingDir, env } = io;
  if (withoutTrial.includes(name)) return;
  const hasOwn = hasSettings(io);
  if (hasOwn && name !== 'status') return;
  const trial = findTrial(workingDir);
  if (trial === null) return;
  const shown = printable(relative(workingDir, trial));
  const note = (text: string) => io.stderr.write(`${painter(io, io.stderr)('dim', text)}\n`);
  if (hasOwn) {
    note(`A trial is in ./${shown}. Its status: cd ${shown} && ${nameCalledIn(trial, io)} status`);
    return;
  }
  if (name === 'start') {
    const dir = shown === trialFolderDefault ? '' : ` --dir ${shown}`;
    throw new AppError('usage', `The only settings here are those of the trial in ./${shown}.`, {
      advice: `To continue the trial: \`earshot setup --sandbox${dir}\`. To set up a receiver: \`earshot setup\`.`,
    });
  }
  note(`Using the trial in ./${shown}.`);
  const settings = parseEnv(readFileSync(join(trial, '.env'), 'utf8'));
  io.env = { ...env, ...settings };
  io.envFileNames = new Set(Object.keys(settings));
  io.workingDir = trial;
}
