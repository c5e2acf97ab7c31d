/** `earshot admin completion`: prints a shell script that completes commands and flags. */
import { basename } from 'node:path';
import { Argument, type Command } from 'commander';
import { AppError } from '../../domain/app-error.ts';
import { defineCommand } from '../command.ts';
import type { Io } from '../io.ts';
import { writeOut } from '../output.ts';

const shells = ['bash', 'zsh', 'fish'] as const;

type Shell = (typeof shells)[number];

export const completionCommand = defineCommand('completion', {
  description: 'Print a shell script for Tab completion.',
  flags: (command) =>
    command.addArgument(new Argument('[shell]', 'shell (default: from $SHELL)').choices(shells)),
  help: `The script completes commands, flags and choices. The command \`earshot\` must be on the PATH. After
an upgrade of earshot, print the script again. For zsh, add fpath=(~/.zfunc $fpath) to ~/.zshrc,
before the line with compinit.

Exit codes: 0 done, 2 wrong usage.

Examples:
  $ earshot admin completion bash > ~/.local/share/bash-completion/completions/earshot   for bash
  $ earshot admin completion zsh > ~/.zfunc/_earshot    for zsh
  $ earshot admin completion fish > ~/.config/fish/completions/earshot.fish    for fish`,
  run: async ({ command, ...io }, _, shell = ownShell(io)) => {
    let program = command;
    while (program.parent !== null) program = program.parent;
    await writeOut(io.stdout, { bash, zsh, fish }[shell as Shell](levelsOf(program, '')));
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

/** Completions of one command; `path` is '' for the program itself. */
interface Level {
  path: string;
  /** Subcommands, or the choices of an argument. */
  words: readonly Word[];
  flags: readonly Flag[];
  takesFile: boolean;
}

interface Word {
  word: string;
  about: string;
}

interface Flag extends Word {
  short: string | undefined;
  isValued: boolean;
  choices: readonly string[];
  takesFile: boolean;
}

const namesFile = /[<[](file|folder|path)[>\]]/;

function levelsOf(command: Command, path: string): Level[] {
  const help = command.createHelp();
  const subcommands = help.visibleCommands(command);
  const taken = command.registeredArguments;
  const choices = taken.flatMap(({ argChoices = [], description }) =>
    argChoices.map((word) => ({ word, about: sentence(description) })),
  );
  const level = {
    path,
    words: [
      ...subcommands.map((one) => ({ word: one.name(), about: sentence(one.description()) })),
      ...choices,
    ],
    flags: help.visibleOptions(command).map((option) => ({
      word: option.long ?? option.flags,
      short: option.short,
      about: sentence(option.description),
      isValued: option.required,
      choices: option.argChoices ?? [],
      takesFile: namesFile.test(option.flags),
    })),
    takesFile: taken.some((one) => /^(file|folder|path)$/.test(one.name())),
  };
  const deeper = command.commands.flatMap((one) => levelsOf(one, `${path} ${one.name()}`.trim()));
  return [level, ...deeper];
}

/** Shortens a description to its first sentence or clause, for one line. */
function sentence(text: string): string {
  return text.split(/\. |; | \(/)[0]?.replace(/\.$/, '') ?? '';
}

/** Flags of any command that have a value. */
function valuedFlags(levels: readonly Level[]): string[] {
  const valued = levels.flatMap(({ flags }) => flags.filter(({ isValued }) => isValued));
  return [...new Set(valued.flatMap(({ word, short }) => (short ? [word, short] : [word])))];
}

const paths = (levels: readonly Level[]) => levels.map(({ path }) => path).filter(Boolean);

/** Branches of a `case` over the command and the flag whose value is completed. */
function valueBranches(levels: readonly Level[], reply: (flag: Flag) => string): string {
  const lines = levels.flatMap(({ path, flags }) =>
    flags
      .filter(({ isValued, choices, takesFile }) => isValued && (choices.length > 0 || takesFile))
      .map((flag) => {
        const names = flag.short ? [flag.word, flag.short] : [flag.word];
        return `      ${names.map((name) => `'${path} ${name}'`).join('|')}) ${reply(flag)} ;;`;
      }),
  );
  return lines.join('\n');
}

/** Code that finds the command and the flag to complete, for bash and zsh; `words` is the shell's array of words. */
function walk(levels: readonly Level[], words: string): string {
  return `  local at='' flag='' word
  for word in ${words}; do
    if [[ -n $flag ]]; then flag=''; continue; fi
    case $word in ${valuedFlags(levels).join('|')}) flag=$word; continue ;; esac
    case "$at\${at:+ }$word" in ${paths(levels)
      .map((path) => `'${path}'`)
      .join('|')}) at="$at\${at:+ }$word" ;; esac
  done`;
}

function bash(levels: readonly Level[]): string {
  const list = (words: readonly string[]) => `found='${words.join(' ')}'`;
  const next = levels.map(({ path, words, flags, takesFile }) => {
    const names = flags.map(({ word }) => word);
    const plain = words.length > 0 ? words.map(({ word }) => word) : names;
    const branch = takesFile ? 'files=1' : list(plain);
    return `      '${path}') if [[ $cur == -* ]]; then ${list(names)}; else ${branch}; fi ;;`;
  });
  return `# Completion of earshot for bash, printed by \`earshot admin completion bash\`.
_earshot() {
  local cur=\${COMP_WORDS[COMP_CWORD]} found='' files=''
${walk(levels, `"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`)}
  if [[ -n $flag ]]; then
    case "$at $flag" in
${valueBranches(levels, ({ choices }) => (choices.length > 0 ? list(choices) : 'files=1'))}
    esac
  else
    case $at in
${next.join('\n')}
    esac
  fi
  local IFS=$'\\n'
  if [[ -n $files ]]; then
    compopt -o filenames 2> /dev/null
    COMPREPLY=($(compgen -f -- "$cur"))
  else
    COMPREPLY=($(compgen -W "\${found// /$IFS}" -- "$cur"))
  fi
}
complete -F _earshot earshot
`;
}

function zsh(levels: readonly Level[]): string {
  const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const list = (words: readonly Word[]) =>
    `found=(${words.map(({ word, about }) => quote(`${word}:${about}`)).join(' ')})`;
  const next = levels.map(({ path, words, flags, takesFile }) => {
    const branch = takesFile ? '_files; return' : list(words.length > 0 ? words : flags);
    return `      '${path}') if [[ $words[CURRENT] == -* ]]; then ${list(flags)}; else ${branch}; fi ;;`;
  });
  const values = (choices: readonly string[]) => list(choices.map((word) => ({ word, about: '' })));
  return `#compdef earshot
# Completion of earshot for zsh, printed by \`earshot admin completion zsh\`.
_earshot() {
  local -a found
${walk(levels, `"\${(@)words[2,CURRENT-1]}"`)}
  if [[ -n $flag ]]; then
    case "$at $flag" in
${valueBranches(levels, ({ choices }) => (choices.length > 0 ? values(choices) : '_files; return'))}
    esac
  else
    case $at in
${next.join('\n')}
    esac
  fi
  _describe earshot found
}
# Loaded from fpath, the file is the function itself; sourced, it registers it.
if [[ $funcstack[1] == _earshot ]]; then _earshot "$@"; else compdef _earshot earshot; fi
`;
}

function fish(levels: readonly Level[]): string {
  const quote = (text: string) => `'${text.replaceAll(/[\\']/g, '\\$&')}'`;
  const lines = levels.flatMap(({ path, words, flags, takesFile }) => {
    const here = `complete -c earshot -n ${quote(`__earshot_at ${path}`.trim())}`;
    return [
      ...words.map(({ word, about }) => `${here} -f -a ${word} -d ${quote(about)}`),
      ...(takesFile ? [`${here} -F`] : []),
      ...flags.map(({ word, short, about, isValued, choices, takesFile: isFile }) => {
        const names = [...(short ? [`-s ${short.slice(1)}`] : []), `-l ${word.slice(2)}`];
        const value = isFile ? ['-r -F'] : isValued ? ['-x'] : [];
        const offered = choices.length > 0 ? [`-a ${quote(choices.join(' '))}`] : [];
        return [here, ...names, ...value, ...offered, '-d', quote(about)].join(' ');
      }),
    ];
  });
  return `# Completion of earshot for fish, printed by \`earshot admin completion fish\`.
function __earshot_at
  set -l at
  set -l is_value 0
  for word in (commandline -opc)[2..]
    if test $is_value = 1
      set is_value 0
    else if contains -- $word ${valuedFlags(levels).join(' ')}
      set is_value 1
    else if contains -- (string join ' ' -- $at $word) ${paths(levels).map(quote).join(' ')}
      set -a at $word
    end
  end
  test "$at" = "$argv"
end
complete -c earshot -f
${lines.join('\n')}
`;
}
