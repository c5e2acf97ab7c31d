/** The doctor's check of the files in which users keep secrets: others should not read them. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Finding } from '../domain/finding.ts';
import { type Variable, variables } from './variables.ts';

/**
 * Looks at the files that `…_FILE` variables and EARSHOT_TLS_KEY name, and at `.env` in the working
 * directory. A group may read them: that is how keys are shared with a receiver.
 */
export async function checkSecretFiles(options: {
  env: Readonly<Record<string, string | undefined>>;
  workingDir: string;
}): Promise<Finding[]> {
  const check = 'secret files';
  const { env, workingDir } = options;
  const names = Object.values<Variable>(variables).flatMap(({ name, secret }) =>
    secret === true ? [`${name}_FILE`] : [],
  );
  const named = [...names, variables.tlsKey.name].flatMap((name) => env[name] || []);
  const files = [...new Set([...named, join(workingDir, '.env')])];
  const modes = await Promise.all(files.map(modeOf));
  const open = files.filter((_file, i) => ((modes[i] ?? 0) & 0o007) !== 0);
  if (open.length > 0) {
    const message = `Every user of this machine may read ${open.join(', ')}.`;
    return [{ check, state: 'warn', message, advice: `Run: chmod o= ${open.join(' ')}` }];
  }
  const there = modes.filter((mode) => mode !== null).length;
  if (there === 0) return [];
  const message = `${there === 1 ? 'The file' : `The ${there} files`} with secrets of yours cannot be read by everybody.`;
  return [{ check, state: 'pass', message }];
}

/** Null for a file that cannot be looked at: the check of the configuration reports it. */
async function modeOf(file: string): Promise<number | null> {
  return stat(file).then(
    ({ mode }) => mode,
    () => null,
  );
}
