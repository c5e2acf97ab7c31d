/** Checks that other users of the machine cannot read the secret files of the user or change trusted files. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Finding } from '../domain/finding.ts';
import { subscriptionsFileName } from './subscriptions-file.ts';
import { type VariableName, variableRows } from './variables.ts';

const check = 'secret files';

/** Files that determine which certificates earshot uses and trusts, and the folder of the backups. */
const trustedNames: readonly VariableName[] = [
  'EARSHOT_TLS_CERT',
  'EARSHOT_ACME_CA',
  'EARSHOT_PROBE_CA',
  'EARSHOT_BACKUP_DIR',
];

/**
 * Checks the files named by variables, and `.env` and `earshot.config.ts` in the working directory. Group access is
 * allowed, as keys are shared with a receiver that way. For the doctor, and for the log at the start.
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
    ...openTo(0o007, modes, { access: 'read or change', fix: 'chmod o=' }),
    ...openTo(0o002, await modesOf(trusted), { access: 'change', fix: 'chmod o-w' }),
  ];
  if (found.length > 0 || modes.size === 0) return found;
  const message = `${modes.size === 1 ? 'The secret file is' : `The ${modes.size} secret files are`} not open to other users.`;
  return [{ check, state: 'pass', message }];
}

function openTo(
  bits: number,
  modes: ReadonlyMap<string, number>,
  { access, fix }: { access: string; fix: string },
): Finding[] {
  const open = [...modes].flatMap(([file, mode]) => ((mode & bits) === 0 ? [] : [file]));
  if (open.length === 0) return [];
  const message = `Every user of this machine can ${access} ${open.join(', ')}.`;
  return [{ check, state: 'warn', message, advice: `Run: ${fix} ${open.join(' ')}` }];
}

/** Omits files that cannot be read: the check of the configuration reports them. */
async function modesOf(files: readonly string[]): Promise<Map<string, number>> {
  const modes = new Map<string, number>();
  for (const file of files) {
    const stats = await stat(file).catch(() => null);
    if (stats !== null) modes.set(file, stats.mode);
  }
  return modes;
}
