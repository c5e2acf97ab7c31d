/** `earshot sinks dead`, `retry` and `drop`: what a sink refused, and what waits for it. */

import { InvalidArgumentError } from 'commander';
import { dataSections, loadConfig, watchSections } from '../config/config.ts';
import { subscriptionsFileName } from '../config/subscriptions-file.ts';
import type { AlertFinding } from '../domain/alerts.ts';
import { AppError } from '../domain/app-error.ts';
import { formatDateUs, shortDateUs } from '../domain/dates.ts';
import type { NotificationLog, NotificationRow } from '../domain/ports.ts';
import { type Replay, type SinkItem, type SinkReader, sinkReader } from '../domain/sinks.ts';
import { firstOf, notificationAt } from '../domain/streams.ts';
import type { Store } from '../store/store.ts';
import { checkBacklog, checkDeadLetters } from '../watch/check-sinks.ts';
import { joinResults, notChecked } from '../watch/situation.ts';
import { defineCommand, type Parts } from './command.ts';
import { confirm, limitOption, yesOption } from './flags.ts';
import type { Io } from './io.ts';
import { type Column, counted, printTable, whole, writeJson } from './output.ts';
import { requireSink, sinksInFile } from './sink-names.ts';
import { alertSenders } from './start/watchdog.ts';

/** A person's first look; programs get everything unless they set a limit. */
const deadRowsDefault = 50;

export const deadCommand = defineCommand('dead', {
  description:
    'List dead letters, newest first, with the reason (whole where it is piped, or in JSON).',
  flags: (command) =>
    command
      .argument('[sink]', 'only of this one')
      .addOption(limitOption({ note: 'table: 50, else all' }))
      .option('--json', 'as JSON: id sink position productId replay attempts error queuedAt'),
  help: 'Example:\n  $ earshot sinks dead bus --limit 20',
  needs: ['reader'],
  run: async (
    io,
    { limit, json }: { limit?: number; json?: true },
    sink: string | undefined,
  ): Promise<void> => {
    const { sinks } = io.reader;
    if (sink !== undefined) await requireSink(sink, io, sinks);
    if (json) {
      await writeJson(io.stdout, toJson(sinks.items({ sink, state: 'dead', limit })));
      return;
    }
    const items = sinks.items({ sink, state: 'dead', limit: limit ?? deadRowsDefault });
    const shownColumns = columns.filter(({ title }) => sink === undefined || title !== 'sink');
    const shown = await printTable(io.stdout, shownColumns, withNotifications(items, io.reader));
    io.stderr.write(await closingLine(sinks, sink, shown));
  },
});

type Ids = number[] | undefined;

export const retryCommand = defineCommand('retry', {
  description: 'Set dead letters to wait again; the receiver hands them over.',
  flags: (command) =>
    command
      .argument('<sink>', 'its name')
      .argument('[ids]', 'from `earshot sinks dead`, with commas', readIds)
      .option('--all', 'all of them'),
  help: 'Example:\n  $ earshot sinks retry bus 12,15',
  needs: ['store'],
  check: ({ all }: { all?: true }, io, sink: string, ids: Ids) => {
    requireIdsOrAll({ sink, ids, all }, 'retry');
    loadConfig(io, sections);
  },
  run: (io, _flags, sink: string, ids: Ids) =>
    thenSettleAlerts(io, sink, () =>
      withLetters(io, { sink, ids }, async (chosen) => {
        const wanted = ids === undefined ? 'all' : chosen;
        const count = await io.store.sinks.retry({ sink, ids: wanted, nowUs: io.nowUs() });
        return `${counted(count, 'dead letter')} of ${sink} will be handed over again.`;
      }),
    ),
});

interface DropFlags {
  all?: true;
  waiting?: true;
  yes?: true;
}

export const dropCommand = defineCommand('drop', {
  description: 'Forget dead letters, or what waits. The notifications stay in the log.',
  flags: (command) =>
    command
      .argument('<sink>', 'its name')
      .argument('[ids]', 'dead letters, from `earshot sinks dead`, with commas', readIds)
      .option('--all', 'all its dead letters')
      .option('--waiting', 'all that waits, and replays that have not ended')
      .addOption(yesOption()),
  help: 'Example:\n  $ earshot sinks drop bus --waiting --yes',
  needs: ['store'],
  check: ({ all, waiting }: DropFlags, io, sink: string, ids: Ids) => {
    if (!waiting) requireIdsOrAll({ sink, ids, all }, 'drop');
    else if (ids !== undefined || all) {
      throw new AppError('usage', '--waiting drops all that waits: leave out the ids and --all.');
    }
    loadConfig(io, sections);
  },
  run: (io, { waiting, yes, all }, sink: string, ids: Ids) =>
    thenSettleAlerts(io, sink, () =>
      waiting
        ? dropWaiting(io, io.store, { sink, yes })
        : dropDeadLetters(io, { sink, ids, all, yes }),
    ),
});

/** The watchdog's part is for the alerts: all problems of both are reported before anything is opened. */
const sections = [...dataSections, ...watchSections] as const;

function readIds(text: string): number[] {
  const ids = text.split(',').map(Number);
  if (ids.every((id) => Number.isSafeInteger(id) && id > 0)) return ids;
  throw new InvalidArgumentError('Use ids as `earshot sinks dead` shows them: 12,15.');
}

interface Chosen {
  sink: string;
  ids: Ids;
  all?: true | undefined;
}

type WithStore = Io & Pick<Parts, 'store'>;

