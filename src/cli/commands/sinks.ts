/** `earshot sinks`: where notifications are delivered to, what waits, and what was refused. */
import { dataSections, loadConfig } from '../../config/config.ts';
import { type LoadedSinks, loadEachSink } from '../../config/sinks.ts';
import { subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import { type SinkReader, sinkReader } from '../../domain/sinks.ts';
import { firstOf } from '../../domain/streams.ts';
import { printable } from '../../domain/text.ts';
import type { SinkDefinition } from '../../sinks/registry.ts';
import type { StoreReader } from '../../store/store.ts';
import { asCalled } from '../called-as.ts';
import { defineCommand, defineGroup, type Parts, withParts } from '../command.ts';
import { deadCommand, dropCommand, retryCommand } from '../dead-letters.ts';
import type { Io } from '../io.ts';
import {
  type Column,
  countColumn,
  counted,
  isoTime,
  painter,
  printTable,
  whole,
  wrapText,
  writeJson,
  writeOut,
} from '../output.ts';
import { noFileNote, receiverNote, unknownSinkSubscriptions } from '../sink-names.ts';
import { testCommand } from './test-sink.ts';

const listCommand = defineCommand('list', {
  description: 'List the sinks: how far each is, what waits and why, what is dead.',
  flags: (command) =>
    command.option(
      '--json',
      'as JSON: sink target behind waiting dead oldestWaiting error delivered lastDelivery lag replays problems',
    ),
  help: `target: gone where earshot.config.ts does not have the sink any more, faulty
where it cannot be started, unknown while the file is rejected. behind: entries
of the log that were not read for the sink yet; - before its first start.
replays: those that are not queued completely. lag: age of the oldest
notification that was not delivered, in seconds. delivered: acknowledged
deliveries; last: the time of the last one.

Example:
  $ earshot sinks list`,
  run: listSinks,
});

export const sinksCommand = defineGroup('sinks', {
  description: 'Look after the sinks of earshot.config.ts: what waits, and what was refused.',
  help: `The receiver hands over; these commands look, and decide about dead letters: notifications that a
sink refused for good. See docs/sinks.md for what a sink gets.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot sinks
  $ earshot sinks test hook
  $ earshot sinks dead bus --limit 20
  $ earshot sinks retry bus --all
  $ earshot sinks drop bus 12,15 --yes`,
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
    // Without a data directory, the fault of the file is what to fix first.
    // Both are about settings: what the file has is the nearer one.
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
        ? `There are no sinks.${where} docs/sinks.md shows how one is written.\n`
        : `The data directory holds no sink yet.\n\n${rejected}\n`,
    );
    return;
  }
  await printSinkNotes(io, rows, { hasFile: noFile === null && rejected === null });
  const unknown = await unknownSinkSubscriptions(loaded.definitions, io.reader, io);
  const warnings = unknown.map(({ message, hint }) => `${message} ${hint}`);
  const shown = rejected && `${rejected} The list shows the sinks of the data directory.`;
  const { dataDir } = loadConfig(io, dataSections);
  for (const note of [shown, noFile, ...warnings, await receiverNote(dataDir)]) {
    if (note !== null) io.stderr.write(`\n${note}\n`);
  }
}

