/** Alerts of the machine: certificate, disk, intake, backups, and the receivers and database of a shared log. */
import { hourUs } from '../domain/completeness.ts';
import { type DiskSpace, diskLevels, type LastBackups } from '../domain/ports.ts';
import type { DatabaseWarning, KnownNode } from '../domain/shared-log.ts';
import { sizeText } from '../domain/text.ts';
import type { AlertRow, Certificate } from './situation.ts';
import {
  countText,
  dayUs,
  lengthText,
  minuteUs,
  momentText,
  percentText,
  quoted,
} from './texts.ts';

/**
 * Share of the lifetime at which the alert is raised: a fifth, as automatic renewal starts at a third (decision 14).
 */
const lifetimeShare = 5;

/** Limits for long-lived certificates; short-lived ones are renewed within days. */
const longLivedUs = 30 * dayUs;

const nearEndUs = { min: 7 * dayUs, max: 30 * dayUs };

const criticalUs = 2 * dayUs;

/** Resolved by a renewal, which leaves far more than a tenth above the limit. */
export const certificateRow: AlertRow<Certificate | null> = {
  kind: 'certificate',
  check: (certificate, { nowUs, alert }) => {
    if (certificate?.notAfterUs == null || certificate.lifetimeUs === null) return null;
    const { notAfterUs, lifetimeUs, lastFailure } = certificate;
    const leftUs = notAfterUs - nowUs;
    const share = lifetimeUs / lifetimeShare;
    const isLong = lifetimeUs >= longLivedUs;
    const limitUs = isLong ? Math.min(nearEndUs.max, Math.max(nearEndUs.min, share)) : share;
    if (leftUs > limitUs * (alert === undefined ? 1 : 1.1)) return null;
    return {
      severity: leftUs < Math.min(criticalUs, share / 2) ? 'critical' : 'warning',
      cause:
        leftUs <= 0
          ? 'The certificate has expired and has not been renewed. The catalogue delivers no notifications.'
          : `The certificate expires in ${lengthText(leftUs)} and has not been renewed. After that, the catalogue delivers no notifications.`,
      evidence: [
        `The certificate is valid until ${momentText(notAfterUs)}.`,
        ...(lastFailure === null ? [] : [`The last renewal failed: ${quoted(lastFailure)}`]),
      ],
      nextStep:
        'To see why, run `earshot certificate show`. If you set EARSHOT_TLS_CERT and EARSHOT_TLS_KEY, renew these files.',
    };
  },
};

/** Resolved when a fifth more is free. */
const diskResolveFactor = 1.2;

/** Not checked when the free space is not known. */
export const diskRow: AlertRow<DiskSpace | null> = {
  kind: 'disk',
  check: (disk, { alert }) => {
    if (disk === null) return 'unchecked';
    const { freeBytes, totalBytes, reserveBytes } = disk;
    const { warningBytes, criticalBytes } = diskLevels(disk);
    const isBelow = (bytes: number, isActive: boolean) =>
      freeBytes < bytes * (isActive ? diskResolveFactor : 1);
    if (!isBelow(warningBytes, alert !== undefined)) return null;
    const end =
      reserveBytes === 0
        ? 'When the disk is full'
        : `When less than ${sizeText(reserveBytes)} is free`;
    return {
      severity: isBelow(criticalBytes, alert?.severity === 'critical') ? 'critical' : 'warning',
      cause: `The disk of the data directory has only ${sizeText(freeBytes)} of free space.`,
      evidence: [
        `That is ${percentText(freeBytes / totalBytes)} of ${sizeText(totalBytes)}. ${end}, notifications are refused and lost.`,
      ],
      nextStep:
        'Free some space, remove old notifications with `earshot prune`, or move EARSHOT_DATA_DIR to a larger disk.',
    };
  },
};

/** The subject is the reason why notifications cannot be stored. A queue may be full for a moment. */
export const intakeRow: AlertRow<string | null> = {
  kind: 'intake',
  resolveAfterUs: 5 * minuteUs,
  check: (reason) =>
    reason === null
      ? null
      : {
          severity: 'critical',
          raiseAfterUs: 0.75 * minuteUs,
          cause:
            'Notifications cannot be stored. The catalogue retries each delivery three times, then drops the notification.',
          evidence: [quoted(reason)],
          nextStep:
            'Run `earshot doctor` and fix the fault. A running receiver then fetches lost notifications automatically. Otherwise run `earshot reconcile`.',
        },
};

