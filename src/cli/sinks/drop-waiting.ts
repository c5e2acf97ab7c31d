/** `earshot sinks drop --waiting`: gives up what waits for a sink, and says how to have it again. */
import { formatDateUs } from '../../domain/notification-date.ts';
import type { NotificationLog } from '../../domain/ports.ts';
import type { SinkReader } from '../../domain/sinks.ts';
import type { Store } from '../../store/store.ts';
import { confirm } from '../confirm.ts';
import type { Io } from '../io.ts';
import { counted } from './counted.ts';

export async function dropWaiting(
  io: Io,
  store: Pick<Store, 'sinks' | 'find'>,
  { sink, yes }: { sink: string; yes: true | undefined },
): Promise<void> {
  const { sinks } = store;
  const asked = await waitingOf(sink, sinks);
  if (asked.words === '') {
    io.stderr.write(`Nothing waits for ${sink}.\n`);
    return;
  }
  const since = await receivedAt(store, asked.firstPosition);
  const again = `\`earshot replay --sink ${sink}${since === null ? '' : ` --since ${since}`}\``;
  const question = `Forget what waits for ${sink}: ${asked.words}?`;
  await confirm(io, `${question} The notifications stay in the log.`, { yes });
  // The receiver may have handed over some while the question stood.
  const { words } = await waitingOf(sink, sinks);
  await sinks.drop({ sink, state: 'waiting', ids: 'all', nowUs: io.nowUs() });
  io.stderr.write(`Forgotten, of ${sink}: ${words === '' ? 'nothing any more' : words}.\n`);
  io.stderr.write(`To hand over again what came since then: ${again}\n`);
}

/** What would go; blank words for nothing. */
async function waitingOf(sink: string, { items, replays }: Pick<SinkReader, 'items' | 'replays'>) {
  let fresh = 0;
  let replayed = 0;
  let firstPosition = Number.MAX_SAFE_INTEGER;
  for await (const { position, replayId } of items({ sink, state: 'waiting' })) {
    if (replayId === null) fresh += 1;
    else replayed += 1;
    firstPosition = Math.min(firstPosition, position);
  }
  const open = await replays({ sink, all: false });
  const unread = open.reduce((sum, one) => sum + one.lastPosition - one.position, 0);
  for (const { position } of open) firstPosition = Math.min(firstPosition, position + 1);
  const parts = [
    fresh > 0 ? counted(fresh, 'new notification') : '',
    replayed > 0 ? `${counted(replayed, 'notification')} of replays` : '',
    open.length > 0
      ? `the rest of ${counted(open.length, 'replay')}, with ${counted(unread, 'entry', 'entries')} of the log not yet looked at`
      : '',
  ];
  return { words: parts.filter((part) => part !== '').join('; '), firstPosition };
}

async function receivedAt({ find }: Pick<NotificationLog, 'find'>, position: number) {
  const rows = find({ afterPosition: position - 1, order: 'oldest', limit: 1 });
  for await (const { receivedAtUs } of rows) return formatDateUs(receivedAtUs);
  return null;
}
