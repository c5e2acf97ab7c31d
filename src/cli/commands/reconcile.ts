/** `earshot reconcile`: compares the log with the catalogue, and writes what is missing into it. */
import { Command } from 'commander';
import type { Io } from '../io.ts';
import type { ReconcileFlags } from '../reconcile/reconcile-command.ts';
import { addHiddenAlias, sinceOption, untilOption } from '../shared-flags.ts';
import { readTimeArgument } from '../time-argument.ts';

export function reconcileCommand(io: Io): Command {
  const time = readTimeArgument(io);
  const command = new Command('reconcile')
    .description('Compare the log with the catalogue, and fetch what is missing.')
    .addOption(sinceOption(time, 'events', '24h'))
    .addOption(untilOption(time, 'events'))
    .option('--subscription <name>', 'only this one; may be given more than once', collect, [])
    .option('--dry-run', 'list what is missing, and write nothing')
    .option('--check', 'only count, and exit with 3 when something is missing')
    .option('--json', 'as JSON: see below')
    .addHelpText(
      'after',
      `
For each subscription that was registered here, asks the catalogue for what was published, modified
and deleted, with the filter and the events that held at that time, and looks each event up in the
log. What is missing is written into the log with the source "reconcile"; a push that comes late is
recognised as the same. Doing it twice adds nothing. The receiver does the same by itself
(EARSHOT_RECONCILE); this is for a look at once, a time before the subscription, or a machine where
no receiver runs.

Asks at most EARSHOT_RECONCILE_REQUESTS_PER_MINUTE times a minute, one after the other. After a
crash or Ctrl-C, the same command goes on from the last whole hour, within two hours of its start.

Expected are events since a subscription began, as in \`earshot coverage\`. With --from before that,
events of the earlier time are fetched, too, with the first filter, and counted apart.

The catalogue shows each product in its newest state only: a modification that was followed by
another one, and the publication of a product that has been deleted since, cannot be fetched.

--json: an object with from, to, requests, seconds (of these answersSeconds for the catalogue's
answers, waitedSeconds for its turn), fetched (events that were missing until now), and counts: one
row for each subscription and event (subscription event expected pushed late recovered missing
unreadable undecided; the last two are records that are not counted, as they have no proper Id or
date, or lack what the filter asks for); and earlier: fetched and counts (events in place of
expected) from before the subscription began. With --dry-run, JSON lines instead, one for each
missing event: subscription event productId productName date.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 something is missing (--check).

Examples:
  $ earshot reconcile --since 10d                         after ten days without a receiver
  $ earshot reconcile --since 2026-11-01 --until 2026-11-02 --check
  $ earshot reconcile --since 3d --subscription alps --dry-run`,
    )
    .action(async (flags: ReconcileFlags) => {
      const { runReconcile } = await import('../reconcile/reconcile-command.ts');
      await runReconcile(io, flags);
    });
  addHiddenAlias(command, '--from <time>', { of: 'since', parse: time });
  return addHiddenAlias(command, '--to <time>', { of: 'until', parse: time });
}

const collect = (text: string, before: readonly string[]) => [...before, text];
