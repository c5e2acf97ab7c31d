/**
 * How a receiver stands, as one document: what `earshot status`, `/api/status` and the metrics show. Times are
 * microseconds since 1970, UTC; null is not known, or there is none.
 */
import type { Alert } from './alerts.ts';
import type { BackupRun, LastBackups } from './backups.ts';
import { type CoverageSummary, toComparisonJson, toSummaryJson } from './coverage-report.ts';
import { formatDateUs } from './dates.ts';
import type { DiskRoom } from './disk-room.ts';
import type { LogSize, PruneHorizon } from './pruning.ts';
import type { SummaryRuleKind } from './summaries.ts';

/** What is shown on its own, and judged on its own: in the order of showing. */
export const statusParts = [
  'receiver',
  'log',
  'subscriptions',
  'certificate',
  'coverage',
  'readers',
  'sinks',
  'summaries',
  'disk',
  'backup',
  'alerts',
] as const;

export type StatusPart = (typeof statusParts)[number];

/** `unused` is a part that is turned off, or that there is nothing to say of: nothing is wrong with it. */
export const statusLevels = ['well', 'unused', 'warning', 'critical'] as const;

export type StatusLevel = (typeof statusLevels)[number];

/** How one part stands, in words for people. */
export interface PartStatus {
  part: StatusPart;
  level: StatusLevel;
  /** What there is to say of it; of one that is not well, what is wrong, in one sentence. */
  text: string;
  /** What to do; null where there is nothing to do. */
  nextStep: string | null;
}

/** The facts with the judgement on them. */
export interface Status extends StatusFacts {
  /** One for each of `statusParts`, in that order. */
  parts: readonly PartStatus[];
}

export interface StatusFacts {
  atUs: number;
  version: string;
  /** Parts that could not be looked at, and why. Of such a part the fields are null or empty. */
  failures: readonly { part: StatusPart; reason: string }[];
  /** Null where no receiver serves: the store was looked at alone. */
  receiver: ReceiverStatus | null;
  /** Null only when it could not be read; the same is true of `summaries` and `backups`. */
  log: LogStatus | null;
  subscriptions: readonly SubscriptionStatus[];
  /** Whether a proxy speaks HTTPS: then it has the certificate. */
  behindProxy: boolean;
  /** Null behind a proxy, and before the first certificate. */
  certificate: CertificateStatus | null;
  readers: readonly ReaderStatus[];
  summaries: SummaryStatus | null;
  sinks: readonly SinkStatus[];
  /** Why the current `earshot.config.ts` is rejected; null or absent when it is in effect. */
  rejectedConfig?: string | null;
  /** Of the last seven days. */
  coverage: readonly CoverageSummary[];
  /** Why hours are not compared automatically; null when they are. */
  comparisonOff: string | null;
  disk: DiskRoom | null;
  /** `everyHours` is null where none are made by themselves. */
  backups: (LastBackups & { everyHours: number | null }) | null;
  /** Those that last. */
  alerts: readonly Alert[];
}

export interface ReceiverStatus {
  /** Null where it could not be found out from outside. */
  startedAtUs: number | null;
  /** Process id; null where it could not be found out from outside. */
  pid: number | null;
  /** Why notifications cannot be stored; null when they can. */
  refusing: string | null;
  /** Null to those who ask from outside. */
  queue: { bytes: number; bytesMax: number } | null;
}

export interface LogStatus extends LogSize {
  /** The product index beside it; 0 without one. */
  indexBytes: number;
  /** The last delivery of the catalogue, one that was known already included. */
  lastReceivedAtUs: number | null;
  /** Bodies that are held. */
  quarantined: number;
  pruned: PruneHorizon | null;
}

export interface SubscriptionStatus {
  name: string;
  state: 'running' | 'paused' | 'unfinished' | 'absent';
  /** Whether it is paused, or should be, by the user's own wish or command. */
  pausedOnPurpose: boolean;
  lastDeliveryAtUs: number | null;
  /** When the catalogue will act on it by itself (specification, Limits). */
  pausesAtUs: number | null;
  cancelsAtUs: number | null;
}

export interface CertificateStatus {
  /** Both null while the first one is still tried for. */
  notAfterUs: number | null;
  lifetimeUs: number | null;
  /** Null with files of the user's own. */
  lastAttemptAtUs: number | null;
  lastSuccessAtUs: number | null;
  /** Of the last attempt; null when it succeeded. */
  lastFailure: string | null;
}

export interface ReaderStatus {
  name: string;
  /** What reads: a part of earshot, or a command of the user's. */
  of: 'index' | 'summaries' | 'sink' | 'tail';
  position: number;
  /** Positions of the log that it has yet to read; a notification that came again took one, too. */
  behind: number;
  /** When the first of them was received; null when it has read all. */
  unreadSinceUs: number | null;
}

