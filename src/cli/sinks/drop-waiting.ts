/** `earshot sinks drop --waiting`: gives up what waits for a sink, and says how to have it again. */
import { loadEachSink } from '../../config/sinks.ts';
import { subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { AppError } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { NotificationLog } from '../../domain/ports.ts';
import type { Replay, SinkReader } from '../../domain/sinks.ts';
import type { Store } from '../../store/store.ts';
import { confirm } from '../confirm.ts';
import type { Io } from '../io.ts';
import { counted } from './counted.ts';

export async function dropWaiting(
  io: Pick<Io, 'stderr' | 'ask' | 'nowUs' | 'workingDir'>,
  store: Pick<Store, 'sinks' | 'find'>,
  { sink, yes }: { sink: string; yes: true | undefined },
): Promise<void> {
  const { sinks } = store;
  const asked = await waitingOf(sink, sinks);
  if (asked.words === '') {
    io.stderr.write(`Nothing waits for ${sink}.\n`);
    return;
  }
  const again = await howToHaveAgain(sink, asked.firstPosition, { store, io });
  const question = `Forget what waits for ${sink}: ${asked.words}?`;
  await confirm(io, `${question} The notifications stay in the log.`, { yes });
  const dropped = await dropListed(sink, asked, { sinks, nowUs: io.nowUs });
  io.stderr.write(`Forgotten, of ${sink}: ${dropped || 'nothing any more'}.\n${again}\n`);
}

/** What would go; blank words for nothing. */
async function waitingOf(sink: string, { items, replays }: Pick<SinkReader, 'items' | 'replays'>) {
  const ids: number[] = [];
  let replayed = 0;
  let firstPosition = Number.MAX_SAFE_INTEGER;
  // Replays first: an item that is queued meanwhile is told of twice rather than not at all.
  const open = await replays({ sink, all: false });
  for await (const { id, position, replayId } of items({ sink, state: 'waiting' })) {
    ids.push(id);
    if (replayId !== null) replayed += 1;
    firstPosition = Math.min(firstPosition, position);
  }
  for (const { position } of open) firstPosition = Math.min(firstPosition, position + 1);
  const fresh = ids.length - replayed;
  const words = sentence([
    fresh > 0 ? counted(fresh, 'new notification') : '',
    replayed > 0 ? `${counted(replayed, 'notification')} of replays` : '',
    restOf(open),
  ]);
  return { words, firstPosition, ids, open };
}

const sentence = (parts: readonly string[]) => parts.filter((part) => part !== '').join('; ');

function restOf(open: readonly Replay[]): string {
  if (open.length === 0) return '';
  const unread = open.reduce((sum, one) => sum + one.lastPosition - one.position, 0);
  return `the rest of ${counted(open.length, 'replay')}, with ${counted(unread, 'entry', 'entries')} of the log not yet looked at`;
}

/**
 * Drops what was asked about, and what its replays have queued since; what is new meanwhile stays. Resolves with
 * what went, in words: a receiver may have handed over some while the question stood.
 */
async function dropListed(
  sink: string,
  asked: { ids: readonly number[]; open: readonly Replay[] },
  { sinks, nowUs }: Pick<Store, 'sinks'> & Pick<Io, 'nowUs'>,
): Promise<string> {
  const replayIds = new Set(asked.open.map(({ id }) => id));
  const ended = await endReplays(sink, replayIds, { sinks, nowUs });
  const ids = [...asked.ids];
  for await (const { id, replayId } of sinks.items({ sink, state: 'waiting' })) {
    if (replayId !== null && replayIds.has(replayId)) ids.push(id);
  }
  const count = await sinks.drop({ sink, state: 'waiting', ids, nowUs: nowUs() });
  return sentence([count > 0 ? counted(count, 'notification') : '', restOf(ended)]);
}

/** Ends those that have not ended by moving them to their last position. Resolves with them as they stood. */
async function endReplays(
  sink: string,
  ids: ReadonlySet<number>,
  { sinks, nowUs }: Pick<Store, 'sinks'> & Pick<Io, 'nowUs'>,
): Promise<Replay[]> {
  const ended: Replay[] = [];
  for (;;) {
    const open = (await sinks.replays({ sink, all: false })).filter(({ id }) => ids.has(id));
    if (open.length === 0) return ended;
    for (const replay of open) {
      const { id: replayId, position: after, lastPosition: upTo } = replay;
      // One that the receiver has moved meanwhile is looked at again.
      if (await sinks.enqueue({ sink, replayId, after, upTo, items: [], atUs: nowUs() })) {
        ended.push(replay);
      }
    }
  }
}

/** Only a sink that the file has can be replayed to. */
async function howToHaveAgain(
  sink: string,
  firstPosition: number,
  { store, io }: { store: Pick<Store, 'find'>; io: Pick<Io, 'workingDir'> },
): Promise<string> {
  const since = await receivedAt(store, firstPosition);
  const command = `\`earshot replay --sink ${sink}${since === null ? '' : ` --since ${since}`}\``;
  const what = 'To hand over again what came since then';
  if (await isInFile(sink, io)) return `${what}: ${command}`;
  return `${what}, put ${sink} back into ${subscriptionsFileName} first; then: ${command}`;
}

/** True as well where the file cannot be read: `replay` says what is wrong with it. */
async function isInFile(sink: string, { workingDir }: Pick<Io, 'workingDir'>): Promise<boolean> {
  try {
    const { definitions, faulty } = await loadEachSink(workingDir);
    return [...definitions, ...faulty].some(({ name }) => name === sink);
  } catch (error) {
    if (error instanceof AppError) return true;
    throw error;
  }
}

async function receivedAt({ find }: Pick<NotificationLog, 'find'>, position: number) {
  const rows = find({ afterPosition: position - 1, order: 'oldest', limit: 1 });
  for await (const { receivedAtUs } of rows) return formatDateUs(receivedAtUs);
  return null;
}
