/** `earshot admin completion`: prints a shell script, which calls the same command for the completions of a line. */
import { basename } from 'node:path';
import { Argument, type Command, type Option } from 'commander';
import { AppError } from '../../terms/app-error.ts';
import { defineCommand } from '../command.ts';
import type { Io } from '../io.ts';
import { writeOut } from '../output.ts';

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
