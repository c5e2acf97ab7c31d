/** `earshot sinks dead`, `retry` and `drop`: manages dead letters and queues. */

import { defineCommand, type Parts } from '../../core/cli/command.ts';
import { confirm, jsonOption, limitOption, yesOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { writeJson } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import { counted, countText } from '../../core/terms/text.ts';
import { requireSink } from './definitions.ts';
import { itemTable, readItems } from './report.ts';
import type { SinkItem, SinkReader } from './terms.ts';

/** Default limit of the table; JSON is unlimited. */
const deadRowsDefault = 50;

export const deadCommand = defineCommand('dead', {
  description: 'List dead letters, the newest first, with reasons.',
  flags: (command) =>
    command
      .argument('[sink]', 'name of the sink (default: all)')
      .addOption(limitOption({ note: `${deadRowsDefault} in tables, otherwise unlimited` }))
      .addOption(jsonOption()),
  help: `On a terminal, the reason is shortened. In a pipe and with --json, the reason is complete.

Fields of --json: id, sink, position, productId, replay, attempts, error, queuedAt. replay is the id
of the \`earshot sinks replay\` that queued the notification; null if no replay queued it.

Examples:
  $ earshot sinks dead                    list the dead letters of all sinks
  $ earshot sinks dead bus --limit 20     list the newest 20 dead letters of one sink
  $ earshot sinks dead bus --json         print all fields`,
  needs: ['reader'],
  run: async (
    io,
    { limit, json }: { limit?: number; json?: true },
    sink: string | undefined,
  ): Promise<void> => {
    const { sinks } = io.reader;
    if (sink !== undefined) await requireSink(sink, io, sinks);
    if (json) {
      await writeJson(io.stdout, toJson(sinks.items({ sink, state: 'dead', limit })));
      return;
    }
    const query = { sink, state: 'dead', limit: limit ?? deadRowsDefault } as const;
    const items = await readItems({ sinks, notifications: io.reader }, query);
    const table = itemTable('Dead letters', items, { state: 'dead', isOfOne: sink !== undefined });
    await printReport(io, { title: 'Dead letters', blocks: [table] });
    io.stderr.write(await closingLine(sinks, sink, items.length));
  },
});

export const retryCommand = defineCommand('retry', {
  description: 'Put all dead letters of a sink back into the queue for another delivery.',
  flags: (command) => command.argument('<sink>', 'name of the sink'),
  help: `Examples:
  $ earshot sinks retry bus     retry the dead letters
  $ earshot sinks dead bus      list the dead letters`,
  needs: ['store'],
  run: async (io, _flags, sink: string): Promise<void> => {
    const { sinks } = io.store;
    await requireSink(sink, io, sinks);
    const count = await sinks.retry({ sink, nowUs: io.nowUs() });
    const text = count === 0 ? noLetters(sink) : `Queued ${letters(count, sink)} again.`;
    io.stderr.write(`${text}\n`);
  },
});

export const dropCommand = defineCommand('drop', {
  description: 'Drop all dead letters or the queue of a sink.',
  flags: (command) =>
    command
      .argument('<sink>', 'name of the sink')
      .option('--waiting', 'drop the queue and the replay instead of dead letters')
      .addOption(yesOption()),
  help: `Dropped notifications are not delivered to the sink. The notifications remain in the log.

Examples:
  $ earshot sinks drop bus --yes         drop the dead letters without a prompt
  $ earshot sinks drop bus --waiting     drop the queue and the replay`,
  needs: ['store'],
  run: async (io, flags: DropFlags, sink: string): Promise<void> => {
    await requireSink(sink, io, io.store.sinks);
    if (flags.waiting) await dropWaiting(io, sink, flags);
    else await dropDeadLetters(io, sink, flags);
  },
});

interface DropFlags {
  waiting?: true;
  yes?: true;
}

type WithStore = Io & Pick<Parts, 'store'>;

const dropEffect = 'The notifications remain in the log, but are not delivered.';

const letters = (count: number, sink: string) => `${counted(count, 'dead letter')} of ${sink}`;
const noLetters = (sink: string) => `${sink} has no dead letters.`;

/** Drops exactly the dead letters that the person has confirmed: newer ones remain. */
async function dropDeadLetters(io: WithStore, sink: string, flags: DropFlags): Promise<void> {
  const { sinks } = io.store;
  const dead = await Array.fromAsync(sinks.items({ sink, state: 'dead' }));
  if (dead.length === 0) return void io.stderr.write(`${noLetters(sink)}\n`);
  await confirm(io, `Drop ${letters(dead.length, sink)}? ${dropEffect}`, flags);
  const dropped = await sinks.drop({ sink, state: 'dead', ids: dead.map(({ id }) => id) });
  io.stderr.write(`Dropped ${letters(dropped, sink)}.\n`);
}

/** Drops all that waits when the person has confirmed it, and ends the replay that fills the queue. */
async function dropWaiting(io: WithStore, sink: string, flags: DropFlags): Promise<void> {
  const { sinks } = io.store;
  const own = (await sinks.counts()).find((one) => one.sink === sink);
  const { waiting = 0, isReplaying = false } = own ?? {};
  if (waiting === 0 && !isReplaying)
    return void io.stderr.write(`The queue of ${sink} is empty.\n`);
  const ended = isReplaying ? ' and the rest of the replay' : '';
  const question = `Drop from the queue of ${sink}: ${counted(waiting, 'notification')}${ended}?`;
  await confirm(io, `${question} ${dropEffect}`, flags);
  const dropped = await sinks.drop({ sink, state: 'waiting' });
  io.stderr.write(
    `Dropped from the queue of ${sink}: ${counted(dropped, 'notification')}${ended}.\nTo deliver notifications again: \`earshot sinks replay --sink ${sink}\`\n`,
  );
}

async function closingLine(
  { counts }: Pick<SinkReader, 'counts'>,
  sink: string | undefined,
  shown: number,
): Promise<string> {
  if (shown === 0) return `No dead letters${sink === undefined ? '' : ` of ${sink}`}.\n`;
  const all = (await counts())
    .filter((one) => sink === undefined || one.sink === sink)
    .reduce((sum, { dead }) => sum + dead, 0);
  const rest =
    shown < all
      ? `The newest ${countText(shown)} of ${counted(all, 'dead letter')}. All: --limit ${all}\n`
      : '';
  const name = sink ?? '<sink>';
  return `\n${rest}To deliver all again: \`earshot sinks retry ${name}\`. To drop all: \`earshot sinks drop ${name}\`.\n`;
}

async function* toJson(items: AsyncIterable<SinkItem>) {
  for await (const item of items) {
    const { id, sink, position, productId, replayId: replay, attempts, error, queuedAtUs } = item;
    const queuedAt = formatDateUs(queuedAtUs);
    yield { id, sink, position, productId, replay, attempts, error, queuedAt };
  }
}
