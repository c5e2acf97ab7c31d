/** Gathers how a receiver stands. No part of it keeps another one from being told. */
import { setTimeout as delay } from 'node:timers/promises';
import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import type { Status, StatusFacts, StatusPart } from '../../domain/status.ts';
import { judgeStatus } from './judge-status.ts';
import {
  backupFacts,
  coverageFacts,
  logFacts,
  readerFacts,
  sinkFacts,
  subscriptionFacts,
  summaryFacts,
} from './status-facts.ts';
import type { StatusSources } from './status-sources.ts';

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
  const { store, behindProxy, probes, beside, nowUs } = sources;
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
  const [
    receiver,
    log,
    subscriptions,
    certificate,
    coverage,
    readers,
    sinks,
    summaries,
    disk,
    backups,
    alerts,
  ] = await Promise.all([
    of('receiver', sources.receiver),
    of('log', () => logFacts(sources, atUs)),
    of('subscriptions', () => subscriptionFacts(store, atUs)),
    of('certificate', probes.certificate),
    of('coverage', () => coverageFacts(store, atUs)),
    of('readers', () => readerFacts(sources)),
    of('sinks', () => sinkFacts(store, beside().handingOver())),
    of('summaries', async () => summaryFacts(store, await beside().summaryMode(), atUs)),
    of('disk', probes.disk),
    of('backup', () => backupFacts(store, beside().backupEveryHours)),
    of('alerts', () => store.alerts.alerts({ all: false, limit: alertsMax })),
  ]);
  const rejectedConfig = beside().handingOver().rejected ?? null;
  const facts: StatusFacts = {
    rejectedConfig,
    // The fault of the file is one finding: the rules of summaries cannot be read for the same reason.
    failures: failures.filter(({ reason }) => reason !== rejectedConfig),
    ...{ atUs, version: beside().version, receiver, log, behindProxy, certificate },
    ...{ subscriptions: subscriptions ?? [], coverage: coverage ?? [], readers: readers ?? [] },
    ...{ sinks: sinks ?? [], summaries, disk, backups, alerts: alerts ?? [] },
    comparisonOff: beside().comparisonOff,
  };
  return { ...facts, parts: await judgeStatus(facts) };
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
