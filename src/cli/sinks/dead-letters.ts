/** `earshot sinks retry`, and `drop` of dead letters: what becomes of what a sink refused. */
import { readWatchConfig, type WatchConfig } from '../../config/completeness-config.ts';
import { readAll, readDataConfig } from '../../config/read-config.ts';
import { loadEachSink } from '../../config/sinks-config.ts';
import type { AlertFinding } from '../../domain/alerts.ts';
import { AppError } from '../../domain/app-error.ts';
import { type SinkReader, sinkReader } from '../../domain/sinks.ts';
import { openStore, type Store } from '../../store/store.ts';
import { judgeBehind, judgeRefused } from '../../watch/judge/judge-sink.ts';
import { joined, unjudged } from '../../watch/verdict.ts';
import { alertTellers } from '../alerts/alert-tellers.ts';
import { confirm } from '../confirm.ts';
import type { Io } from '../io.ts';
import { counted } from './counted.ts';
import { dropWaiting } from './drop-waiting.ts';
import { requireSink } from './known-sink.ts';

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
  const [data, watch] = readAll(
    () => readDataConfig(io),
    () => readWatchConfig(io),
  );
  const store = await openStore({ ...data, nowUs: io.nowUs, mustExist: true });
  try {
    // Also where only a part could be done.
    try {
      await use(store);
    } finally {
      await settleAlerts(io, sink, { store, watch });
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
  const behind = judgeBehind(view, { lasting, nowUs });
  // A fault of the sink, or a log that is not read for it, is for the watchdog to see: it lasts.
  const isKnown = !faulty.includes(sink) && (!isUnread || behind.findings.length > 0);
  const { judged, findings } = joined([judgeRefused(view), isKnown ? behind : unjudged]);
  // A new alert is raised by the watchdog alone.
  const isLasting = ({ kind }: Pick<AlertFinding, 'kind'>) =>
    lasting.some((alert) => alert.kind === kind && alert.subject === sink);
  const { channels } = alertTellers(watch, io);
  await alerts.settleFindings({
    judged: judged.filter(isLasting),
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
