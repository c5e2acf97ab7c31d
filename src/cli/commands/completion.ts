/** `earshot completion`: a script that completes commands and flags in a shell. */
import { Argument, Command } from 'commander';
import { completionScript, type Shell, shells } from '../completion-scripts.ts';
import type { Io } from '../io.ts';
import { writeOut } from '../write-out.ts';

export function completionCommand(io: Io): Command {
  return new Command('completion')
    .description('Print a script for a shell that completes commands and flags on Tab.')
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
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
    .action(async (shell: Shell, _flags, { parent }: Command) => {
      if (parent !== null) await writeOut(io.stdout, completionScript(parent, shell));
    });
}
