/** The facts of a status, part by part, each with the same small effort however large the log is. */
import { stat } from 'node:fs/promises';
import { lifetimeOf } from '../../admin/maintenance/lifetimes.ts';
import type { Registration } from '../../domain/administration.ts';
import { AppError } from '../../domain/app-error.ts';
import type { CoverageSummary } from '../../domain/coverage-report.ts';
import { errorCodeOf } from '../../domain/error-code.ts';
import type { NotificationQuery } from '../../domain/ports.ts';
import { readSubscriptionCoverage } from '../../domain/read-coverage.ts';
import { sinkReader } from '../../domain/sinks.ts';
import type {
  LogStatus,
  ReaderStatus,
  SinkStatus,
  StatusFacts,
  SubscriptionStatus,
  SummaryStatus,
} from '../../domain/status.ts';
import { summaryReader } from '../../domain/summaries.ts';
import type { SummaryRuleKind } from '../../domain/summary-rule.ts';
import { currentProductFile } from '../../store/products/product-file.ts';
import type { HandingOver } from '../../watch/watch-world.ts';
import type { StatusSources } from './status-sources.ts';

type Store = StatusSources['store'];

const weekUs = 7 * 86_400_000_000;

/** All reject with `unavailable`. */
export async function logFacts(
  { store, dataDir }: Pick<StatusSources, 'store' | 'dataDir'>,
  nowUs: number,
): Promise<LogStatus> {
  const [size, pruned, quarantined, newest, marks, indexBytes] = await Promise.all([
    store.pruning.logSize(),
    store.pruning.pruneHorizon(),
    store.heldCount(),
    newestPushUs(store),
    store.administration.deliveryMarks(),
    indexSize(dataDir),
  ]);
  const delivered = marks.map(({ lastAtUs }) => lastAtUs);
  // One of a clock that was ahead says nothing.
  const times = [newest ?? [], delivered].flat().filter((us) => us <= nowUs);
  const lastReceivedAtUs = times.length === 0 ? null : Math.max(...times);
  return { ...size, indexBytes, lastReceivedAtUs, quarantined, pruned };
}

export async function subscriptionFacts(
  { administration }: Pick<Store, 'administration'>,
  nowUs: number,
): Promise<SubscriptionStatus[]> {
  const [registrations, marks] = await Promise.all([
    administration.registrations(),
    administration.deliveryMarks(),
  ]);
  return registrations.map((registration) => {
    const { name, status, heldBy } = registration;
    const delivered = marks.filter((one) => one.subscription === name && one.lastAtUs <= nowUs);
    const lastDeliveryAtUs =
      delivered.length === 0 ? null : Math.max(...delivered.map(({ lastAtUs }) => lastAtUs));
    const state = stateOf(registration);
    const lifetime = lifetimeOf({ registration, listed: undefined, lastDeliveryAtUs, nowUs });
    return {
      name,
      state,
      pausedOnPurpose: status === 'paused' || heldBy === 'command',
      lastDeliveryAtUs,
      pausesAtUs: state === 'running' ? lifetime.pausesAtUs : null,
      cancelsAtUs: state === 'absent' ? null : lifetime.cancelsAtUs,
    };
  });
}

function stateOf(registration: Registration): SubscriptionStatus['state'] {
  const { subscriptionId, unfinished, status, heldBy, pausedSeenAtUs } = registration;
  if (unfinished) return 'unfinished';
  if (subscriptionId === null) return 'absent';
  const isPaused = status === 'paused' || heldBy === 'command' || pausedSeenAtUs !== null;
  return isPaused ? 'paused' : 'running';
}

/** The coverage of seven days, as `earshot coverage` shows it. */
export async function coverageFacts(
  { completeness }: Pick<Store, 'completeness'>,
  nowUs: number,
): Promise<CoverageSummary[]> {
  const window = { sinceUs: nowUs - weekUs, untilUs: nowUs, nowUs };
  const coverage = await readSubscriptionCoverage(completeness, window);
  return coverage.map(({ hours: _, ...summary }) => summary);
}