export interface SummaryStatus {
  /** Of the rules of all subscriptions: `each` where any asks for it. */
  mode: SummaryRuleKind;
  /** Those being asked for included. */
  waiting: number;
  /** When the next one is due, which may lie in the past; null when none waits. */
  nextDueAtUs: number | null;
  failed: number;
  /** What was asked of the inference service within the last 24 hours. */
  requests: number;
  tokens: number;
}

export interface SinkStatus {
  name: string;
  /** Whether the configuration has it; null where that is not known. */
  isSetUp: boolean | null;
  waiting: number;
  dead: number;
  /** When the oldest item that waits was queued. */
  oldestWaitingAtUs: number | null;
  /** The same without replays, which wait behind what is new. */
  oldestLiveWaitingAtUs: number | null;
  /** Why the item that was tried last failed; null when none has failed. */
  lastError: string | null;
  /** Why nothing can be handed over to it; null when it can. */
  fault: string | null;
}

const time = (us: number | null) => (us === null ? null : formatDateUs(us));

/** Times ISO 8601 UTC; null is not known, or there is none. */
export function toStatusJson(status: Status) {
  const { atUs, version, parts, failures, receiver, log, certificate, disk, backups } = status;
  return {
    at: formatDateUs(atUs),
    version,
    well: isWell(status),
    parts: [...parts],
    failures: [...failures],
    receiver: receiver && {
      startedAt: time(receiver.startedAtUs),
      pid: receiver.pid,
      refusing: receiver.refusing,
      queue: receiver.queue,
    },
    log: log && logJson(log),
    subscriptions: status.subscriptions.map(
      ({ lastDeliveryAtUs, pausesAtUs, cancelsAtUs, ...one }) => ({
        ...one,
        lastDeliveryAt: time(lastDeliveryAtUs),
        pausesAt: time(pausesAtUs),
        cancelsAt: time(cancelsAtUs),
      }),
    ),
    behindProxy: status.behindProxy,
    certificate: certificate && {
      notAfter: time(certificate.notAfterUs),
      lifetimeSeconds: certificate.lifetimeUs === null ? null : certificate.lifetimeUs / 1_000_000,
      lastAttemptAt: time(certificate.lastAttemptAtUs),
      lastSuccessAt: time(certificate.lastSuccessAtUs),
      lastFailure: certificate.lastFailure,
    },
    coverage: status.coverage.map((one) => toSummaryJson(one, status.comparisonOff)),
    comparison: toComparisonJson(status.comparisonOff),
    readers: status.readers.map(({ unreadSinceUs, ...one }) => ({
      ...one,
      unreadSince: time(unreadSinceUs),
    })),
    sinks: status.sinks.map(({ oldestWaitingAtUs, oldestLiveWaitingAtUs, ...one }) => ({
      ...one,
      oldestWaitingAt: time(oldestWaitingAtUs),
      oldestLiveWaitingAt: time(oldestLiveWaitingAtUs),
    })),
    summaries: summariesJson(status),
    disk,
    backups: backups && {
      made: backups.made && runJson(backups.made),
      failed: backups.failed && runJson(backups.failed),
      everyHours: backups.everyHours,
    },
    alerts: status.alerts.map(alertJson),
  };
}

/** Whether no part of it is wrong. */
export function isWell({ parts }: Pick<Status, 'parts'>): boolean {
  return parts.every(({ level }) => level === 'well' || level === 'unused');
}

function logJson({ firstReceivedAtUs, lastReceivedAtUs, pruned, ...log }: LogStatus) {
  return {
    ...log,
    firstReceivedAt: time(firstReceivedAtUs),
    lastReceivedAt: time(lastReceivedAtUs),
    pruned: pruned && {
      position: pruned.position,
      receivedBefore: formatDateUs(pruned.receivedBeforeUs),
      prunedAt: formatDateUs(pruned.prunedAtUs),
    },
  };
}

function summariesJson({ summaries }: Pick<Status, 'summaries'>) {
  if (summaries === null) return null;
  const { nextDueAtUs, ...rest } = summaries;
  return { ...rest, nextDueAt: time(nextDueAtUs) };
}

function runJson({ startedAtUs, endedAtUs, ...run }: BackupRun) {
  return { ...run, startedAt: formatDateUs(startedAtUs), endedAt: formatDateUs(endedAtUs) };
}

function alertJson({ raisedAtUs, resolvedAtUs: _, evidence, ...alert }: Alert) {
  return { ...alert, evidence: [...evidence], raisedAt: formatDateUs(raisedAtUs) };
}
