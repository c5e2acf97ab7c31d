/** `earshot sinks dead`: notifications that a sink refused for good, and why. */
import { dataSections, loadConfig } from '../../config/config.ts';
import { formatDateUs, shortDateUs } from '../../domain/notification-date.ts';
import type { NotificationLog, NotificationRow } from '../../domain/ports.ts';
import type { SinkItem, SinkReader } from '../../domain/sinks.ts';
import { openStoreReader } from '../../store/store.ts';
import type { Io } from '../io.ts';
import { writeJson } from '../notification-output.ts';
import { type Column, printTable } from '../table.ts';
import { counted, whole } from './counted.ts';
import { requireSink } from './known-sink.ts';

/** A person's first look; programs get everything unless they set a limit. */
const deadRowsDefault = 50;

interface DeadFlags {
  sink: string | undefined;
  limit?: number;
  json?: true;
}

export async function listDeadLetters(io: Io, { sink, limit, json }: DeadFlags): Promise<void> {
  const store = openStoreReader(loadConfig(io, dataSections).dataDir);
  try {
    if (sink !== undefined) await requireSink(sink, io, store.sinks);
    if (json) {
      await writeJson(io.stdout, mapped(store.sinks.items({ sink, state: 'dead', limit })));
      return;
    }
    const items = store.sinks.items({ sink, state: 'dead', limit: limit ?? deadRowsDefault });
    const shownColumns = columns.filter(({ title }) => sink === undefined || title !== 'sink');
    const shown = await printTable(io.stdout, shownColumns, withNotifications(items, store));
    io.stderr.write(await closingLine(store.sinks, sink, shown));
  } finally {
    await store.close();
  }
}

interface DeadRow {
  item: SinkItem;
  /** Null where the log has it no longer. */
  notification: NotificationRow | null;
}

async function* withNotifications(
  items: AsyncIterable<SinkItem>,
  { find }: Pick<NotificationLog, 'find'>,
): AsyncGenerator<DeadRow> {
  for await (const item of items) {
    const { position } = item;
    const bounds = { afterPosition: position - 1, beforePosition: position + 1, limit: 1 };
    let notification: NotificationRow | null = null;
    for await (const row of find(bounds)) notification = row;
    yield { item, notification };
  }
}

/** The reason is whole off a terminal. */
const columns: readonly Column<DeadRow>[] = [
  { title: 'id', value: ({ item }) => String(item.id), align: 'right' },
  { title: 'sink', value: ({ item }) => item.sink },
  { title: 'queued (UTC)', value: ({ item }) => shortDateUs(item.queuedAtUs) },
  { title: 'tries', value: ({ item }) => whole(item.attempts), align: 'right' },
  { title: 'event', value: ({ notification }) => notification?.event ?? '-' },
  {
    title: 'product',
    value: ({ item, notification }) => notification?.productName ?? item.productId,
  },
  { title: 'reason', value: ({ item }) => item.error ?? '-', flexible: true },
];

async function closingLine(
  { counts }: Pick<SinkReader, 'counts'>,
  sink: string | undefined,
  shown: number,
): Promise<string> {
  if (shown === 0) return `There are no dead letters${sink === undefined ? '' : ` of ${sink}`}.\n`;
  const all = (await counts())
    .filter((one) => sink === undefined || one.sink === sink)
    .reduce((sum, { dead }) => sum + dead, 0);
  const rest =
    shown < all
      ? `${whole(shown)} of ${counted(all, 'dead letter')} shown, the newest; --limit ${all} shows all. `
      : '';
  const name = sink ?? '<sink>';
  return `\n${rest}\`earshot sinks retry ${name} --all\` hands them over again, \`earshot sinks drop ${name} --all\` forgets them; ids in place of --all for some.\n`;
}

async function* mapped(items: AsyncIterable<SinkItem>) {
  for await (const item of items) {
    const { id, sink, position, productId, replayId: replay, attempts, error, queuedAtUs } = item;
    const queuedAt = formatDateUs(queuedAtUs);
    yield { id, sink, position, productId, replay, attempts, error, queuedAt };
  }
}
