/** Gathers the status of a receiver. A part that fails does not affect the others. */

import { stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { recordReader } from '../../admin/pull-queue.ts';
import { AppError, errorCodeOf, errorText, isAppError } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { firstOf } from '../../core/terms/streams.ts';
import { weekUs } from '../../core/terms/time-units.ts';
import type { JobContext } from '../../receiver/job-slot.ts';
import type { StoreReader } from '../../store/store.ts';
import { type CoverageSummary, readSubscriptionCoverage } from '../coverage/coverage.ts';
import { comparisonOff } from '../coverage/settings.ts';
import { currentProductFile } from '../products/index-file/product-file.ts';
import { readSinks, type SinkState } from '../sinks/report.ts';
import { type DeliveryState, sinkReader } from '../sinks/terms.ts';
import { createPushMemory } from '../subscriptions/pushes.ts';
import { readSubscriptions } from '../subscriptions/state.ts';
import { type SummaryRuleKind, summaryReader } from '../summary/terms.ts';
import { evaluateStatus } from './parts.ts';
import type { Probes } from './probes.ts';
import type {
  CertificateStatus,
  LogStatus,
  ReaderStatus,
  ReceiverStatus,
  SharedReceiverStatus,
  Status,
  StatusFacts,
  StatusPart,
  SummaryStatus,
} from './status.ts';

/** A part that takes longer is reported as failed. */
const partTimeoutMs = 5_000;

/** Lifetime of a gathered status: more frequent requests get the same one. */
const freshUs = 5_000_000;

/** Maximum number of active alerts: subscriptions and sinks are few. */
const alertsMax = 1_000;

/** Returns a function that gives the current status. Concurrent calls share one result. Never rejects. */
export function createStatus(sources: StatusSources): () => Promise<Status> {
  const { nowUs } = sources;
  let latest: Status | undefined;
  let gathering: Promise<Status> | undefined;
  const memory = createPushMemory();
  const gather = async () => {
    try {
      latest = await gatherStatus(sources, memory);
      return latest;
    } finally {
      gathering = undefined;
    }
  };
  return async () => {
    const ageUs = latest === undefined ? freshUs : nowUs() - latest.atUs;
    // The age is negative after the clock was set back.
    if (latest !== undefined && ageUs >= 0 && ageUs < freshUs) return latest;
    gathering ??= gather();
    return gathering;
  };
}

/** Gathers the status once. Never rejects: parts that fail are listed in `failures`. */
export async function gatherStatus(
  sources: StatusSources,
  memory = createPushMemory(),
): Promise<Status> {
  const { store, hasEndpoint, behindProxy, probes, backgroundJobs, nowUs } = sources;
  const atUs = nowUs();
  const failures: { part: StatusPart; reason: string }[] = [];
  const attempt = async <Value>(
    part: StatusPart,
    read: () => Promise<Value>,
  ): Promise<Value | null> => {
    try {
      return await withinTime(read);
    } catch (error) {
      failures.push({ part, reason: reasonOf(part, error, sources) });
      return null;
    }
  };
  const deliveryState = backgroundJobs().deliveryState();
  // All are read concurrently; none rejects.
  const found = await allByName({
    receiver: attempt('receiver', sources.receiver),
    log: attempt('log', () => logFacts(sources, atUs)),
    receivers: attempt('receivers', () => receiverFacts(sources, atUs)),
    subscriptions: attempt('subscriptions', () =>
      readSubscriptions(
        {
          administration: store.administration,
          completeness: store.completeness,
          maintenance: true,
          reconcile: backgroundJobs().comparisonOff === null,
        },
        memory,
        atUs,
      ),
    ),
    certificate: attempt('certificate', probes.certificate),
    coverage: attempt('coverage', () => coverageFacts(store, atUs)),
    readers: attempt('readers', () => readerFacts(sources)),
    sinks: attempt('sinks', () => sinkFacts(store, deliveryState)),
    summaries: attempt('summaries', async () =>
      summaryFacts(store, await backgroundJobs().summaryMode(), atUs),
    ),
    disk: attempt('disk', probes.disk),
    backups: attempt('backup', async () => ({
      ...(await store.backups.lastBackups()),
      everyHours: backgroundJobs().backupEveryHours,
    })),
    alerts: attempt('alerts', () => store.alerts.alerts({ all: false, limit: alertsMax })),
  });
  const rejectedConfig = deliveryState.rejected ?? null;
  const facts: StatusFacts = {
    ...found,
    ...{ atUs, hasEndpoint, behindProxy, rejectedConfig, version: backgroundJobs().version },
    comparisonOff: backgroundJobs().comparisonOff,
    // A rejected file is one finding: the summary rules cannot be read for the same reason.
    failures: failures.filter(({ reason }) => reason !== rejectedConfig),
    subscriptions: found.subscriptions ?? [],
    coverage: found.coverage ?? [],
    readers: found.readers ?? [],
    sinks: found.sinks ?? [],
    alerts: found.alerts ?? [],
  };
  return evaluateStatus(facts);
}

/** Waits for all promises, and returns their results by name. */
async function allByName<Values extends object>(
  promises: {
    [Name in keyof Values]: Promise<Values[Name]>;
  },
): Promise<Values> {
  const names = Object.keys(promises) as (keyof Values)[];
  const values = await Promise.all(names.map((name) => promises[name]));
  return Object.fromEntries(names.map((name, i) => [name, values[i]])) as Values;
}

async function withinTime<Value>(read: () => Promise<Value>): Promise<Value> {
  const done = new AbortController();
  const timeout = delay(partTimeoutMs, undefined, { signal: done.signal }).then(() => {
    throw new AppError('unavailable', `No answer within ${partTimeoutMs / 1_000} s.`);
  });
  try {
    return await Promise.race([read(), timeout]);
  } finally {
    done.abort();
  }
}

/** Describes an error. The text of an unexpected one is written to the log only. */
function reasonOf(part: StatusPart, error: unknown, { log }: Pick<StatusSources, 'log'>): string {
  if (isAppError(error) && error.code !== 'internal') {
    return [errorText(error), ...error.details].join(' ');
  }
  log.warn({ part, err: error }, 'failed to read a part of the status');
  return 'Internal error; see the log.';
}

type Store = StatusSources['store'];

/** Like the functions below, rejects with `unavailable` if a read fails. */
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
  // Ignores times in the future, recorded with a wrong clock.
  const times = [newest ?? [], delivered].flat().filter((us) => us <= nowUs);
  const lastReceivedAtUs = times.length === 0 ? null : Math.max(...times);
  return { ...size, indexBytes, lastReceivedAtUs, quarantined, pruned };
}

