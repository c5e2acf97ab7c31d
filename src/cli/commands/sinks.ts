/** `earshot sinks`: lists the sinks with queues and dead letters. */
import { dataSections, loadConfig } from '../../config/config.ts';
import { type LoadedSinks, loadEachSink } from '../../config/sinks.ts';
import { subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import { type SinkReader, sinkReader, sinkTrouble, unusedSink } from '../../domain/sinks.ts';
import { firstOf } from '../../domain/streams.ts';
import { printable } from '../../domain/text.ts';
import type { SinkDefinition } from '../../sinks/registry.ts';
import type { StoreReader } from '../../store/store.ts';
import { asCalled } from '../called-as.ts';
import { defineCommand, defineGroup, type Parts, withParts } from '../command.ts';
import { deadCommand, dropCommand, retryCommand } from '../dead-letters.ts';
import { jsonOption } from '../flags.ts';
import type { Io } from '../io.ts';
import {
  type Column,
  countColumn,
  counted,
  isoTime,
  painter,
  printTable,
  wrapText,
  writeJson,
  writeOut,
} from '../output.ts';
import { noFileNote, receiverNote, unknownSinkSubscriptions } from '../sink-names.ts';
import { testCommand } from './test-sink.ts';

const listCommand = defineCommand('list', {
  description: 'Show backlog, queue, dead letters and errors of every sink.',
  flags: (command) => command.addOption(jsonOption()),
  help: `Columns:
  target     kind of the sink, or:
             gone     the sink is not in earshot.config.ts
             faulty   the sink cannot be started
             unknown  earshot.config.ts is invalid
  behind     backlog: number of log positions that the sink has not read; "-" if never started
  waiting    number of queued notifications
  replays    number of replays with notifications that are not queued yet
  lag        age of the oldest undelivered notification, in seconds
  delivered  number of acknowledged deliveries
  last       time of the last acknowledged delivery

Fields of --json: sink, target, behind, waiting, failed, dead, oldestWaiting, error, failingSince,
trouble, delivered, lastDelivery, lag, replays, problems. failed is the number of queued
notifications whose last attempt failed. trouble has the reason why a sink does not deliver, for
example "failing since 2026-05-01 14:20 UTC, 3 queued, last error: …". target is null for a sink
that is gone. problems has the reasons why a sink is faulty.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot sinks list                                           print a table
  $ earshot sinks list --json | jq '.[] | select(.dead > 0)'     list sinks with dead letters
  $ watch -n 10 earshot sinks list                               repeat every 10 seconds`,
  run: listSinks,
});

export const sinksCommand = defineGroup('sinks', {
  description: 'List and test sinks; retry or drop dead letters.',
  help: `The receiver delivers notifications to the sinks of earshot.config.ts. A dead letter is a
notification that a sink refused permanently. See docs/sinks.md.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot sinks                     list sinks
  $ earshot sinks test hook           deliver a test notification
  $ earshot sinks dead bus            list dead letters
  $ earshot sinks retry bus --all     retry all dead letters`,
  usual: listCommand,
  commands: [testCommand, deadCommand, retryCommand, dropCommand],
});

async function listSinks(io: Io, { json }: { json?: true }): Promise<void> {
  const read = await loadOrReason(io);
  try {
    await withParts(io, ['reader'], async ({ reader }) => {
      const rows = (await sinkRows(read.loaded, reader, io)).map((row) =>
        read.rejected === null ? row : { ...row, target: 'unknown' as const },
      );
      if (!json) return printSinks({ ...io, reader }, rows, read);
      await writeJson(io.stdout, rows);
      if (read.rejected !== null) io.stderr.write(`${read.rejected}\n`);
    });
  } catch (error) {
    // Without a data directory, the fault of the file is reported first.
    throw isAppError(error, 'configuration') ? (read.fault ?? error) : error;
  }
}

async function printSinks(
  io: Io & Pick<Parts, 'reader'>,
  rows: readonly SinkRow[],
  { loaded, rejected }: Awaited<ReturnType<typeof loadOrReason>>,
): Promise<void> {
  const noFile = noFileNote(io);
  if ((await printTable(io.stdout, columns, rows)) === 0) {
    const where = noFile === null ? '' : ` ${noFile}`;
    io.stderr.write(
      rejected === null
        ? `No sinks.${where} See docs/sinks.md to add one.\n`
        : `The data directory has no sinks.\n\n${rejected}\n`,
    );
    return;
  }
  await printSinkNotes(io, rows, { hasFile: noFile === null && rejected === null });
  const unknown = await unknownSinkSubscriptions(loaded.definitions, io.reader, io);
  const warnings = unknown.map(({ message, hint }) => `${message} ${hint}`);
  const shown = rejected && `${rejected} The list shows the sinks of the data directory.`;
  const config = loadConfig(io, dataSections);
  for (const note of [shown, noFile, ...warnings, await receiverNote(config)]) {
    if (note !== null) io.stderr.write(`\n${note}\n`);
  }
}

/** Loads the sinks of the file, or the reason of a failure: the sinks of the store are listed in any case. */
async function loadOrReason({ workingDir }: Pick<Io, 'workingDir'>) {
  try {
    return { loaded: await loadEachSink(workingDir), rejected: null, fault: null };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const faults = error.details.map((detail) => `\n  - ${printable(detail)}`).join('');
    const rejected = `The current earshot.config.ts is rejected: ${errorText(error)}${faults}\nA running receiver continues with its last valid version.`;
    return { loaded: { definitions: [], faulty: [] }, rejected, fault: error };
  }
}

async function sinkRows(
  { definitions, faulty }: LoadedSinks,
  store: StoreReader,
  { nowUs }: Pick<Io, 'nowUs'>,
): Promise<SinkRow[]> {
  const [counts, deliveries, replays, lastPosition] = await Promise.all([
    store.sinks.counts(),
    store.sinks.deliveries(),
    store.sinks.replays({ all: false }),
    store.lastPosition(),
  ]);
  const inFile = [...definitions, ...faulty].map(({ name }) => name);
  const names = [...new Set([...inFile, ...counts.map((one) => one.sink)])];
  return Promise.all(
    names.toSorted().map(async (sink) => {
      const sound = definitions.find(({ name }) => name === sink)?.target.kind;
      const fault = faulty.find(({ name }) => name === sink);
      const count = counts.find((one) => one.sink === sink) ?? unusedSink(sink);
      const cursor = await store.cursor(sinkReader(sink));
      const oldest = count.oldestQueuedAtUs;
      const done = deliveries.find((one) => one.sink === sink);
      const unread = cursor === null ? null : await firstOf(store, { afterPosition: cursor });
      const undelivered = [oldest, unread?.receivedAtUs ?? null];
      const since = undelivered.filter((atUs) => atUs !== null);
      const ages = since.map((atUs) => Math.max(0, Math.round((nowUs() - atUs) / 1_000_000)));
      return {
        sink,
        target: sound ?? (fault === undefined ? null : 'faulty'),
        behind: cursor === null ? null : Math.max(0, lastPosition - cursor),
        waiting: count.waiting,
        failed: count.failed,
        dead: count.dead,
        oldestWaiting: isoTime(oldest),
        error: count.error,
        failingSince: isoTime(count.failingSinceUs),
        trouble: sinkTrouble(count, nowUs()),
        delivered: done?.delivered ?? 0,
        lastDelivery: isoTime(done?.lastAtUs ?? null),
        lag: cursor === null && ages.length === 0 ? null : Math.max(0, ...ages),
        replays: replays.filter((one) => one.sink === sink).length,
        problems: fault?.problems ?? [],
      };
    }),
  );
}

const columns: readonly Column<SinkRow>[] = [
  { title: 'sink', value: ({ sink }) => sink, flexible: true },
  { title: 'target', value: ({ target }) => target ?? 'gone' },
  ...(['behind', 'waiting', 'dead', 'replays'] as const).map((key) => countColumn(key)),
  countColumn('lag', 'lag (s)'),
  countColumn('delivered'),
  {
    title: 'last (UTC)',
    value: ({ lastDelivery }) => lastDelivery?.slice(5, 16).replace('T', ' ') ?? '-',
  },
];

/** Prints notes about each sink. Without `earshot.config.ts` (`hasFile`), every sink would appear as removed. */
async function printSinkNotes(
  io: Io & Pick<Parts, 'reader'>,
  rows: readonly SinkRow[],
  { hasFile }: { hasFile: boolean },
): Promise<void> {
  const paint = painter(io, io.stdout);
  const { sinks } = io.reader;
  for (const row of rows) {
    if (row.target === 'faulty') await printFaults(io, row);
    const removed = hasFile ? removedNote(row) : null;
    for (const note of [queueNote(row), await deadLetterNote(row, sinks), removed]) {
      if (note === null) continue;
      const lines = wrapText(asCalled(printable(note), io), '  ', io.stdout);
      const shown = lines.map((line) => paint('yellow', line));
      await writeOut(io.stdout, `\n${shown.join('\n')}\n`);
    }
  }
}

/** Prints the faults of a sink. Lines that mark a position in a filter are not wrapped. */
async function printFaults(io: Io, { sink, problems }: SinkRow): Promise<void> {
  const paint = painter(io, io.stdout);
  const head = `${sink} has faults and is not started. Fix the sink in ${subscriptionsFileName}:`;
  const faults = problems.flatMap((problem) => {
    const [first = '', ...places] = problem.split('\n').map(printable);
    return [...wrapText(first, '    ', io.stdout), ...places.map((line) => `    ${line}`)];
  });
  const lines = [...wrapText(head, '  ', io.stdout), ...faults];
  await writeOut(io.stdout, `\n${lines.map((line) => paint('yellow', line)).join('\n')}\n`);
}

/** Note about failed deliveries of the queue; null without any. Dead letters have their own note. */
function queueNote({ sink, failed, error, trouble }: SinkRow): string | null {
  if (trouble !== null) return `${sink}: ${trouble}.`;
  if (failed === 0) return null;
  return `${sink} did not accept ${counted(failed, 'queued notification')}. Last error: ${error ?? '-'}.`;
}

async function deadLetterNote(
  { sink, dead }: SinkRow,
  { items }: Pick<SinkReader, 'items'>,
): Promise<string | null> {
  for await (const { error } of items({ sink, state: 'dead', limit: 1 })) {
    const letters = counted(dead, 'dead letter');
    return `${sink} has ${letters}. Last error: ${error ?? '-'}. To list: \`earshot sinks dead ${sink}\`.`;
  }
  return null;
}

/** Note about a sink that was removed from earshot.config.ts, with the commands that drop its items. */
function removedNote({ sink, target, waiting, dead, replays }: SinkRow): string | null {
  const drops = [
    ...(dead > 0 ? [`To drop its dead letters: \`earshot sinks drop ${sink} --all\`.`] : []),
    ...(waiting + replays > 0
      ? [`To drop its queue: \`earshot sinks drop ${sink} --waiting\`.`]
      : []),
  ];
  if (target !== null || drops.length === 0) return null;
  return `${sink} is no longer in earshot.config.ts. ${drops.join(' ')}`;
}

interface SinkRow {
  sink: string;
  /** Null if not in earshot.config.ts; `faulty` if it cannot be started; `unknown` if the file cannot be read. */
  target: SinkDefinition['target']['kind'] | 'faulty' | 'unknown' | null;
  /** Backlog in positions of the log; null before its first start. */
  behind: number | null;
  waiting: number;
  /** Waiting notifications whose last attempt failed. */
  failed: number;
  dead: number;
  oldestWaiting: string | null;
  error: string | null;
  /** Time since which the sink accepts nothing; null if the last delivery succeeded. */
  failingSince: string | null;
  /** Why the sink does not deliver; null if it delivers, or nothing waits. */
  trouble: string | null;
  /** Number of acknowledged deliveries, including replays. */
  delivered: number;
  lastDelivery: string | null;
  /** Age of the oldest undelivered notification, in seconds; 0 without any, null before the first start. */
  lag: number | null;
  /** Number of replays not completely queued. */
  replays: number;
  /** Problems of a faulty sink, without secrets. */
  problems: readonly string[];
}
