/** `earshot sinks list`: how far each sink is, and why it may not be further. */
import { readDataConfig } from '../../config/read-config.ts';
import { type LoadedSinks, loadEachSink } from '../../config/sinks-config.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { NotificationLog } from '../../domain/ports.ts';
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

export async function listSinks(io: Io, { json }: { json?: true }): Promise<void> {
  const { dataDir } = readDataConfig(io);
  const loaded = await loadEachSink(io.workingDir);
  const store = openStoreReader(dataDir);
  try {
    const rows = await sinkRows(loaded, store);
    const noFile = noFileNote(io);
    if (json) await writeJson(io.stdout, rows);
    else if ((await printTable(io.stdout, columns, rows)) === 0) {
      const where = noFile === null ? '' : ` ${noFile}`;
      io.stderr.write(`There are no sinks.${where} docs/sinks.md shows how one is written.\n`);
    } else {
      await printSinkNotes(io, rows, { sinks: store.sinks, hasFile: noFile === null });
      const unknown = await unknownWanted(loaded.definitions, store, io);
      const warnings = unknown.map(({ message, hint }) => `${message} ${hint}`);
      for (const note of [noFile, ...warnings, await receiverNote(dataDir)]) {
        if (note !== null) io.stderr.write(`\n${note}\n`);
      }
    }
  } finally {
    await store.close();
  }
}

async function sinkRows(
  { definitions, faulty }: LoadedSinks,
  store: Pick<StoreReader, 'sinks' | 'cursor'> & Pick<NotificationLog, 'lastPosition'>,
): Promise<SinkRow[]> {
  const [counts, replays, lastPosition] = await Promise.all([
    store.sinks.counts(),
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
      return {
        sink,
        target: sound ?? (fault === undefined ? null : 'faulty'),
        behind: cursor === null ? null : Math.max(0, lastPosition - cursor),
        waiting: count?.waiting ?? 0,
        dead: count?.dead ?? 0,
        oldestWaiting: oldest === null ? null : formatDateUs(oldest),
        error: count?.error ?? null,
        replays: replays.filter((one) => one === sink).length,
        problems: fault?.problems ?? [],
      };
    }),
  );
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
  {
    title: 'oldest (UTC)',
    value: ({ oldestWaiting }) => oldestWaiting?.slice(0, 16).replace('T', ' ') ?? '-',
  },
];
