/** A status as programs get it, from the command line and the private listener alike. */
import type { Alert } from './alerts.ts';
import type { BackupRun } from './backups.ts';
import { toComparisonJson, toSummaryJson } from './coverage-json.ts';
import { formatDateUs } from './notification-date.ts';
import type { LogStatus, Status } from './status.ts';

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
