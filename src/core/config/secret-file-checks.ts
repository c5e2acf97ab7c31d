/** Checks that other users of the machine cannot read the secret files of the user or change trusted files. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Finding, finding } from '../terms/finding.ts';
import type { Settings } from './load.ts';
import { subscriptionsFileName } from './subscriptions-file.ts';

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
