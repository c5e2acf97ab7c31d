/** Gathers how a receiver stands. No part of it keeps another one from being told. */

import { stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { lifetimeOf } from '../../admin/review.ts';
import type { Registration } from '../../domain/account.ts';
import { AppError, errorCodeOf, errorText, isAppError } from '../../domain/app-error.ts';
import { type CoverageSummary, readSubscriptionCoverage } from '../../domain/coverage.ts';
import type { Logger } from '../../domain/ports.ts';
import { sinkReader } from '../../domain/sinks.ts';
import type {
  CertificateStatus,
  LogStatus,
  ReaderStatus,
  ReceiverStatus,
  SinkStatus,
  Status,
  StatusFacts,
  StatusPart,
  SubscriptionStatus,
  SummaryStatus,
} from '../../domain/status.ts';
import { firstOf } from '../../domain/streams.ts';
import { type SummaryRuleKind, summaryReader } from '../../domain/summaries.ts';
import { currentProductFile } from '../../store/products/product-file.ts';
import type { StoreReader } from '../../store/store.ts';
import type { DeliveryState, Probes } from '../../watch/situation.ts';
import { evaluateStatus } from './check-status.ts';

/** A part that takes longer is told as one that could not be looked at. */
const partTimeoutMs = 5_000;

/** What was gathered serves so long: whoever asks more often gets the same. */
const freshUs = 5_000_000;

/** More alerts than these do not last at a time: subscriptions and sinks are few. */
const alertsMax = 1_000;

/** A status to be asked for again and again. Those who ask at the same time share one gathering. Never rejects. */
export function createStatus(sources: StatusSources): () => Promise<Status> {
  const { nowUs } = sources;
  let latest: Status | undefined;
  let gathering: Promise<Status> | undefined;
  const gather = async () => {
    try {
      latest = await gatherStatus(sources);
      return latest;
    } finally {
      gathering = undefined;
    }
  };
  return async () => {
    const ageUs = latest === undefined ? freshUs : nowUs() - latest.atUs;
    // A clock that was set back makes it older than it can be.
    if (latest !== undefined && ageUs >= 0 && ageUs < freshUs) return latest;
    gathering ??= gather();
    return gathering;
  };
}

/** Looks once. Never rejects: what fails is told in `failures`. */
export async function gatherStatus(sources: StatusSources): Promise<Status> {
  const { store, behindProxy, probes, backgroundJobs, nowUs } = sources;
  const atUs = nowUs();
  const failures: { part: StatusPart; reason: string }[] = [];
  const of = async <Value>(part: StatusPart, read: () => Promise<Value>): Promise<Value | null> => {
    try {
      return await withinTime(read);
    } catch (error) {
      failures.push({ part, reason: reasonOf(part, error, sources) });
      return null;
    }
  };
  const deliveryState = backgroundJobs().deliveryState();
  // All are read at the same time; none rejects.
  const found = await together({
    receiver: of('receiver', sources.receiver),
    log: of('log', () => logFacts(sources, atUs)),
    subscriptions: of('subscriptions', () => subscriptionFacts(store, atUs)),
    certificate: of('certificate', probes.certificate),
    coverage: of('coverage', () => coverageFacts(store, atUs)),
    readers: of('readers', () => readerFacts(sources)),
    sinks: of('sinks', () => sinkFacts(store, deliveryState)),
    summaries: of('summaries', async () =>
      summaryFacts(store, await backgroundJobs().summaryMode(), atUs),
    ),
    disk: of('disk', probes.disk),
    backups: of('backup', async () => ({
      ...(await store.backups.lastBackups()),
      everyHours: backgroundJobs().backupEveryHours,
    })),
    alerts: of('alerts', () => store.alerts.alerts({ all: false, limit: alertsMax })),
  });
  const rejectedConfig = deliveryState.rejected ?? null;
  const facts: StatusFacts = {
    ...found,
    ...{ atUs, behindProxy, rejectedConfig, version: backgroundJobs().version },
    comparisonOff: backgroundJobs().comparisonOff,
    // The fault of the file is one finding: the rules of summaries cannot be read for the same reason.
    failures: failures.filter(({ reason }) => reason !== rejectedConfig),
    subscriptions: found.subscriptions ?? [],
    coverage: found.coverage ?? [],
    readers: found.readers ?? [],
    sinks: found.sinks ?? [],
    alerts: found.alerts ?? [],
  };
  return { ...facts, parts: evaluateStatus(facts) };
}

/** What each of the promises resolves with, under its name. */
async function together<Values extends object>(
  promises: {
    [Name in keyof Values]: Promise<Values[Name]>;
  },
): Promise<Values> {
  const names = Object.keys(promises) as (keyof Values)[];
  const values = await Promise.all(names.map((name) => promises[name]));
  return Object.fromEntries(names.map((name, i) => [name, values[i]])) as Values;
}

async function withinTime<Value>(read: () => Promise<Value>): Promise<Value> {
  const enough = new AbortController();
  const late = delay(partTimeoutMs, undefined, { signal: enough.signal }).then(() => {
    throw new AppError('unavailable', `No answer within ${partTimeoutMs / 1_000} s.`);
  });
  try {
    return await Promise.race([read(), late]);
  } finally {
    enough.abort();
  }
}

/** Of what should not happen, the log alone has the words. */
function reasonOf(part: StatusPart, error: unknown, { log }: Pick<StatusSources, 'log'>): string {
  if (isAppError(error) && error.code !== 'internal') {
    return [errorText(error), ...error.details].join(' ');
  }
  log.warn({ part, err: error }, 'a part of the status could not be looked at');
  return 'It failed in a way it should not; the log has more.';
}

type Store = StatusSources['store'];

const weekUs = 7 * 86_400_000_000;

/** All reject with `unavailable`. */
async function logFacts(
  { store, dataDir }: Pick<StatusSources, 'store' | 'dataDir'>,
  nowUs: number,
): Promise<LogStatus> {
  const [size, pruned, quarantined, newest, marks, indexBytes] = await Promise.all([
    store.pruning.logSize(),
    store.pruning.pruneHorizon(),
    store.quarantinedCount(),
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

async function subscriptionFacts(
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
async function readerFacts({
  store,
  index,
}: Pick<StatusSources, 'store' | 'index'>): Promise<ReaderStatus[]> {
  const [holders, { lastPosition }] = await Promise.all([
    store.pruning.pruneBlockers(),
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
    const first = behind === 0 ? null : await firstOf(store, { afterPosition });
    return { ...reader, behind, unreadSinceUs: first?.receivedAtUs ?? null };
  });
  return Promise.all(facts);
}

function readerOf(key: string): ReaderStatus['of'] {
  if (key === summaryReader) return 'summaries';
  return key.startsWith(sinkReader('')) ? 'sink' : 'tail';
}

async function sinkFacts(
  { sinks }: Pick<Store, 'sinks'>,
  { names, faults, fault, rejected = null }: DeliveryState,
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

async function summaryFacts(
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

/** Null where the newest was fetched: what was pushed before, the marks tell. */
async function newestPushUs({ find }: Pick<Store, 'find'>): Promise<number | null> {
  for await (const row of find({ limit: 1 }))
    return row.source === 'push' ? row.receivedAtUs : null;
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

/** Settings and background jobs, as the status shows them. */
export interface BackgroundJobs {
  version: string;
  /** How it stands with the sinks. */
  deliveryState: () => DeliveryState;
  /** Of the rules of all subscriptions: `each` where any asks for it. Rejects when they cannot be read. */
  summaryMode: () => Promise<SummaryRuleKind>;
  /** How often a backup is made by itself; null where none is. */
  backupEveryHours: number | null;
  /** Why hours are not compared automatically; null when they are. */
  comparisonOff: string | null;
}

export interface StatusSources {
  store: StoreReader;
  dataDir: string;
  /** Whether a proxy speaks HTTPS. */
  behindProxy: boolean;
  /** Whether the product index is kept. */
  index: boolean;
  probes: Pick<Probes, 'disk'> & { certificate(): Promise<CertificateStatus | null> };
  /** Resolves with null when no receiver runs; rejects when that cannot be found out. */
  receiver: () => Promise<ReceiverStatus | null>;
  backgroundJobs: () => BackgroundJobs;
  nowUs: () => number;
  log: Pick<Logger, 'warn'>;
}
