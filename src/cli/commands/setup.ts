/** `earshot setup`: configures earshot and registers a subscription, with questions or flags. */
import { type Command, InvalidArgumentError } from 'commander';
import { defineCommand } from '../command.ts';
import { dryRunOption } from '../flags.ts';
import { addSubscriptionFlags } from '../register-filter.ts';
import { addQuestionFlags, type ReadFlag, type SetupFlags } from '../setup/questions.ts';

export const setupCommand = defineCommand('setup', {
  description: 'Configure earshot step by step, start the receiver and register a subscription.',
  flags: (command) =>
    addSubscriptionFlags(addQuestionFlags(command))
      .option('--sandbox', 'trial without an account, in a separate folder')
      .option('--dir <folder>', 'folder of --sandbox (default: sandbox-trial)')
      .addOption(dryRunOption())
      .option('--force', 'override of a safety check (with --yes: changes an existing .env)')
      .option('--yes', 'no confirmation prompt (questions only for missing settings)')
      .option('--no-stay', 'stop of the receiver after the registration'),
  help: `Asks for settings that are not set by a flag or a variable. Without a terminal it lists the missing
flags and exits with 2. Secrets are read from files or variables, or asked without echo.

Writes the EARSHOT_ variables to .env in this folder, readable by its owner only, and keeps other
lines. Then it creates endpoint credentials, runs the checks of the doctor, starts the receiver,
registers the subscription, and receives until Ctrl-C. After --no-stay, start the receiver
immediately: the catalogue retries a notification only three times.

--sandbox uses a local imitation of the catalogue and no variable of this folder. Without flags, it
subscribes to SENTINEL-2.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot setup                        questions, one after the other
  $ earshot setup --sandbox              trial: the first notification within seconds
  $ earshot setup --host earshot.example.org --agree --account-username me@example.org \\
    --account-password-file ./account-password --collection S2 --area alps.geojson --yes
  $ earshot setup --host earshot.example.org --tls off --dry-run`,
  run: async ({ command, ...io }, flags: SetupFlags) => {
    const context = { version: io.version, readFlag: reader(command) };
    if (flags.sandbox) await (await import('../setup/trial.ts')).runTrial(io, flags, context);
    else await (await import('../setup/run-setup.ts')).runSetup(io, flags, context);
  },
});

/** Returns a function that checks an answer with the parser of the flag of the same name. */
function reader(command: Command): ReadFlag {
  return (flag, text) => {
    const option = command.options.find((one) => one.attributeName() === flag);
    if (option?.parseArg === undefined) throw new InvalidArgumentError('Unknown setting.');
    return option.parseArg(text, undefined);
  };
}
