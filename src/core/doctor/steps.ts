/** Steps of `earshot doctor`, and the contribution of a feature to them. */

import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { AccountConfig } from '../../admin/settings.ts';
import type { Io } from '../cli/io.ts';
import type { StartConfig } from '../config/config.ts';
import type { Settings } from '../config/load.ts';
import { subscriptionsFileName } from '../config/subscriptions-file.ts';
import { passwordLengthMin } from '../config/variables.ts';
import { type Finding, type FindingCheck, finding } from '../terms/evaluation.ts';
import type { DesiredSubscription } from '../terms/subscription.ts';

export interface Step {
  /** Usual name of its findings; other steps refer to it. */
  name: string;
  /** Steps that must have succeeded: none of their findings is critical or unknown. */
  needs: readonly string[];
  run: FindingCheck;
}

/** Settings of the doctor. Undefined: not set, or not readable. */
export interface DoctorSettings {
  /** False if no public listener is configured. */
  hasEndpoint: boolean;
  dataDir: string;
  publicUrl: string | undefined;
  serve: StartConfig | undefined;
  account: AccountConfig | undefined;
  /** Subscriptions of `earshot.config.ts`; null without the file. */
  inFile: readonly DesiredSubscription[] | null | undefined;
}

/** Reads settings. A problem becomes a finding of the configuration. */
export interface SettingsReader {
  /** Returns undefined after a `configuration` error. */
  attempt<Value>(read: () => Value | Promise<Value>, nextStep?: string): Promise<Value | undefined>;
  report(message: string, nextStep: string): void;
}

export interface DoctorSlot {
  /** Reads the settings of the feature, and returns its steps. Rejects only for bugs. */
  stepsOf(settings: DoctorSettings, io: Io, reader: SettingsReader): Promise<Step[]>;
}

/** Makes a step for a setting that could not be read depend on the configuration, which failed. */
export const needsOf = (setting: unknown) => (setting === undefined ? ['configuration'] : []);

export const fixInFile = `Fix it in ${subscriptionsFileName}.`;

/** Returns a finding about a setting that must be corrected. */
export function settingFinding(check: string, text: string, nextStep = fixInFile): Finding {
  const [first = '', ...position] = text.split('\n');
  const found = finding(check, 'critical', first, nextStep, ...position);
  return { ...found, code: 'configuration' };
}

/**
 * Checks the files named by variables, `.env` and `earshot.config.ts` in the working directory, and files of the data
 * directory. Group access to the former is allowed, as keys are shared with a receiver that way. For the doctor, and for
 * the log at the start.
 */
export async function checkSecretFiles(options: {
  env: Readonly<Record<string, string | undefined>>;
  settings: Settings;
  workingDir: string;
  /** In the data directory. */
  secretFiles?: readonly string[];
  databaseFiles?: readonly string[];
}): Promise<Finding[]> {
  const { env, settings, workingDir, secretFiles = [], databaseFiles = [] } = options;
  const named = (names: readonly string[]) => names.flatMap((name) => env[name] || []);
  const variables = Object.entries(settings.variables);
  const secretNames = variables.flatMap(([name, { secret }]) => (secret ? [`${name}_FILE`] : []));
  const trustedNames = variables.flatMap(([name, { isTrusted }]) => (isTrusted ? [name] : []));
  const secrets = [...named([...secretNames, 'EARSHOT_TLS_KEY']), join(workingDir, '.env')];
  const trusted = [...named(trustedNames), join(workingDir, subscriptionsFileName)];
  const found = [
    ...(await openTo(0o077, secretFiles, 'critical', 'chmod 600')),
    ...(await openTo(0o077, databaseFiles, 'warning', 'chmod 600')),
    ...(await openTo(0o007, secrets, 'warning', 'chmod o=')),
    ...(await openTo(0o002, trusted, 'warning', 'chmod o-w')),
  ];
  return found.length > 0 ? found : [finding(check, 'ok', 'Other users cannot access the files.')];
}

const check = 'secret files';

/** Omits files that cannot be read: other checks report them. A file that every user can change is critical. */
async function openTo(
  bits: number,
  files: readonly string[],
  level: 'critical' | 'warning',
  fix: string,
): Promise<Finding[]> {
  const modes = await Promise.all(files.map((file) => stat(file).catch(() => null)));
  const having = (bits: number) => files.filter((_, i) => ((modes[i]?.mode ?? 0) & bits) !== 0);
  const changeable = having(0o002);
  const others = having(bits).filter((file) => !changeable.includes(file));
  const found = (open: readonly string[], ...[worst, text]: [typeof level, string]) =>
    open.length === 0
      ? []
      : [finding(check, worst, `${text} ${open.join(', ')}.`, `Run: ${fix} ${open.join(' ')}`)];
  return [
    ...found(changeable, 'critical', 'Every user of this machine can change'),
    ...found(others, level, 'Other users can access'),
  ];
}

/** Warns of a password that can be guessed. For the doctor, and for the log at the start. */
export function checkConsolePassword(password: string | undefined): Finding[] {
  if (password === undefined || password.length >= passwordLengthMin) return [];
  const text = `EARSHOT_CONSOLE_PASSWORD has fewer than ${passwordLengthMin} characters, and can be guessed.`;
  return [finding('configuration', 'warning', text, 'Set a longer password.')];
}
