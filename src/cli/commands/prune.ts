/** `earshot prune`: removes the oldest notifications, and gives their space back. */
import { Command, InvalidArgumentError, Option } from 'commander';
import type { z } from 'zod';
import { keptAge, keptSize } from '../../config/values.ts';
import type { Io } from '../io.ts';
import type { PruneFlags } from '../prune/prune-command.ts';
import { yesOption } from '../shared-flags.ts';

export function pruneCommand(io: Io): Command {
  return new Command('prune')
    .description('Remove the oldest notifications for good, and give their space back.')
    .option('--older-than <age>', 'what was received longer ago: 365d, 52w', argument(keptAge))
    .option('--to-size <size>', 'until the log takes up no more: 20GB, 512MiB', argument(keptSize))
    .option('--quarantine', 'also entries of that age that are still held in quarantine')
    .addOption(
      new Option(
        '--forget-reader <name>',
        'give up the place of a reader, and do nothing else',
      ).conflicts(['olderThan', 'toSize', 'quarantine', 'dryRun', 'json']),
    )
    .option('--dry-run', 'tell what would go and what holds it back, and do nothing')
    .addOption(yesOption())
    .option('--json', 'as JSON: notifications from until bytes quarantined heldBy removed')
    .addHelpText(
      'after',
      `
Tells first what will go, then asks. Without --older-than and --to-size it does what EARSHOT_KEEP
says; with both, what fails either goes. It may run while the receiver serves, in short steps, and
be ended at any time: the same command goes on where it was.

What a reader has not finished stays: sinks with what waits for them and what they refused, replays,
summaries, the product index, and the places of \`earshot tail --reader\`. What holds back is named,
with what to do. A reader that nobody uses any more is given up with --forget-reader; of a sink the
name is sink:<name>.

What is gone is not fetched again, and not told to be missing (docs/keeping.md). --to-size speaks of
earshot.db; the product index beside it has a size of its own.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot prune --older-than 365d --dry-run
  $ earshot prune --older-than 365d
  $ earshot prune --to-size 20GB --yes
  $ earshot prune --forget-reader downloads`,
    )
    .action(async (flags: PruneFlags) => {
      const { runPrune } = await import('../prune/prune-command.ts');
      await runPrune(io, flags);
    });
}

function argument(schema: z.ZodType<number, string>): (text: string) => number {
  return (text) => {
    const parsed = schema.safeParse(text);
    if (parsed.success) return parsed.data;
    throw new InvalidArgumentError(`It ${parsed.error.issues.map(({ message }) => message)[0]}.`);
  };
}
