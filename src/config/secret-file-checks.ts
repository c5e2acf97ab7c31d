/** The check of the files that users supply: others should neither read their secrets nor change what they say. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Finding } from '../domain/finding.ts';
import { subscriptionsFileName } from './subscriptions-file.ts';
import { type VariableName, variableRows } from './variables.ts';

const check = 'secret files';

/** Who changes these decides whom earshot trusts, or what it does. */
const trustedNames: readonly VariableName[] = [
  'EARSHOT_TLS_CERT',
  'EARSHOT_ACME_CA',
  'EARSHOT_PROBE_CA',
];

/**
 * Looks at the files that variables name, and at `.env` and `earshot.config.ts` in the working directory. A group may
 * read and change them: that is how keys are shared with a receiver. For the doctor, and for the log at the start.
 */
export async function checkSecretFiles(options: {
  env: Readonly<Record<string, string | undefined>>;
  workingDir: string;
}): Promise<Finding[]> {
  const { env, workingDir } = options;
  const named = (names: readonly string[]) => names.flatMap((name) => env[name] || []);
  const secretNames = variableRows.flatMap(([name, { secret }]) =>
    secret === true ? [`${name}_FILE`] : [],
  );
  const secrets = [...named([...secretNames, 'EARSHOT_TLS_KEY']), join(workingDir, '.env')];
  const trusted = [...named(trustedNames), join(workingDir, subscriptionsFileName)];
  const modes = await modesOf(secrets);
  const found = [
    ...openTo(0o007, modes, { may: 'read or change', away: 'chmod o=' }),
    ...openTo(0o002, await modesOf(trusted), { may: 'change', away: 'chmod o-w' }),
  ];
  if (found.length > 0 || modes.size === 0) return found;
  const message = `${modes.size === 1 ? 'The file' : `The ${modes.size} files`} with secrets of yours cannot be read by everybody.`;
  return [{ check, state: 'pass', message }];
}

function openTo(
  bits: number,
  modes: ReadonlyMap<string, number>,
  { may, away }: { may: string; away: string },
): Finding[] {
  const open = [...modes].flatMap(([file, mode]) => ((mode & bits) === 0 ? [] : [file]));
  if (open.length === 0) return [];
  const message = `Every user of this machine may ${may} ${open.join(', ')}.`;
  return [{ check, state: 'warn', message, advice: `Run: ${away} ${open.join(' ')}` }];
}

/** Without those that cannot be looked at: the check of the configuration reports them. */
async function modesOf(files: readonly string[]): Promise<Map<string, number>> {
  const modes = new Map<string, number>();
  for (const file of files) {
    const stats = await stat(file).catch(() => null);
    if (stats !== null) modes.set(file, stats.mode);
  }
  return modes;
}
