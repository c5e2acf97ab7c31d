/** `earshot config`: the settings that apply here, where each comes from, and their problems. */

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { readVariables } from '../../config/read-variables.ts';
import { readConfigFile, subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { type Variable, type VariableKey, variables } from '../../config/variables.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import { sizeText } from '../../domain/size-text.ts';
import { usualReserveBytes } from '../../store/engine/disk-limit.ts';
import type { Io } from '../io.ts';
import { dataDirOf } from '../shared-flags.ts';
import { type Column, printTable } from '../table.ts';
import { writeForeign, writeOut } from '../write-out.ts';

export function configCommand(io: Io): Command {
  return new Command('config')
    .description('Print the settings that apply here, and where each comes from.')
    .option('--json', 'as JSON: settings dataDir envFile configFile problems')
    .addHelpText(
      'after',
      `
Sources: the environment, the file .env of the working directory, the file that …_FILE names, the
flag --data-dir, and the default. Secrets are shown as (set). Settings are checked as by
\`earshot start\`, and all problems are listed at once; nothing else is read or changed.

Fields of --json: settings (each: name, value, source; null for what is not set), dataDir, envFile
and configFile (earshot.config.ts) as paths, null for files that are not there, and problems.

Exit codes: 0 no problems, 1 failed, 2 problems found.

Examples:
  $ earshot config
  $ earshot config --json | jq '.settings[] | select(.source == ".env")'`,
    )
    .action((flags: { json?: true }, command: Command) => config(io, flags, dataDirOf(command)));
}

interface Setting {
  name: string;
  value: string | null;
  source: string | null;
}

async function config(
  io: Io,
  { json }: { json?: true },
  dataDirFlag: string | undefined,
): Promise<void> {
  const settings = Object.values<Variable>(variables).map((row) => settingOf(row, io, dataDirFlag));
  const problems = await problemsOf(io);
  const dataDir = io.env.EARSHOT_DATA_DIR || variables.dataDir.default;
  const files = {
    dataDir: resolve(io.workingDir, dataDir),
    envFile: pathOf('.env', io),
    configFile: pathOf(subscriptionsFileName, io),
  };
  if (json) {
    const shown = { settings, ...files, problems };
    await writeForeign(io.stdout, `${JSON.stringify(shown, null, 2)}\n`);
  } else {
    const file = (name: string, path: string | null) => path ?? `no ${name} in ${io.workingDir}`;
    const lines = [
      `data directory     ${files.dataDir}`,
      `.env               ${file('.env', files.envFile)}`,
      `earshot.config.ts  ${file(subscriptionsFileName, files.configFile)}`,
    ];
    await writeForeign(io.stdout, `${lines.join('\n')}\n`);
    await writeOut(io.stdout, '\n');
    await printTable(io.stdout, columns, settings);
  }
  if (problems.length === 0) return;
  const count = problems.length === 1 ? 'One problem' : `${problems.length} problems`;
  throw new AppError('configuration', `${count} in the settings.`, { details: problems });
}

const columns: readonly Column<Setting>[] = [
  { title: 'variable', value: ({ name }) => name },
  {
    title: 'source',
    value: ({ name, source }) => source?.replace(`${name}_FILE`, '…_FILE') ?? '-',
  },
  // The last column, and never cut: a path without its end is of no use.
  { title: 'value', value: ({ value }) => value ?? '-', whole: true },
];

function settingOf(
  { name, secret, default: fallback }: Variable,
  { env, envFileNames }: Io,
  dataDirFlag: string | undefined,
): Setting {
  const origin = (variable: string) => (envFileNames?.has(variable) ? '.env' : 'environment');
  const text = env[name];
  if (text) {
    const value = secret ? '(set)' : text.replace(/\/\/[^/@\s]*@/, '//(hidden)@');
    const isFlag = name === variables.dataDir.name && dataDirFlag !== undefined;
    return { name, value, source: isFlag ? '--data-dir' : origin(name) };
  }
  const file = `${name}_FILE`;
  if (secret && env[file]) return { name, value: '(set)', source: `file of ${file}` };
  const value = fallback ?? (name === variables.diskReserve.name ? usualReserve(env) : null);
  return { name, value, source: value === null ? null : 'default' };
}

/** Depends on the size of the disk; null where that is not known. */
function usualReserve({ EARSHOT_DATA_DIR: dataDir }: Io['env']): string | null {
  const bytes = usualReserveBytes(dataDir || variables.dataDir.default);
  return bytes === null ? null : sizeText(bytes);
}

/** Those of single variables, of variables together as `start` reads them, and of earshot.config.ts. */
async function problemsOf(io: Io): Promise<string[]> {
  const { problems } = readVariables(io, Object.keys(variables) as VariableKey[]);
  const { readConfig } = await import('./start.ts');
  const reads = [
    async () => void readConfig(io),
    async () => void (await readConfigFile(join(io.workingDir, subscriptionsFileName))),
  ];
  for (const read of reads) {
    try {
      await read();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      problems.push(...(error.details.length === 0 ? [errorText(error)] : error.details));
    }
  }
  return [...new Set(problems)];
}

function pathOf(name: string, { workingDir }: Pick<Io, 'workingDir'>): string | null {
  const path = join(workingDir, name);
  return existsSync(path) ? path : null;
}