const dropDeadLetters = (
  io: WithStore,
  { sink, ids, all, yes }: Chosen & { yes: true | undefined },
) =>
  withLetters(io, { sink, ids }, async (chosen) => {
    const letters = `${counted(chosen.length, 'dead letter')} of ${sink}`;
    const what = all ? `${letters}, all it has` : letters;
    await confirm(io, `Forget ${what}? The notifications stay in the log.`, { yes });
    // Those that were asked about: what is refused meanwhile stays.
    const about = { sink, state: 'dead', ids: chosen, nowUs: io.nowUs() } as const;
    return `Forgotten: ${counted(await io.store.sinks.drop(about), 'dead letter')} of ${sink}.`;
  });

function requireIdsOrAll({ sink, ids, all }: Chosen, command: 'retry' | 'drop'): void {
  const example = `\`earshot sinks ${command} ${sink} --all\``;
  if (ids === undefined && !all) {
    throw new AppError('usage', `Name ids of dead letters, or say --all: ${example}`);
  }
  if (ids !== undefined && all) {
    throw new AppError('usage', `Name ids or say --all, not both: ${example}`);
  }
}

/** Changes the dead letters that are meant, and prints the outcome. Then rejects where an id is of no dead letter. */
async function withLetters(
  io: WithStore,
  { sink, ids }: Chosen,
  change: (chosen: number[]) => Promise<string>,
): Promise<void> {
  const known = new Set<number>();
  for await (const { id } of io.store.sinks.items({ sink, state: 'dead' })) known.add(id);
  const wanted = [...new Set(ids ?? known)];
  const chosen = wanted.filter((id) => known.has(id));
  const unknown = wanted.filter((id) => !known.has(id));
  if (chosen.length > 0) io.stderr.write(`${await change(chosen)}\n`);
  else if (unknown.length === 0) io.stderr.write(`${sink} has no dead letters.\n`);
  if (unknown.length === 0) return;
  const letters = unknown.length === 1 ? 'dead letter' : 'dead letters';
  throw new AppError('not_found', `No such ${letters} of ${sink}: ${unknown.join(', ')}.`, {
    advice: `\`earshot sinks dead ${sink}\` lists those it has.`,
  });
}

/**
 * Changes the items of a sink, then its alerts, also where only a part could be done: the watchdog updates alerts once
 * a minute, and only while a receiver runs.
 */
async function thenSettleAlerts(io: WithStore, sink: string, change: () => Promise<void>) {
  try {
    await requireSink(sink, io, io.store.sinks);
    await change();
  } finally {
    await settleAlerts(io, sink);
  }
}

async function settleAlerts(io: WithStore, sink: string): Promise<void> {
  const { alerts, sinks } = io.store;
  const [lasting, counts, cursor, lastPosition] = await Promise.all([
    alerts.alerts({ all: false, limit: 1_000 }),
    sinks.counts(),
    io.store.cursor(sinkReader(sink)),
    io.store.lastPosition(),
  ]);
  const counted = counts.find((one) => one.sink === sink);
  if (counted === undefined || lasting.every(({ subject }) => subject !== sink)) return;
  const inFile = await sinksInFile(io);
  const view = { ...counted, isSetUp: inFile?.names.includes(sink) ?? null, unread: null };
  const nowUs = io.nowUs();
  const behind = checkBacklog(view, { active: lasting, nowUs });
  // A fault of the sink, or a log that is not read for it, is for the watchdog to see: it lasts.
  const isRead = (cursor ?? 0) >= lastPosition || behind.findings.length > 0;
  const isKnown = isRead && inFile?.faulty.includes(sink) !== true;
  const { checked, findings } = joinResults([
    checkDeadLetters(view),
    isKnown ? behind : notChecked,
  ]);
  // A new alert is raised by the watchdog alone.
  const isLasting = ({ kind }: Pick<AlertFinding, 'kind'>) =>
    lasting.some((alert) => alert.kind === kind && alert.subject === sink);
  await alerts.settleFindings({
    checked: checked.filter(isLasting),
    findings: findings.filter(isLasting),
    channels: alertSenders(loadConfig(io, watchSections), io).channels,
    atUs: nowUs,
  });
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

/** Only a sink that the file has can be replayed to; where it cannot be read, `replay` reports why. */
async function howToHaveAgain(
  sink: string,
  firstPosition: number,
  { store, io }: { store: Pick<Store, 'find'>; io: Pick<Io, 'workingDir'> },
): Promise<string> {
  const first = await firstOf(store, { afterPosition: firstPosition - 1 });
  const since = first === null ? '' : ` --since ${formatDateUs(first.receivedAtUs)}`;
  const command = `\`earshot replay --sink ${sink}${since}\``;
  const what = 'To hand over again what came since then';
  if ((await sinksInFile(io))?.names.includes(sink) ?? true) return `${what}: ${command}`;
  return `${what}, put ${sink} back into ${subscriptionsFileName} first; then: ${command}`;
}

interface DeadRow {
  item: SinkItem;
  /** Null where the log has it no longer. */
  notification: NotificationRow | null;
}

async function* withNotifications(
  items: AsyncIterable<SinkItem>,
  log: Pick<NotificationLog, 'find'>,
): AsyncGenerator<DeadRow> {
  for await (const item of items) {
    yield { item, notification: await notificationAt(log, item.position) };
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

async function* toJson(items: AsyncIterable<SinkItem>) {
  for await (const item of items) {
    const { id, sink, position, productId, replayId: replay, attempts, error, queuedAtUs } = item;
    const queuedAt = formatDateUs(queuedAtUs);
    yield { id, sink, position, productId, replay, attempts, error, queuedAt };
  }
}
