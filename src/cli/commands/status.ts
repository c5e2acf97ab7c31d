/** `earshot status`: whether all is well, on one screen. */
import { Command } from 'commander';
import type { Io } from '../io.ts';
import type { StatusFlags } from '../status/show-status.ts';

export function statusCommand(io: Io): Command {
  return new Command('status')
    .description('Show whether all is well, on one screen, and what to do when it is not.')
    .option('--json', 'as JSON: see below')
    .option('--check', 'exit with 3 when something is not well')
    .addHelpText(
      'after',
      `
The first line says whether all is well, or what is wrong most. Then a line for each part: receiver,
log, subscriptions, certificate, coverage of the last seven days, what reads the log, sinks,
summaries, disk, backup, alerts. A part that is not well has a mark, and its next step.

Works whether the receiver runs or not: it reads the data directory, and asks the receiver on this
machine whether it takes notifications, which needs its settings. Problems of these are listed last.
Active alerts are shown with their own text. Nothing is changed, and no other machine is asked.

--json: at version well parts failures receiver log subscriptions behindProxy certificate coverage
readers sinks summaries disk backups alerts; docs/status.md tells of each field. The same on
/api/status of the private listener, where the receiver itself tells.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 something is not well (--check).

Examples:
  $ earshot status
  $ earshot status --check > /dev/null || mail -s "earshot is not well" me@example.com
  $ earshot status --json | jq '.parts[] | select(.nextStep != null)'`,
    )
    .action(async (flags: StatusFlags, command: Command) => {
      const { showStatus } = await import('../status/show-status.ts');
      await showStatus(io, { ...flags, version: command.parent?.version() ?? 'unknown' });
    });
}
