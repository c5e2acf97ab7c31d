/** `earshot sinks`: where notifications are handed over to, what waits, and what was refused. */
import { Command, InvalidArgumentError } from 'commander';
import type { Io } from '../io.ts';
import { limitOption, yesOption } from '../shared-flags.ts';

export function sinksCommand(io: Io): Command {
  return new Command('sinks')
    .description('Look after the sinks of earshot.config.ts: what waits, and what was refused.')
    .addHelpText(
      'after',
      `
The receiver hands over; these commands look, and decide about dead letters: notifications that a
sink refused for good. See docs/sinks.md for what a sink gets.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot sinks
  $ earshot sinks test hook
  $ earshot sinks dead bus --limit 20
  $ earshot sinks retry bus --all
  $ earshot sinks drop bus 12,15 --yes`,
    )
    .addCommand(listCommand(io), { isDefault: true })
    .addCommand(testCommand(io))
    .addCommand(deadCommand(io))
    .addCommand(retryCommand(io))
    .addCommand(dropCommand(io));
}

function listCommand(io: Io): Command {
  return new Command('list')
    .description('List the sinks: how far each is, what waits and why, what is dead.')
    .option(
      '--json',
      'as JSON: sink target behind waiting dead oldestWaiting error delivered lastDelivery lag replays problems',
    )
    .addHelpText(
      'after',
      `
target: gone where earshot.config.ts does not have the sink any more, faulty
where it cannot be started, unknown while the file is rejected. behind: entries
of the log that were not read for the sink yet; - before its first start.
replays: those that are not queued completely. lag: age of the oldest
notification that was not delivered, in seconds. delivered: acknowledged
deliveries; last: the time of the last one.

Example:
  $ earshot sinks list`,
    )
    .action(async (flags: { json?: true }) => {
      const { listSinks } = await import('../sinks/list-sinks.ts');
      await listSinks(io, flags);
    });
}

function testCommand(io: Io): Command {
  return new Command('test')
    .description('Deliver one sample to a sink, and print its answer.')
    .argument('<sink>', 'its name')
    .addHelpText(
      'after',
      `
Sends the newest notification that the sink wants, or else a built-in sample. The document has
\`"test": true\` and an id that begins with test_. The sink's place in the log does not change.

Exit codes: 0 acknowledged, 1 not acknowledged, 2 wrong usage or configuration.

Example:
  $ earshot sinks test hook`,
    )
    .action(async (sink: string) => {
      const { testSink } = await import('../sinks/test-sink.ts');
      await testSink(io, sink);
    });
}

function deadCommand(io: Io): Command {
  return new Command('dead')
    .description(
      'List dead letters, newest first, with the reason (whole where it is piped, or in JSON).',
    )
    .argument('[sink]', 'only of this one')
    .addOption(limitOption({ note: 'table: 50, else all' }))
    .option('--json', 'as JSON: id sink position productId replay attempts error queuedAt')
    .addHelpText('after', '\nExample:\n  $ earshot sinks dead bus --limit 20')
    .action(async (sink: string | undefined, flags: { limit?: number; json?: true }) => {
      const { listDeadLetters } = await import('../sinks/list-dead-letters.ts');
      await listDeadLetters(io, { sink, ...flags });
    });
}

function retryCommand(io: Io): Command {
  return new Command('retry')
    .description('Set dead letters to wait again; the receiver hands them over.')
    .argument('<sink>', 'its name')
    .argument('[ids]', 'from `earshot sinks dead`, with commas', readIds)
    .option('--all', 'all of them')
    .addHelpText('after', '\nExample:\n  $ earshot sinks retry bus 12,15')
    .action(async (sink: string, ids: number[] | undefined, { all }: { all?: true }) => {
      const { retryDeadLetters } = await import('../sinks/dead-letters.ts');
      await retryDeadLetters(io, { sink, ids, all });
    });
}

function dropCommand(io: Io): Command {
  return new Command('drop')
    .description('Forget dead letters, or what waits. The notifications stay in the log.')
    .argument('<sink>', 'its name')
    .argument('[ids]', 'dead letters, from `earshot sinks dead`, with commas', readIds)
    .option('--all', 'all its dead letters')
    .option('--waiting', 'all that waits, and replays that have not ended')
    .addOption(yesOption())
    .addHelpText('after', '\nExample:\n  $ earshot sinks drop bus --waiting --yes')
    .action(async (sink: string, ids: number[] | undefined, flags: DropFlags) => {
      const { dropItems } = await import('../sinks/dead-letters.ts');
      await dropItems(io, { sink, ids, ...flags });
    });
}

interface DropFlags {
  all?: true;
  waiting?: true;
  yes?: true;
}

function readIds(text: string): number[] {
  const ids = text.split(',').map(Number);
  if (ids.every((id) => Number.isSafeInteger(id) && id > 0)) return ids;
  throw new InvalidArgumentError('Use ids as `earshot sinks dead` shows them: 12,15.');
}
