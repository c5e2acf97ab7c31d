/** `earshot sinks retry`, and `drop` of dead letters: what becomes of what a sink refused. */
import { dataSections, loadConfig, type WatchConfig, watchSections } from '../config/config.ts';
import { loadEachSink } from '../config/sinks.ts';
import { subscriptionsFileName } from '../config/subscriptions-file.ts';
import type { AlertFinding } from '../domain/alerts.ts';
import { AppError } from '../domain/app-error.ts';
import { formatDateUs, shortDateUs } from '../domain/dates.ts';
import type { NotificationLog, NotificationRow } from '../domain/ports.ts';
import { type Replay, type SinkItem, type SinkReader, sinkReader } from '../domain/sinks.ts';
import { openStore, openStoreReader, type Store } from '../store/store.ts';
import { checkBehind, checkRefused } from '../watch/check-sinks.ts';
import { joinResults, notChecked } from '../watch/situation.ts';
import { confirm } from './flags.ts';
import type { Io } from './io.ts';
import { type Column, counted, printTable, whole, writeJson } from './output.ts';
import { requireSink } from './sink-names.ts';
import { alertTellers } from './start/watchdog.ts';

interface Chosen {
  sink: string;
  ids: number[] | undefined;
  all?: true | undefined;
}

export async function retryDeadLetters(io: Io, wish: Chosen): Promise<void> {
  requireIdsOrAll(wish, 'retry');
  const { sink } = wish;
  await withStore(io, sink, async ({ sinks }) => {
    await requireSink(sink, io, sinks);
    const { chosen, unknown } = await chooseLetters(sinks, wish);
    if (chosen.length === 0) return nothingChosen(io, sink, unknown);
    const ids = wish.ids === undefined ? 'all' : chosen;
    const count = await sinks.retry({ sink, ids, nowUs: io.nowUs() });
    io.stderr.write(`${counted(count, 'dead letter')} of ${sink} will be handed over again.\n`);
    refuseUnknown(sink, unknown);
  });
}

export async function dropItems(
  io: Io,
  { waiting, yes, ...wish }: Chosen & { waiting?: true; yes?: true },
): Promise<void> {
  const { sink, ids, all } = wish;
  if (waiting && (ids !== undefined || all)) {
    throw new AppError('usage', '--waiting drops all that waits: leave out the ids and --all.');
  }
  if (!waiting) requireIdsOrAll(wish, 'drop');
  await withStore(io, sink, async (store) => {
    await requireSink(sink, io, store.sinks);
    if (waiting) await dropWaiting(io, store, { sink, yes });
    else await dropDeadLetters(io, store, { ...wish, yes });
  });
}

async function dropDeadLetters(
  io: Io,
  { sinks }: Pick<Store, 'sinks'>,
  { yes, ...wish }: Chosen & { yes: true | undefined },
): Promise<void> {
  const { sink } = wish;
  const { chosen, unknown } = await chooseLetters(sinks, wish);
  if (chosen.length === 0) return nothingChosen(io, sink, unknown);
  const letters = `${counted(chosen.length, 'dead letter')} of ${sink}`;
  const what = wish.all ? `${letters}, all it has` : letters;
  await confirm(io, `Forget ${what}? The notifications stay in the log.`, { yes });
  // Those that were asked about: what is refused meanwhile stays.
  const count = await sinks.drop({ sink, state: 'dead', ids: chosen, nowUs: io.nowUs() });
  io.stderr.write(`Forgotten: ${counted(count, 'dead letter')} of ${sink}.\n`);
  refuseUnknown(sink, unknown);
}

function requireIdsOrAll({ sink, ids, all }: Chosen, command: 'retry' | 'drop'): void {
  const example = `\`earshot sinks ${command} ${sink} --all\``;
  if (ids === undefined && !all) {
    throw new AppError('usage', `Name ids of dead letters, or say --all: ${example}`);
  }
  if (ids !== undefined && all) {
    throw new AppError('usage', `Name ids or say --all, not both: ${example}`);
  }
}

/** Those that are meant, and ids that are of no dead letter. */
async function chooseLetters({ items }: Pick<SinkReader, 'items'>, { sink, ids }: Chosen) {
  const known = new Set<number>();
  for await (const { id } of items({ sink, state: 'dead' })) known.add(id);
  const wanted = ids === undefined ? known : new Set(ids);
  const chosen = [...wanted].filter((id) => known.has(id));
  return { chosen, unknown: [...wanted].filter((id) => !known.has(id)) };
}

function nothingChosen(io: Io, sink: string, unknown: readonly number[]): void {
  refuseUnknown(sink, unknown);
  io.stderr.write(`${sink} has no dead letters.\n`);
}

function refuseUnknown(sink: string, unknown: readonly number[]): void {
  if (unknown.length === 0) return;
  const letters = unknown.length === 1 ? 'dead letter' : 'dead letters';
  throw new AppError('not_found', `No such ${letters} of ${sink}: ${unknown.join(', ')}.`, {
    advice: `\`earshot sinks dead ${sink}\` lists those it has.`,
  });
}

async function withStore(
  io: Io,
  sink: string,
  use: (store: Store) => Promise<void>,
): Promise<void> {
  const config = loadConfig(io, [...dataSections, ...watchSections]);
  const store = await openStore({ ...config, nowUs: io.nowUs, mustExist: true });
  try {
    // Also where only a part could be done.
    try {
      await use(store);
    } finally {
      await settleAlerts(io, sink, { store, watch: config });
    }
  } finally {
    await store.close();
  }
}

/** Updates the alerts about the sink now: the watchdog does it once a minute, and only while a receiver runs. */
async function settleAlerts(
  io: Io,
  sink: string,
  { store, watch }: { store: Store; watch: WatchConfig },
): Promise<void> {
  const { alerts, sinks } = store;
  const [lasting, counts, isUnread] = await Promise.all([
    alerts.alerts({ all: false, limit: 1_000 }),
    sinks.counts(),
    hasUnread(sink, store),
  ]);
  const counted = counts.find((one) => one.sink === sink);
  if (counted === undefined || lasting.every(({ subject }) => subject !== sink)) return;
  const { named, faulty } = await namesInFile(io);
  const view = { ...counted, isSetUp: named?.includes(sink) ?? null, unread: null };
  const nowUs = io.nowUs();
  const behind = checkBehind(view, { active: lasting, nowUs });
  // A fault of the sink, or a log that is not read for it, is for the watchdog to see: it lasts.
  const isKnown = !faulty.includes(sink) && (!isUnread || behind.findings.length > 0);
  const { checked, findings } = joinResults([checkRefused(view), isKnown ? behind : notChecked]);
  // A new alert is raised by the watchdog alone.
  const isLasting = ({ kind }: Pick<AlertFinding, 'kind'>) =>
    lasting.some((alert) => alert.kind === kind && alert.subject === sink);
  const { channels } = alertTellers(watch, io);
  await alerts.settleFindings({
    checked: checked.filter(isLasting),
    findings: findings.filter(isLasting),
    channels,
    atUs: nowUs,
  });
}

async function hasUnread(sink: string, store: Pick<Store, 'cursor' | 'lastPosition'>) {
  return ((await store.cursor(sinkReader(sink))) ?? 0) < (await store.lastPosition());
}

/** Null where the file cannot be read. */
async function namesInFile({ workingDir }: Pick<Io, 'workingDir'>) {
  try {
    const { definitions, faulty } = await loadEachSink(workingDir);
    const named = [...definitions, ...faulty].map(({ name }) => name);
    return { named, faulty: faulty.map(({ name }) => name) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { named: null, faulty: [] as string[] };
  }
}

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
