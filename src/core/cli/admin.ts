/** `earshot admin`: commands that are rarely needed. */

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { needsEndpoint } from '../../admin/settings.ts';
import { defaultReserveBytes } from '../../store/engine/disk-limit.ts';
import { checkServed } from '../config/config.ts';
import { problemLine, problemsOf, type Variable } from '../config/load.ts';
import { readConfigFile, subscriptionsFileName } from '../config/subscriptions-file.ts';
import { variables } from '../config/variables.ts';
import { AppError } from '../terms/app-error.ts';
import * as report from '../terms/report.ts';
import { hidePassword, sizeText } from '../terms/text.ts';
import { defineCommand, defineGroup } from './command.ts';
import { dataDirOf, jsonOption } from './flags.ts';
import type { Io } from './io.ts';
import { printJson } from './output.ts';
import { printReport } from './print-report.ts';

export const adminCommand = defineGroup('admin', {
  description: 'Check the settings, the listener and the shared log.',
  help: `Examples:
  $ earshot admin config             print the settings and their problems
  $ earshot admin config --json      print them for a program
  $ earshot admin health             check the running receiver`,
  commands: [],
});

export const configCommand = defineCommand('config', {
  description: 'Print the effective settings and their sources, and check the settings.',
  flags: (command) => command.addOption(jsonOption()),
  help: `A setting comes from the environment, from .env in the working directory, from a file that a
variable such as EARSHOT_ACCOUNT_PASSWORD_FILE names, from --data-dir, or from the default. Secrets
are printed as (set). \`earshot start\` does the same checks.

Fields of --json: settings, dataDir, envFile, configFile, problems. envFile and configFile are
paths, or null if the file is missing. Each setting has name, value and source; unset values are
null.

Exit codes: 0 no problems, 1 failed, 2 wrong usage, or problems found.

Examples:
  $ earshot admin config    all settings
  $ earshot admin config --json | jq '.settings[] | select(.source == ".env")'  settings of .env
  $ earshot admin config | grep EARSHOT_TLS    HTTPS settings`,
  run: config,
});

interface Setting {
  name: string;
  value: string | null;
  source: string | null;
}

async function config(
  { command, ...io }: Io & { command: Command },
  { json }: { json?: true },
): Promise<void> {
  const hasFlag = dataDirOf(command) !== undefined;
  const settings = Object.entries(io.settings.variables).map(([name, row]) =>
    settingOf(name, row, io, hasFlag),
  );
  const problems = await problemsOfSettings(io);
  const dataDir = io.env.EARSHOT_DATA_DIR || variables.EARSHOT_DATA_DIR.default;
  const files = {
    dataDir: resolve(io.workingDir, dataDir),
    envFile: pathOf('.env', io),
    configFile: pathOf(subscriptionsFileName, io),
  };
  if (json) {
    const shown = { settings, ...files, problems };
    await printJson(io.stdout, shown);
  } else {
    const file = (name: string, path: string | null) => path ?? `no ${name} in ${io.workingDir}`;
    const blocks = [
      report.facts(
        ['data directory', files.dataDir],
        ['.env', file('.env', files.envFile)],
        ['earshot.config.ts', file(subscriptionsFileName, files.configFile)],
      ),
      report.table('Settings', columns, settings),
    ];
    await printReport(io, { title: 'Settings', blocks });
  }
  if (problems.length === 0) return;
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  throw new AppError('configuration', `${count} in the settings.`, { details: problems });
}

const columns: readonly report.Column<Setting>[] = [
  { title: 'variable', value: ({ name }) => name },
  {
    title: 'source',
    value: ({ name, source }) => source?.replace(`${name}_FILE`, '…_FILE') ?? null,
  },
  // The last column, never shortened, so that a path can be copied.
  { title: 'value', value: ({ value }) => value, isWhole: true },
];

function settingOf(
  name: string,
  { secret, default: fallback }: Variable,
  { env, envFileNames }: Io,
  hasDataDirFlag: boolean,
): Setting {
  const origin = (variable: string) => (envFileNames?.has(variable) ? '.env' : 'environment');
  const text = env[name];
  if (text) {
    const value = secret ? '(set)' : hidePassword(text);
    const isFlag = name === 'EARSHOT_DATA_DIR' && hasDataDirFlag;
    return { name, value, source: isFlag ? '--data-dir' : origin(name) };
  }
  const file = `${name}_FILE`;
  if (secret && env[file]) return { name, value: '(set)', source: `file of ${file}` };
  const value = fallback ?? (name === 'EARSHOT_DISK_RESERVE' ? defaultReserve(env) : null);
  return { name, value, source: value === null ? null : 'default' };
}

/** Default disk reserve, which depends on the size of the disk; null if that is unknown. */
function defaultReserve({ EARSHOT_DATA_DIR: dataDir }: Io['env']): string | null {
  const bytes = defaultReserveBytes(dataDir || variables.EARSHOT_DATA_DIR.default);
  return bytes === null ? null : sizeText(bytes);
}

/** Problems of the variables, as `start` checks them, and of earshot.config.ts. */
async function problemsOfSettings(io: Io): Promise<string[]> {
  const { problems } = checkServed(io, needsEndpoint(io));
  try {
    await readConfigFile(io);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    problems.push(...problemsOf(error));
  }
  return problems.map(problemLine);
}

function pathOf(name: string, { workingDir }: Pick<Io, 'workingDir'>): string | null {
  const path = join(workingDir, name);
  return existsSync(path) ? path : null;
}
