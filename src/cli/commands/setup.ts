/** `earshot setup`: from nothing to a registered subscription, with questions or flags. */
import { type Command, InvalidArgumentError } from 'commander';
import { defineCommand } from '../command.ts';
import { addSubscriptionFlags } from '../register-filter.ts';
import { addQuestionFlags, type ReadFlag, type SetupFlags } from '../setup/questions.ts';

export const setupCommand = defineCommand('setup', {
  description: 'Ask for the settings, write .env, start the receiver, and register a subscription.',
  flags: (command) =>
    addSubscriptionFlags(addQuestionFlags(command))
      .option('--sandbox', 'a trial without an account, in a folder of its own')
      .option('--dir <folder>', 'with --sandbox: that folder (default: sandbox-trial)')
      .option('--dry-run', 'print the file and the steps, change nothing')
      .option('--force', 'with --yes: change a .env that exists')
      .option('--yes', 'ask only what is missing')
      .option('--no-stay', 'stop the receiver after the registration'),
  help: `Asks for what no flag and no variable says, and explains an answer that it cannot use. Without a
terminal it lists all missing flags, and exits with 2. Secrets are no flags: they are asked without
echo, or read from files or variables.

Writes all EARSHOT_ variables of this run to .env in this folder, readable by its owner alone; lines
of other names stay. Creates endpoint credentials, runs the doctor's checks, starts the receiver,
registers the subscription when the receiver answers, and receives until Ctrl-C. With --no-stay the
receiver stops after the registration: start it at once, as the catalogue repeats a notification
three times only. What is lost before, the receiver fetches from the catalogue later.

With --sandbox a sandbox plays the catalogue on this machine, with an authority of its own; no
variable of this folder is used. Without flags the trial subscribes to SENTINEL-2. It runs until
Ctrl-C.

Examples:
  $ earshot setup                        questions, one after the other
  $ earshot setup --sandbox              a trial: the first notification within seconds
  $ earshot setup --host earshot.example.org --agree --account-username me@example.org \\
    --account-password-file ./account-password --collection S2 --area alps.geojson --yes
  $ earshot setup --host earshot.example.org --tls off --dry-run`,
  run: async ({ command, ...io }, flags: SetupFlags) => {
    const context = { version: io.version, readFlag: reader(command) };
    if (flags.sandbox) await (await import('../setup/trial.ts')).runTrial(io, flags, context);
    else await (await import('../setup/run-setup.ts')).runSetup(io, flags, context);
  },
});

/** The questions check an answer as the flag of the same name does. */
function reader(command: Command): ReadFlag {
  return (flag, text) => {
    const option = command.options.find((one) => one.attributeName() === flag);
    if (option?.parseArg === undefined) throw new InvalidArgumentError('It cannot be read.');
    return option.parseArg(text, undefined);
  };
}
