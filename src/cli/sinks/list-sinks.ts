/** `earshot sinks list`: how far each sink is, and why it may not be further. */
import { readDataConfig } from '../../config/read-config.ts';
import { loadSinks } from '../../config/sinks-config.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { NotificationLog } from '../../domain/ports.ts';
import { type SinkDefinition, type SinkReader, sinkReader } from '../../domain/sinks.ts';
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
  const definitions = await loadSinks(io.workingDir);
  const store = openStoreReader(dataDir);
  try {
    const rows = await sinkRows(definitions, store);
    const noFile = noFileNote(io);
    if (json) await writeJson(io.stdout, rows);
    else if ((await printTable(io.stdout, columns, rows)) === 0) {
      const where = noFile === null ? '' : ` ${noFile}`;
      io.stderr.write(`There are no sinks.${where} docs/sinks.md shows how one is written.\n`);
    } else {
      await printSinkNotes(io, rows, { sinks: store.sinks, hasFile: noFile === null });
      const unknown = await unknownWanted(definitions, store, io);
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
  definitions: readonly SinkDefinition[],
  store: Pick<StoreReader, 'sinks' | 'cursor'> & Pick<NotificationLog, 'lastPosition'>,
): Promise<SinkRow[]> {
  const [counts, replays, lastPosition] = await Promise.all([
    store.sinks.counts(),
    openReplays(store.sinks),
    store.lastPosition(),
  ]);
  const names = [
    ...new Set([...definitions.map(({ name }) => name), ...counts.map((one) => one.sink)]),
  ];
  return Promise.all(
    names.toSorted().map(async (sink) => {
      const target = definitions.find(({ name }) => name === sink)?.target.kind ?? null;
      const count = counts.find((one) => one.sink === sink);
      const cursor = await store.cursor(sinkReader(sink));
      const oldest = count?.oldestQueuedAtUs ?? null;
      return {
        sink,
        target,
        behind: cursor === null ? null : Math.max(0, lastPosition - cursor),
        waiting: count?.waiting ?? 0,
        dead: count?.dead ?? 0,
        oldestWaiting: oldest === null ? null : formatDateUs(oldest),
        error: count?.error ?? null,
        replays: replays.filter((one) => one === sink).length,
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
