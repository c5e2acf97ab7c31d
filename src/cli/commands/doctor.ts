/** `earshot doctor`: finds out what is wrong, from the configuration to the delivery. */
import { Command } from 'commander';
import type { Io } from '../io.ts';
import { dataDirOf } from '../shared-flags.ts';

export function doctorCommand(io: Io): Command {
  return new Command('doctor')
    .description('Check everything from configuration to delivery, and say what to do.')
    .option('--json', 'as JSON: check state message advice')
    .addHelpText(
      'after',
      `
Changes neither the account nor what is stored; may be run at any time, before anything else is set
up and beside a running receiver.
Each check passes, warns, fails, or is skipped when an earlier one makes it impossible.
What others see of the endpoint is seen from this machine: a firewall on the way does not show.

Fields of --json, one object for each finding: check (what was looked at), state (pass, warn, fail
or skipped), message (what was found), advice (what to do; null where there is nothing to do). Exit
code 1 when anything fails; warnings do not count.

Examples:
  $ earshot doctor
  $ earshot doctor --json | jq '.[] | select(.state == "fail")'`,
    )
    .action(async (flags: { json?: true }, command: Command) => {
      // Only a folder that was named: before the first start there is none.
      const dataDir = dataDirOf(command);
      if (dataDir !== undefined) {
        const { requireDatabase } = await import('../../store/engine/database.ts');
        requireDatabase(dataDir);
      }
      // Loaded when it is asked for: it touches every part of the program.
      const { runDoctor } = await import('../doctor/run-doctor.ts');
      await runDoctor(io, flags);
    });
}
