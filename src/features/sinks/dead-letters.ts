/** `earshot sinks dead`, `retry` and `drop`: manages dead letters and queues. */

import { InvalidArgumentError } from 'commander';
import { defineCommand, type Parts } from '../../core/cli/command.ts';
import { confirm, jsonOption, limitOption, yesOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { writeJson } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import { AppError } from '../../core/terms/app-error.ts';
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

type Ids = number[] | undefined;

export const retryCommand = defineCommand('retry', {
  description: 'Put dead letters back into the queue for another delivery.',
  flags: (command) =>
    command
      .argument('<sink>', 'name of the sink')
      .argument('[ids]', 'ids from `earshot sinks dead` (comma-separated)', readIds)
      .option('--all', 'select all (every dead letter)'),
  help: `Examples:
  $ earshot sinks retry bus 12,15     retry two dead letters
  $ earshot sinks retry bus --all     retry all dead letters
  $ earshot sinks dead bus            show the ids of the dead letters`,
  needs: ['store'],
  check: ({ all }: { all?: true }, _, sink: string, ids: Ids) => {
    requireIdsOrAll({ sink, ids, all }, 'retry');
  },
  run: (io, _flags, sink: string, ids: Ids) =>
    withLetters(io, { sink, ids }, async (chosen) => {
      const retried = ids === undefined ? 'all' : chosen;
      const count = await io.store.sinks.retry({ sink, ids: retried, nowUs: io.nowUs() });
      return `Queued ${counted(count, 'dead letter')} of ${sink} again.`;
    }),
});

interface DropFlags {
  all?: true;
  waiting?: true;
  yes?: true;
}

export const dropCommand = defineCommand('drop', {
  description: 'Drop dead letters or the queue of a sink.',
  flags: (command) =>
    command
      .argument('<sink>', 'name of the sink')
      .argument('[ids]', 'ids from `earshot sinks dead` (comma-separated)', readIds)
      .option('--all', 'select all (every dead letter)')
      .option('--waiting', 'drop the queue and the replay instead of dead letters')
      .addOption(yesOption()),
  help: `Dropped notifications are not delivered to the sink. The notifications remain in the log.

Examples:
  $ earshot sinks drop bus 12,15 --yes     drop two dead letters without a prompt
  $ earshot sinks drop bus --all           drop all dead letters
  $ earshot sinks drop bus --waiting       drop the queue and the replay`,
  needs: ['store'],
  check: ({ all, waiting }: DropFlags, _, sink: string, ids: Ids) => {
    if (!waiting) requireIdsOrAll({ sink, ids, all }, 'drop');
    else if (ids !== undefined || all) {
      throw new AppError('usage', '--waiting drops the whole queue. Omit the ids and --all.');
    }
  },
  run: (io, { waiting, yes, all }, sink: string, ids: Ids) =>
    waiting ? dropWaiting(io, { sink, yes }) : dropDeadLetters(io, { sink, ids, all, yes }),
});

function readIds(text: string): number[] {
  const ids = text.split(',').map(Number);
  if (ids.every((id) => Number.isSafeInteger(id) && id > 0)) return ids;
  throw new InvalidArgumentError('Use ids from `earshot sinks dead`: 12,15.');
}

interface Chosen {
  sink: string;
  ids: Ids;
  all?: true | undefined;
}

type WithStore = Io & Pick<Parts, 'store'>;

const dropEffect = 'The notifications remain in the log, but are not delivered.';

const dropDeadLetters = (
  io: WithStore,
  { sink, ids, all, yes }: Chosen & { yes: true | undefined },
) =>
  withLetters(io, { sink, ids }, async (chosen) => {
    const letters = `${counted(chosen.length, 'dead letter')} of ${sink}`;
    await confirm(io, `Drop ${all ? 'all ' : ''}${letters}? ${dropEffect}`, { yes });
    // Drops exactly the confirmed ones: newer dead letters remain.
    const request = { sink, state: 'dead', ids: chosen, nowUs: io.nowUs() } as const;
    return `Dropped ${counted(await io.store.sinks.drop(request), 'dead letter')} of ${sink}.`;
  });

function requireIdsOrAll({ sink, ids, all }: Chosen, command: 'retry' | 'drop'): void {
  const example = `\`earshot sinks ${command} ${sink} --all\``;
  if (ids === undefined && !all) {
    throw new AppError('usage', `Add ids of dead letters or --all: ${example}`);
  }
  if (ids !== undefined && all) {
    throw new AppError('usage', `Use either ids or --all: ${example}`);
  }
}

/** Changes the selected dead letters and prints the result. Changes nothing, and rejects, if an id is unknown. */
async function withLetters(
  io: WithStore,
  { sink, ids }: Chosen,
  change: (chosen: number[]) => Promise<string>,
): Promise<void> {
  await requireSink(sink, io, io.store.sinks);
  const letters = await Array.fromAsync(io.store.sinks.items({ sink, state: 'dead' }));
  const known = letters.map(({ id }) => id);
  const unknown = (ids ?? []).filter((id) => !known.includes(id));
  if (unknown.length > 0) {
    throw new AppError('not_found', `No such dead letters of ${sink}: ${unknown.join(', ')}.`, {
      advice: `To list dead letters: \`earshot sinks dead ${sink}\`.`,
    });
  }
  const chosen = [...new Set(ids ?? known)];
  const text = chosen.length === 0 ? `${sink} has no dead letters.` : await change(chosen);
  io.stderr.write(`${text}\n`);
}

/** Drops all that waits when the person has confirmed it, and ends the replay that fills the queue. */
async function dropWaiting(
  io: WithStore,
  { sink, yes }: { sink: string; yes: true | undefined },
): Promise<void> {
  const { sinks } = io.store;
  await requireSink(sink, io, sinks);
  const own = (await sinks.counts()).find((one) => one.sink === sink);
  const { waiting = 0, isReplaying = false } = own ?? {};
  if (waiting === 0 && !isReplaying)
    return void io.stderr.write(`The queue of ${sink} is empty.\n`);
  const ended = isReplaying ? ' and the rest of the replay' : '';
  const question = `Drop from the queue of ${sink}: ${counted(waiting, 'notification')}${ended}?`;
  await confirm(io, `${question} ${dropEffect}`, { yes });
  const dropped = await sinks.drop({ sink, state: 'waiting', ids: 'all', nowUs: io.nowUs() });
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
  return `\n${rest}To deliver all again: \`earshot sinks retry ${name} --all\`. To drop all: \`earshot sinks drop ${name} --all\`.\n`;
}

async function* toJson(items: AsyncIterable<SinkItem>) {
  for await (const item of items) {
    const { id, sink, position, productId, replayId: replay, attempts, error, queuedAtUs } = item;
    const queuedAt = formatDateUs(queuedAtUs);
    yield { id, sink, position, productId, replay, attempts, error, queuedAt };
  }
}
