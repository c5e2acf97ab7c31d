/** `earshot sinks list`: how far each sink is, and why it may not be further. */

import { readDataConfig } from '../../config/read-config.ts';
import { type LoadedSinks, loadEachSink } from '../../config/sinks-config.ts';
import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { NotificationLog } from '../../domain/ports.ts';
import { printable } from '../../domain/printable.ts';
import { type SinkReader, sinkReader } from '../../domain/sinks.ts';
import { openStoreReader, type StoreReader } from '../../store/store.ts';
import type { Io } from '../io.ts';
import { writeJson } from '../notification-output.ts';
import { type Column, printTable } from '../table.ts';
import { whole } from './counted.ts';
import { noFileNote } from './known-sink.ts';
import { receiverNote } from './receiver-note.ts';
import { printSinkNotes } from './sink-notes.ts';
import type { SinkRow } from './sink-row.ts';
import { unknownWanted } from './wanted-subscriptions.ts';

export async function listSinks(io: Io, flags: { json?: true }): Promise<void> {
  const read = await loadOrReason(io);
  try {
    await printSinks(io, flags, read);
  } catch (error) {
    // Without a data directory, the fault of the file is what to fix first.
    if (read.rejected === null || !isAppError(error, 'configuration')) throw error;
    throw new AppError('configuration', read.rejected);
  }
}

async function printSinks(
  io: Io,
  { json }: { json?: true },
  { loaded, rejected }: Awaited<ReturnType<typeof loadOrReason>>,
): Promise<void> {
  const { dataDir } = readDataConfig(io);
  const store = openStoreReader(dataDir);
  try {
    const rows = (await sinkRows(loaded, store, io)).map((row) =>
      rejected === null ? row : { ...row, target: 'unknown' as const },
    );
    const noFile = noFileNote(io);
    if (json) {
      await writeJson(io.stdout, rows);
      if (rejected !== null) io.stderr.write(`${rejected}\n`);
    } else if ((await printTable(io.stdout, columns, rows)) === 0 && rejected !== null) {
      io.stderr.write(`The data directory holds no sink yet.\n\n${rejected}\n`);
    } else if (rows.length === 0) {
      const where = noFile === null ? '' : ` ${noFile}`;
      io.stderr.write(`There are no sinks.${where} docs/sinks.md shows how one is written.\n`);
    } else {
      await printSinkNotes(io, rows, {
        sinks: store.sinks,
        hasFile: noFile === null && rejected === null,
      });
      const unknown = rejected === null ? await unknownWanted(loaded.definitions, store, io) : [];
      const warnings = unknown.map(({ message, hint }) => `${message} ${hint}`);
      const shown = rejected && `${rejected} The list shows the sinks of the data directory.`;
      for (const note of [shown, noFile, ...warnings, await receiverNote(dataDir)]) {
        if (note !== null) io.stderr.write(`\n${note}\n`);
      }
    }
  } finally {
    await store.close();
  }
}

/** A file that cannot be read hides no sink that the store knows. */
async function loadOrReason({ workingDir }: Pick<Io, 'workingDir'>) {
  try {
    return { loaded: await loadEachSink(workingDir), rejected: null };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const faults = error.details.map((detail) => `\n  - ${printable(detail)}`).join('');
    const rejected = `The current earshot.config.ts is rejected: ${errorText(error)}${faults}\nA running receiver continues with its last valid version.`;
    return { loaded: { definitions: [], faulty: [] }, rejected };
  }
}

async function sinkRows(
  { definitions, faulty }: LoadedSinks,
  store: Pick<StoreReader, 'sinks' | 'cursor'> & Pick<NotificationLog, 'lastPosition' | 'find'>,
  { nowUs }: Pick<Io, 'nowUs'>,
): Promise<SinkRow[]> {
  const [counts, deliveries, replays, lastPosition] = await Promise.all([
    store.sinks.counts(),
    store.sinks.deliveries(),
    openReplays(store.sinks),
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
      const undelivered = [oldest, cursor === null ? null : await firstUnread(cursor, store)];
      const since = undelivered.filter((atUs) => atUs !== null);
      const ages = since.map((atUs) => Math.max(0, Math.round((nowUs() - atUs) / 1_000_000)));
      return {
        sink,
        target: sound ?? (fault === undefined ? null : 'faulty'),
        behind: cursor === null ? null : Math.max(0, lastPosition - cursor),
        waiting: count?.waiting ?? 0,
        dead: count?.dead ?? 0,
        oldestWaiting: oldest === null ? null : formatDateUs(oldest),
        error: count?.error ?? null,
        delivered: done?.delivered ?? 0,
        lastDelivery: done === undefined ? null : formatDateUs(done.lastAtUs),
        lag: cursor === null && ages.length === 0 ? null : Math.max(0, ...ages),
        replays: replays.filter((one) => one === sink).length,
        problems: fault?.problems ?? [],
      };
    }),
  );
}

/** When the first notification was received that was not read for the sink yet; null where all were. */
async function firstUnread(cursor: number, { find }: Pick<NotificationLog, 'find'>) {
  for await (const { receivedAtUs } of find({ afterPosition: cursor, order: 'oldest', limit: 1 })) {
    return receivedAtUs;
  }
  return null;
}

async function openReplays(sinks: SinkReader): Promise<string[]> {
  return (await sinks.replays({ all: false })).map(({ sink }) => sink);
}

const columns: readonly Column<SinkRow>[] = [
  { title: 'sink', value: ({ sink }) => sink, flexible: true },
  { title: 'target', value: ({ target }) => target ?? 'gone' },
  {
    title: 'behind',
    value: ({ behind }) => (behind === null ? '-' : whole(behind)),
    align: 'right',
  },
  { title: 'waiting', value: ({ waiting }) => whole(waiting), align: 'right' },
  { title: 'dead', value: ({ dead }) => whole(dead), align: 'right' },
  { title: 'replays', value: ({ replays }) => whole(replays), align: 'right' },
  { title: 'lag (s)', value: ({ lag }) => (lag === null ? '-' : whole(lag)), align: 'right' },
  { title: 'delivered', value: ({ delivered }) => whole(delivered), align: 'right' },
  {
    title: 'last (UTC)',
    value: ({ lastDelivery }) => lastDelivery?.slice(5, 16).replace('T', ' ') ?? '-',
  },
];