/** An index that is to be there and is not has read nothing. */
export async function readerFacts({
  store,
  index,
}: Pick<StatusSources, 'store' | 'index'>): Promise<ReaderStatus[]> {
  const [holders, { lastPosition }] = await Promise.all([
    store.pruning.logHolders(),
    store.pruning.logSize(),
  ]);
  const cursors = holders.filter(({ kind }) => kind === 'cursor');
  const indexed = holders.find(({ kind }) => kind === 'index')?.position ?? 0;
  const readers: Pick<ReaderStatus, 'name' | 'of' | 'position'>[] = [
    ...(index ? [{ name: 'product index', of: 'index' as const, position: indexed }] : []),
    ...cursors.map(({ name, key, position }) => ({ name, of: readerOf(key), position })),
  ];
  const facts = readers.map(async (reader) => {
    const { position: afterPosition } = reader;
    const behind = Math.max(0, lastPosition - afterPosition);
    const first = { afterPosition, order: 'oldest', limit: 1 } as const;
    const unreadSinceUs = behind === 0 ? null : await receivedAtUs(store, first);
    return { ...reader, behind, unreadSinceUs };
  });
  return Promise.all(facts);
}

function readerOf(key: string): ReaderStatus['of'] {
  if (key === summaryReader) return 'summaries';
  return key.startsWith(sinkReader('')) ? 'sink' : 'tail';
}

export async function sinkFacts(
  { sinks }: Pick<Store, 'sinks'>,
  { names, faults, fault, rejected = null }: HandingOver,
): Promise<SinkStatus[]> {
  const counts = await sinks.counts();
  const known = new Set([...(names ?? []), ...counts.map(({ sink }) => sink)]);
  // A rejected file is reported by its own finding.
  if (known.size === 0 && fault !== null && rejected === null) {
    throw new AppError('configuration', fault);
  }
  return [...known].toSorted().map((name) => {
    const count = counts.find(({ sink }) => sink === name);
    const isSetUp = names === null ? null : names.includes(name);
    return {
      name,
      isSetUp,
      waiting: count?.waiting ?? 0,
      dead: count?.dead ?? 0,
      oldestWaitingAtUs: count?.oldestQueuedAtUs ?? null,
      oldestLiveWaitingAtUs: count?.oldestLiveQueuedAtUs ?? null,
      lastError: count?.error ?? null,
      fault: isSetUp === false ? null : (faults?.get(name) ?? fault),
    };
  });
}

export async function summaryFacts(
  { summaries }: Pick<Store, 'summaries'>,
  mode: SummaryRuleKind,
  nowUs: number,
): Promise<SummaryStatus> {
  const [backlog, nextDueAtUs, { requestsLastDay, tokensLastDay }] = await Promise.all([
    summaries.backlog(),
    summaries.nextDueAtUs(),
    summaries.spending(nowUs),
  ]);
  return { mode, ...backlog, nextDueAtUs, requests: requestsLastDay, tokens: tokensLastDay };
}

export async function backupFacts(
  { backups }: Pick<Store, 'backups'>,
  everyHours: number | null,
): Promise<StatusFacts['backups']> {
  return { ...(await backups.lastBackups()), everyHours };
}

/** When the first row of a query was received; null when there is none. */
/** Null where the newest was fetched: what was pushed before, the marks tell. */
async function newestPushUs({ find }: Pick<Store, 'find'>): Promise<number | null> {
  for await (const row of find({ limit: 1 }))
    return row.source === 'push' ? row.receivedAtUs : null;
  return null;
}

async function receivedAtUs(
  { find }: Pick<Store, 'find'>,
  query: NotificationQuery,
): Promise<number | null> {
  for await (const row of find(query)) return row.receivedAtUs;
  return null;
}

async function indexSize(dataDir: string): Promise<number> {
  const file = currentProductFile(dataDir);
  if (file === null) return 0;
  const sizes = await Promise.all([file, `${file}-wal`].map(sizeOf));
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}

/** 0 for a file that is not there, or no longer. */
async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return 0;
    throw error;
  }
}