async function receiverFacts(
  { probes }: Pick<StatusSources, 'probes'>,
  nowUs: number,
): Promise<SharedReceiverStatus[] | null> {
  const receivers = (await probes.receivers?.()) ?? null;
  if (receivers === null) return null;
  return receivers.nodes.map(({ id, name, lag, ageMs, facts: { refusing, fault } }) => ({
    ...{ name, isThis: id === receivers.ownId, lag, refusing, fault },
    reportedAtUs: nowUs - Math.round(ageMs * 1_000),
  }));
}

/** Reads the coverage of seven days, as `earshot coverage` prints it. */
export async function coverageFacts(
  { completeness }: Pick<Store, 'completeness'>,
  nowUs: number,
): Promise<CoverageSummary[]> {
  const window = { sinceUs: nowUs - weekUs, untilUs: nowUs, nowUs };
  const coverage = await readSubscriptionCoverage(completeness, window);
  return coverage.map(({ hours: _, ...summary }) => summary);
}

/** An enabled index that does not exist yet is at position 0. */
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
  if (key === recordReader) return 'records';
  return key.startsWith(sinkReader('')) ? 'sink' : 'tail';
}

async function sinkFacts(store: Store, delivery: DeliveryState): Promise<SinkState[]> {
  const sinks = await readSinks({ sinks: store.sinks, notifications: store }, delivery);
  const { fault, rejected = null } = delivery;
  // A rejected file is reported by its own finding.
  if (sinks.length > 0 || fault === null || rejected !== null) return sinks;
  throw new AppError('configuration', fault);
}

async function summaryFacts(
  { summaries }: Pick<Store, 'summaries'>,
  mode: SummaryRuleKind,
  nowUs: number,
): Promise<SummaryStatus> {
  const [waiting, { requests, tokens }, refusedAnswer] = await Promise.all([
    summaries.waiting(),
    summaries.spending(nowUs),
    summaries.refusedAnswer(),
  ]);
  return { mode, ...waiting, requests, tokens, refusedAnswer };
}

/** Returns null if the newest one was recovered: delivery marks have the times of earlier pushes. */
async function newestPushUs({ find }: Pick<Store, 'find'>): Promise<number | null> {
  for await (const row of find({ limit: 1 }))
    return row.source !== 'reconcile' ? row.receivedAtUs : null;
  return null;
}

async function indexSize(dataDir: string): Promise<number> {
  const file = currentProductFile(dataDir);
  if (file === null) return 0;
  const sizes = await Promise.all([file, `${file}-wal`].map(sizeOf));
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}

/** Returns 0 for a missing file. */
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
  /** State of the deliveries to sinks. */
  deliveryState: () => DeliveryState;
  /** Mode over the rules of all subscriptions: `each` if any has it. Rejects if they cannot be read. */
  summaryMode: () => Promise<SummaryRuleKind>;
  /** Interval of automatic backups; null for none. */
  backupEveryHours: number | null;
  /** Why automatic comparison is off; null if it is on. */
  comparisonOff: string | null;
  /** True if alerts are sent to a URL or a command. Known only to the running receiver. */
  hasAlertChannel?: boolean;
}

/** Returns what the status shows of the background jobs of this receiver. */
export function shownJobs({
  version,
  settings,
  jobs,
}: Pick<JobContext, 'version' | 'settings' | 'jobs'>): BackgroundJobs {
  const { folder, everyHours } = settings.backup;
  return {
    version,
    deliveryState: jobs.get('sinks')?.state as () => DeliveryState,
    summaryMode: jobs.get('summary mode')?.state as () => Promise<SummaryRuleKind>,
    backupEveryHours: folder === null ? null : everyHours,
    comparisonOff: comparisonOff(settings),
    hasAlertChannel: settings.alertUrl !== null || settings.alertCommand !== null,
  };
}

export interface StatusSources {
  store: StoreReader;
  dataDir: string;
  /** False if the receiver only reads queues. */
  hasEndpoint: boolean;
  /** True if a proxy terminates HTTPS. */
  behindProxy: boolean;
  /** True if the product index is enabled. */
  index: boolean;
  probes: Pick<Probes<CertificateStatus>, 'disk' | 'receivers' | 'certificate'>;
  /** Resolves with null if no receiver runs; rejects if that cannot be determined. */
  receiver: () => Promise<ReceiverStatus | null>;
  backgroundJobs: () => BackgroundJobs;
  nowUs: () => number;
  log: Pick<Logger, 'warn'>;
}
