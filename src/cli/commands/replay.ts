/** `earshot replay`: hands a part of the log over to a sink once more. */
import { Command } from 'commander';
import type { Io } from '../io.ts';
import { sinceOption, untilOption, yesOption } from '../shared-flags.ts';
import type { ReplayFlags } from '../sinks/replay-preview.ts';
import { readTimeArgument } from '../time-argument.ts';

export function replayCommand(io: Io): Command {
  const time = readTimeArgument(io);
  return new Command('replay')
    .description('Hand what was received before over to a sink once more.')
    .requiredOption('--sink <name>', 'a sink of earshot.config.ts')
    .addOption(sinceOption(time, 'received', 'all'))
    .addOption(untilOption(time, 'received'))
    .option('--filter <expression>', 'only products that match this $filter expression')
    .option('--dry-run', 'tell how many there are, and do nothing')
    .addOption(yesOption())
    .option('--json', 'as JSON: sink notifications replay')
    .addHelpText(
      'after',
      `
Counts first what the sink would get: what it wants by its own rules, and of that what matches the
filter; then asks. The receiver hands it over by the same path as what is new, behind what is new,
with replay: true, an id of its own, and notificationId as it was the first time. One that is not
running does it when it starts. Where a replay of the same has not finished, another is refused.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot replay --sink bus --since 7d --dry-run
  $ earshot replay --sink bus --since 2026-11-01 --until 2026-11-02 --yes
  $ earshot replay --sink act --filter "Collection/Name eq 'SENTINEL-1'" --since 24h`,
    )
    .action(async (flags: ReplayFlags) => {
      const { replay } = await import('../sinks/replay.ts');
      await replay(io, flags);
    });
}