/** Number of intervals without a backup that raises the alert. */
const intervals = 2;

/** Resolved by the next successful backup. After a start, a due backup is made first. */
export const backupRow: AlertRow<LastBackups & { everyHours: number | null }> = {
  kind: 'backup',
  check: ({ made, failed, everyHours }, { nowUs, upSinceUs }) => {
    const ageUs = made === null ? Number.POSITIVE_INFINITY : nowUs - made.startedAtUs;
    if (everyHours === null || ageUs <= intervals * everyHours * hourUs) return null;
    const hasFailed = failed !== null && failed.endedAtUs > (made?.endedAtUs ?? 0);
    return {
      severity: 'warning',
      raiseAfterUs: hourUs,
      sinceUs: upSinceUs,
      cause:
        made === null
          ? 'There is no backup, although automatic backups are on.'
          : `The last backup is ${lengthText(ageUs)} old, although a backup should be made every ${everyHours} h.`,
      evidence: [
        made === null
          ? 'No backup was ever made.'
          : `The last backup was started at ${momentText(made.startedAtUs)}: ${quoted(made.file)}`,
        ...(hasFailed
          ? [
              `The last attempt failed at ${momentText(failed.endedAtUs)}: ${quoted(failed.error ?? '')}`,
            ]
          : []),
      ],
      nextStep:
        'Fix the reported fault: the backup is retried automatically. To retry now: `earshot backup`.',
    };
  },
};

/** A receiver reports every five seconds; a restart takes a few. */
const silentUs = minuteUs;

/** A receiver that applies entries has a lag of a few hundred under full load. */
const lagMax = 20_000;

/** A receiver without space for its own log still accepts notifications, but its queries stop. */
const freeBytesMin = 2 ** 30;

/** The subject is another receiver of the shared log. */
export const receiverRow: AlertRow<KnownNode> = {
  kind: 'receiver',
  check: (node) => {
    const fault = receiverFault(node);
    if (fault === null) return null;
    const [what, evidence, nextStep] = fault;
    const cause = `The receiver ${quoted(node.name)} ${what}.`;
    return { severity: 'warning', cause, evidence: [evidence], nextStep };
  },
};

/** Returns what the receiver does, the evidence, and the next step. */
function receiverFault({ name, lag, ageMs, facts }: KnownNode): [string, string, string] | null {
  const { refusing, fault, freeBytes } = facts;
  const checkLog = 'Check the log and the disk of that receiver.';
  const isOld = 'The receiver accepts notifications, but its queries and its page are old.';
  if (ageMs * 1_000 > silentUs) {
    return [
      `has not reported for ${lengthText(ageMs * 1_000)}`,
      'The other receivers accept notifications.',
      `Start the receiver. If you have removed it, run \`earshot log remove ${name}\`.`,
    ];
  }
  if (refusing !== null) {
    const connection = 'Check the connection of that receiver to the database.';
    return ['cannot store notifications', quoted(refusing), connection];
  }
  if (fault !== null) {
    return ['cannot apply entries of the shared log', `${quoted(fault)} ${isOld}`, checkLog];
  }
  if (lag > lagMax) return [`lags ${countText(lag)} entries`, isOld, checkLog];
  if (freeBytes === null || freeBytes >= freeBytesMin) return null;
  const free = `has only ${sizeText(freeBytes)} of free space on its disk`;
  return [free, 'On a full disk, its queries and its page become old.', checkLog];
}

/** The subject are the warnings of the database of a shared log: it still accepts notifications. */
export const databaseRow: AlertRow<readonly DatabaseWarning[]> = {
  kind: 'database',
  check: (warnings) =>
    warnings.length === 0
      ? null
      : {
          severity: 'warning',
          cause: 'The database of the shared log warns.',
          evidence: warnings.slice(0, 5).map(({ code, text }) => `${quoted(text)} (${code})`),
          nextStep: 'Fix the cause in the database: PostgreSQL may later refuse notifications.',
        },
};
