/** `earshot coverage`: shows, hour by hour, whether all that the catalogue published is here. */
import { Command } from 'commander';
import type { CoverageFlags } from '../coverage/show-coverage.ts';
import type { Io } from '../io.ts';
import { sinceOption, untilOption } from '../shared-flags.ts';
import { readTimeArgument } from '../time-argument.ts';

export function coverageCommand(io: Io): Command {
  const time = readTimeArgument(io);
  return new Command('coverage')
    .description('Show whether all that the catalogue published is here, hour by hour.')
    .addOption(sinceOption(time, 'hours', '7d'))
    .addOption(untilOption(time, 'hours'))
    .option('--subscription <name>', 'only this one')
    .option('--json', 'as JSON: see below')
    .addHelpText(
      'after',
      `
Hours are those of the events: when a product was published, modified or deleted. An hour is known
once it was compared with the catalogue, by the receiver half an hour after its end and once more a
day later, or by \`earshot reconcile\`. Counts:
  expected   what the catalogue shows of it, with the subscription's filter
  pushed     told by a push in time
  late       told by a push, but late, or after it had been fetched
  recovered  never pushed; fetched and written into the log
  missing    not in the log
  unknown    hours that were not compared yet
Of hours that are shown as pruned, notifications were removed (\`earshot prune\`): nothing is said.

Delays: from the end of sensing to the publication, from there to the notification, and from there
to its receipt; half of all took no longer than p50.

--json: since until missing subscriptions; of each subscription the counts, complete and told (the
shares of what is expected that is here, and that was pushed), comparedHours, unknownHours, hours
(hour, state and counts), delays in seconds. The same on /api/coverage of the private listener.

Exit codes: 0 nothing is missing, 1 failed, 2 wrong usage or configuration, 3 something is missing.

Examples:
  $ earshot coverage
  $ earshot coverage --since 24h --subscription alps
  $ earshot coverage --since 2026-11-01 --until 2026-12-01 --json`,
    )
    .action(async (flags: CoverageFlags) => {
      const { showCoverage } = await import('../coverage/show-coverage.ts');
      await showCoverage(io, flags);
    });
}
