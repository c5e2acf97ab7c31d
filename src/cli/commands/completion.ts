/** `earshot completion`: a script that completes commands and flags in a shell. */
import { basename } from 'node:path';
import { Argument, Command } from 'commander';
import { AppError } from '../../domain/app-error.ts';
import { completionScript, type Shell, shells } from '../completion-scripts.ts';
import type { Io } from '../io.ts';
import { writeOut } from '../write-out.ts';

export function completionCommand(io: Io): Command {
  return new Command('completion')
    .description('Print a script for a shell that completes commands and flags on Tab.')
    .addArgument(new Argument('[shell]', 'the shell (default: that of $SHELL)').choices(shells))
    .addHelpText(
      'after',
      `
The script knows all commands, flags and their choices, and starts no program. Print it again after
an upgrade. It completes the command \`earshot\`, which must be on the path.

Examples:
  $ earshot completion bash > ~/.local/share/bash-completion/completions/earshot
  $ earshot completion zsh > ~/.zfunc/_earshot       with fpath=(~/.zfunc $fpath) before compinit
  $ earshot completion fish > ~/.config/fish/completions/earshot.fish`,
    )
    .action(async (named: Shell | undefined, _flags, { parent }: Command) => {
      const shell = named ?? ownShell(io);
      if (parent !== null) await writeOut(io.stdout, completionScript(parent, shell));
    });
}

/** Throws `usage` for a shell that has no script. */
function ownShell({ env: { SHELL = '' } }: Pick<Io, 'env'>): Shell {
  const found = shells.find((shell) => shell === basename(SHELL));
  if (found !== undefined) return found;
  throw new AppError('usage', 'For which shell? $SHELL names none of bash, zsh and fish.', {
    advice: 'Name one, such as `earshot completion bash`.',
  });
}
