/** `earshot admin`: commands that are rarely needed. */

import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { Argument, type Command, type Option } from 'commander';
import { needsEndpoint } from '../../admin/subscription-ways.ts';
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
import { printJson, writeOut } from './output.ts';
import { printReport } from './print-report.ts';

export const adminCommand = defineGroup('admin', {
  description: 'Check the settings, the listener, the product index and the shared log.',
  help: `Examples:
  $ earshot admin config             print the settings and their problems
  $ earshot admin index              print the state of the product index
  $ earshot admin health             check the running receiver
  $ earshot admin completion bash    print the completion script of a shell`,
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
  const { problems } = checkServed(io, await needsEndpoint(io));
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

const shells = ['bash', 'zsh', 'fish'] as const;

type Shell = (typeof shells)[number];

export const completionCommand = defineCommand('completion', {
  description: 'Print a shell script for Tab completion.',
  flags: (command) =>
    command
      .addArgument(new Argument('[shell]', 'shell (default: from $SHELL)').choices(shells))
      .argument('[words...]', 'words to complete (used by the script)'),
  help: `The script completes commands, flags and choices. The command \`earshot\` must be on the PATH. For
zsh, add fpath=(~/.zfunc $fpath) to ~/.zshrc, before the line with compinit.

Examples:
  $ earshot admin completion bash > ~/.local/share/bash-completion/completions/earshot   for bash
  $ earshot admin completion zsh > ~/.zfunc/_earshot    for zsh
  $ earshot admin completion fish > ~/.config/fish/completions/earshot.fish    for fish`,
  run: async ({ command, ...io }, _, shell?: string, words: string[] = []) => {
    const chosen = shell === undefined ? ownShell(io) : (shell as Shell);
    if (words.length === 0) return writeOut(io.stdout, scripts[chosen]);
    let program = command;
    while (program.parent !== null) program = program.parent;
    const lines = completionsOf(program, words).map(({ word, about }) => {
      if (chosen === 'bash' || about === '') return `${word}\n`;
      return `${word}${chosen === 'zsh' ? ':' : '\t'}${about}\n`;
    });
    await writeOut(io.stdout, lines.join(''));
  },
});

/** Returns the shell of $SHELL. Throws `usage` for an unsupported one. */
function ownShell({ env: { SHELL = '' } }: Pick<Io, 'env'>): Shell {
  const found = shells.find((shell) => shell === basename(SHELL));
  if (found !== undefined) return found;
  throw new AppError('usage', 'The shell is missing: $SHELL is not bash, zsh or fish.', {
    advice: 'Specify the shell: `earshot admin completion bash`.',
  });
}

interface Completion {
  word: string;
  about: string;
}

/** Makes the script offer files. */
const files: Completion = { word: ':files', about: '' };

/** Returns the completions of the last word. */
function completionsOf(program: Command, typed: readonly string[]): Completion[] {
  const begun = typed.at(-1) ?? '';
  let at = program;
  let flag: Option | undefined;
  for (const word of typed.slice(0, -1)) {
    const isValue = flag !== undefined;
    flag = isValue
      ? undefined
      : at.options.find(
          ({ required, long, short }) => required && (long === word || short === word),
        );
    if (!isValue) at = at.commands.find((one) => one.name() === word) ?? at;
  }
  const found = flag === undefined ? wordsOf(at, begun) : valuesOf(flag);
  return found.filter((one) => one === files || one.word.startsWith(begun));
}

function valuesOf({ flags, argChoices = [] }: Option): Completion[] {
  if (/[<[](file|folder|path)[>\]]/.test(flags)) return [files];
  return argChoices.map((word) => ({ word, about: '' }));
}

/** Returns the subcommands and choices of a command, or else its flags. */
function wordsOf(command: Command, begun: string): Completion[] {
  const help = command.createHelp();
  const taken = command.registeredArguments;
  if (!begun.startsWith('-')) {
    if (taken.some((one) => /^(file|folder|path)$/.test(one.name()))) return [files];
    const words = [
      ...help
        .visibleCommands(command)
        .map((one) => ({ word: one.name(), about: sentence(one.description()) })),
      ...taken.flatMap(({ argChoices = [] }) => argChoices.map((word) => ({ word, about: '' }))),
    ];
    if (words.length > 0) return words;
  }
  return help.visibleOptions(command).map(({ long, flags, description }) => {
    return { word: long ?? flags, about: sentence(description) };
  });
}

/** Shortens a description to its first sentence or clause, for one line. */
function sentence(text: string): string {
  return text.split(/\. |; | \(/)[0]?.replace(/\.$/, '') ?? '';
}

const scripts: Readonly<Record<Shell, string>> = {
  bash: `# Completion of earshot for bash, printed by \`earshot admin completion bash\`.
_earshot() {
  local IFS=$'\\n'
  COMPREPLY=($("\${COMP_WORDS[0]}" admin completion bash -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null))
  if [[ \${COMPREPLY[0]} == :files ]]; then
    compopt -o filenames 2> /dev/null
    COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
  fi
}
complete -F _earshot earshot
`,
  zsh: `#compdef earshot
# Completion of earshot for zsh, printed by \`earshot admin completion zsh\`.
_earshot() {
  local -a found
  found=("\${(@f)$("$words[1]" admin completion zsh -- "\${(@)words[2,CURRENT]}" 2> /dev/null)}")
  if [[ $found[1] == :files ]]; then _files; else _describe earshot found; fi
}
# Loaded from fpath, the file is the function itself; sourced, it registers it.
if [[ $funcstack[1] == _earshot ]]; then _earshot "$@"; else compdef _earshot earshot; fi
`,
  fish: `# Completion of earshot for fish, printed by \`earshot admin completion fish\`.
function __earshot_complete
  set -l words (commandline -opc)
  set -l begun (commandline -ct)
  set -l found ($words[1] admin completion fish -- $words[2..] "$begun" 2> /dev/null)
  if test "$found[1]" = :files
    __fish_complete_path "$begun"
  else
    string join \\n -- $found
  end
end
complete -c earshot -f -a '(__earshot_complete)'
`,
};
