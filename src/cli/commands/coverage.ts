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
Hours are those of the events: when a product was published, modified or deleted. An hour is
compared with the catalogue by the receiver, half an hour after its end and once more a day later,
or by \`earshot reconcile\`. Before that, its counts are not known. Columns:
  expected   events that the catalogue shows since the subscription began, with its filter
  pushed     pushed within half an hour of the event
  late       pushed later, or after the event had been recovered
  recovered  never pushed; fetched and written into the log
  missing    not in the log: expected without pushed, late and recovered
  compared   hours that were compared, of those that ended half an hour ago or earlier
  complete   the share of expected events that is in the log
Of hours that are shown as pruned, notifications were removed (\`earshot prune\`).

Delays: from the end of sensing to the publication, from there to the notification, and from there
to its receipt; half of all took no longer than p50.

--json: since until comparison (automatic, and the reason when not) missing subscriptions; of each
subscription the counts, state (not-compared, partly-compared, compared), comparedHours,
unknownHours (due, and not compared), pendingHours (not due yet), nextComparison, complete and told
(the shares of expected events that are in the log, and that were pushed), hours (hour, state and
counts), delays in seconds. The same on /api/coverage of the private listener.

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