/** A file that cannot be read hides no sink that the store knows. */
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
      const count = counts.find((one) => one.sink === sink);
      const cursor = await store.cursor(sinkReader(sink));
      const oldest = count?.oldestQueuedAtUs ?? null;
      const done = deliveries.find((one) => one.sink === sink);
      const unread = cursor === null ? null : await firstOf(store, { afterPosition: cursor });
      const undelivered = [oldest, unread?.receivedAtUs ?? null];
      const since = undelivered.filter((atUs) => atUs !== null);
      const ages = since.map((atUs) => Math.max(0, Math.round((nowUs() - atUs) / 1_000_000)));
      return {
        sink,
        target: sound ?? (fault === undefined ? null : 'faulty'),
        behind: cursor === null ? null : Math.max(0, lastPosition - cursor),
        waiting: count?.waiting ?? 0,
        dead: count?.dead ?? 0,
        oldestWaiting: isoTime(oldest),
        error: count?.error ?? null,
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

/** `hasFile`: whether there is an `earshot.config.ts`; without it, every sink looks as if it were gone. */
async function printSinkNotes(
  io: Io & Pick<Parts, 'reader'>,
  rows: readonly SinkRow[],
  { hasFile }: { hasFile: boolean },
): Promise<void> {
  const paint = painter(io, io.stdout);
  const { sinks } = io.reader;
  for (const row of rows) {
    if (row.target === 'faulty') await printFaults(io, row);
    const left = hasFile ? whatIsLeft(row) : null;
    for (const note of [await whyItWaits(row, sinks), await whatIsDead(row, sinks), left]) {
      if (note === null) continue;
      const lines = wrapText(asCalled(printable(note), io), '  ', io.stdout);
      const shown = lines.map((line) => paint('yellow', line));
      await writeOut(io.stdout, `\n${shown.join('\n')}\n`);
    }
  }
}

/** A fault of a filter shows its place, in lines that are not to be broken. */
async function printFaults(io: Io, { sink, problems }: SinkRow): Promise<void> {
  const paint = painter(io, io.stdout);
  const what = `${sink} has faults and is not started. Fix it in ${subscriptionsFileName}:`;
  const faults = problems.flatMap((problem) => {
    const [first = '', ...places] = problem.split('\n').map(printable);
    return [...wrapText(first, '    ', io.stdout), ...places.map((line) => `    ${line}`)];
  });
  const lines = [...wrapText(what, '  ', io.stdout), ...faults];
  await writeOut(io.stdout, `\n${lines.map((line) => paint('yellow', line)).join('\n')}\n`);
}

/** Null where nothing that waits has failed: what was refused for good is told apart. */
async function whyItWaits(
  { sink, waiting, error }: SinkRow,
  { items }: Pick<SinkReader, 'items'>,
): Promise<string | null> {
  let reason: string | null = null;
  let tried = 0;
  for await (const item of items({ sink, state: 'waiting' })) {
    if (item.error === null) continue;
    tried += 1;
    // The last failure of all, unless it is that of a dead letter: then that of the newest item.
    if (reason === null || item.error === error) reason = item.error;
  }
  if (reason === null) return null;
  return `${sink} does not take what waits: ${reason} (tried: ${whole(tried)} of ${whole(waiting)}).`;
}

async function whatIsDead(
  { sink, dead }: SinkRow,
  { items }: Pick<SinkReader, 'items'>,
): Promise<string | null> {
  for await (const { error } of items({ sink, state: 'dead', limit: 1 })) {
    const letters = counted(dead, 'dead letter');
    return `${sink} has ${letters}; the last: ${error ?? '-'}; see \`earshot sinks dead ${sink}\`.`;
  }
  return null;
}

/** For a sink that earshot.config.ts no longer has: how to be rid of it. */
function whatIsLeft({ sink, target, waiting, dead, replays }: SinkRow): string | null {
  const letters = dead > 0 ? [`\`earshot sinks drop ${sink} --all\` forgets its dead letters`] : [];
  const rest =
    waiting + replays > 0 ? [`\`earshot sinks drop ${sink} --waiting\` forgets what waits`] : [];
  const drops = [...letters, ...rest];
  if (target !== null || drops.length === 0) return null;
  return `${sink} is no longer in earshot.config.ts. ${drops.join('; ')}.`;
}

interface SinkRow {
  sink: string;
  /**
   * Null for one that earshot.config.ts no longer has; `faulty` for one that cannot be started; `unknown` while the file
   * cannot be read.
   */
  target: SinkDefinition['target']['kind'] | 'faulty' | 'unknown' | null;
  /** Notifications of the log that it has not looked at; null before its first start. */
  behind: number | null;
  waiting: number;
  dead: number;
  oldestWaiting: string | null;
  error: string | null;
  /** Acknowledged deliveries, replays included, and the time of the last. */
  delivered: number;
  lastDelivery: string | null;
  /** Age of the oldest notification that was not delivered, in seconds; 0 where there is none, null before the first start. */
  lag: number | null;
  /** Replays that are not all queued. */
  replays: number;
  /** What is wrong with a faulty one; no secret is in it. */
  problems: readonly string[];
}
