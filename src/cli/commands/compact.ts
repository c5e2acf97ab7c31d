/** `earshot compact`: makes the log take up as little room as it can. */
import { Command } from 'commander';
import type { Io } from '../io.ts';

export function compactCommand(io: Io): Command {
  return new Command('compact')
    .description('Compress the bodies of the log as far as it goes, and give their space back.')
    .option('--json', 'as JSON: bodies unreadable bytesBefore bytesAfter givenBackBytes')
    .addHelpText(
      'after',
      `
Notifications are kept byte by byte. The receiver compresses them in haste, and compacts them every
hour while it has time (EARSHOT_COMPACT); this does the same at once. What an older earshot stored
as it came is converted, too. Each pack is compared with what it replaces before that goes.

It may run while the receiver serves, in short steps, and be ended at any time: the same command
goes on where it was.

Fields of --json: bodies (that were moved into full packs), unreadable (rows that are damaged and
stay as they are), bytesBefore and bytesAfter (of earshot.db), givenBackBytes (by which it shrank).

Examples:
  $ earshot compact
  $ earshot compact --json`,
    )
    .action(async (flags: { json?: true }) => {
      const { runCompact } = await import('../compact/compact-command.ts');
      await runCompact(io, flags);
    });
}
