/** `earshot setup`: configures earshot and registers a subscription, with questions or flags. */
import type { Command } from 'commander';
import { defineCommand } from '../../core/cli/command.ts';
import { dryRunOption } from '../../core/cli/flags.ts';
import { addSubscriptionFlags } from '../subscriptions/register-filter.ts';
import type { SetupFlags } from './questions.ts';

export const setupCommand = defineCommand('setup', {
  description: 'Configure earshot step by step, start the receiver and register a subscription.',
  flags: (command) =>
    withTexts(
      addSubscriptionFlags(command)
        .addOption(dryRunOption())
        .option('--force', 'force the action (with --yes: change an existing .env)')
        .option('--yes', 'do not ask for confirmation (still ask for missing settings)')
        .option('--no-stay', 'stop the receiver after the registration'),
    ),
  help: `The command asks all questions. The defaults are the EARSHOT_ variables that are set, for example in
.env, and the flags of the subscription. With --yes, the command asks only for what is missing. Without a
terminal, the command lists the missing variables and flags and exits with code 2. Secrets are typed
without echo.

The command writes the EARSHOT_ variables to .env in the current folder and keeps all other lines.
Only the owner can read the file. Before the command writes the file, it shows the plan; answer n to
change answers. With --yes, an existing .env is changed only with --force. After a failed check, the
command asks all questions again, with your answers as defaults.

Then the command creates endpoint credentials, runs the checks of \`earshot doctor\`,
starts the receiver and registers the subscription. The receiver runs until Ctrl-C. With --no-stay,
the command stops the receiver at the end. You must then start the receiver immediately: the
catalogue retries a notification only three times.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot setup                        ask for all settings
  $ earshot setup --pull                 read a queue, without a public host
  $ earshot setup --collection S2 --area alps.geojson --yes     with the variables of .env
  $ EARSHOT_TLS=off earshot setup --dry-run     preview, behind a proxy`,
  run: async ({ command, ...io }, flags: SetupFlags) =>
    (await import('./run-setup.ts')).runSetup(io, flags, { version: io.version, command }),
});

/** Adds the option `texts`: the texts of all flags, which can be stored. A repeated flag adds its text. */
function withTexts(command: Command): Command {
  const texts: Record<string, string> = {};
  for (const option of command.options) {
    const name = option.attributeName();
    command.on(`option:${option.name()}`, (text: string | null) => {
      const before = texts[name] === undefined || text === null ? '' : `${texts[name]},`;
      texts[name] = `${before}${text ?? 'yes'}`;
    });
  }
  return command.setOptionValue('texts', texts);
}
