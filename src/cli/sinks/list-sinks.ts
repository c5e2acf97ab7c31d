/** `earshot sinks list`: how far each sink is, and why it may not be further. */
import { readDataConfig } from '../../config/read-config.ts';
import { loadSinks } from '../../config/sinks-config.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { NotificationLog } from '../../domain/ports.ts';
import { printable } from '../../domain/printable.ts';
import { type SinkDefinition, type SinkReader, sinkReader } from '../../domain/sinks.ts';
import { openStoreReader, type StoreReader } from '../../store/store.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { writeJson } from '../notification-output.ts';
import { type Column, printTable } from '../table.ts';
import { wrapText } from '../wrap-text.ts';
import { writeOut } from '../write-out.ts';

interface SinkRow {
  sink: string;
  /** Null for one that earshot.config.ts no longer has. */
  target: SinkDefinition['target']['kind'] | null;
  /** Notifications of the log that it has not looked at; null before its first start. */
  behind: number | null;
  waiting: number;
  dead: number;
  oldestWaiting: string | null;
  error: string | null;
  /** Replays that are not all queued. */
  replays: number;
}

export async function listSinks(io: Io, { json }: { json?: true }): Promise<void> {
  const { dataDir } = readDataConfig(io);
  const definitions = await loadSinks(io.workingDir);
  const store = openStoreReader(dataDir);
  try {
    const rows = await sinkRows(definitions, store);
    if (json) await writeJson(io.stdout, rows);
    else if ((await printTable(io.stdout, columns, rows)) === 0) {
      io.stderr.write('There are no sinks. docs/sinks.md shows how one is written.\n');
    } else await printFailures(io, rows);
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
    value: ({ behind }) => (behind === null ? '-' : String(behind)),
    align: 'right',
  },
  { title: 'waiting', value: ({ waiting }) => String(waiting), align: 'right' },
  { title: 'dead', value: ({ dead }) => String(dead), align: 'right' },
  { title: 'replays', value: ({ replays }) => String(replays), align: 'right' },
  {
    title: 'oldest (UTC)',
    value: ({ oldestWaiting }) => oldestWaiting?.slice(0, 16).replace('T', ' ') ?? '-',
  },
];

/** Below the table, as a reason may be long. */
async function printFailures(io: Io, rows: readonly SinkRow[]): Promise<void> {
  for (const { sink, error } of rows) {
    if (error === null) continue;
    const lines = wrapText(printable(`${sink} does not take it: ${error}`), '  ', io.stdout);
    const paint = painter(io, io.stdout);
    const shown = lines.map((line) => paint('yellow', line));
    await writeOut(io.stdout, `\n${shown.join('\n')}\n`);
  }
}
