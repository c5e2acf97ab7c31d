/** Checks certificate, disk, intake and backups, for the watchdog and the status. */

import { hourUs } from '../domain/completeness.ts';
import { type DiskSpace, diskLevels, type LastBackups } from '../domain/ports.ts';
import { sizeText } from '../domain/text.ts';
import type { ConditionAge } from './check-account.ts';
import {
  type Certificate,
  type CheckResult,
  checkOf,
  dayUs,
  lengthText,
  momentText,
  notChecked,
  percentText,
  quoted,
  type Situation,
  upForUs,
} from './situation.ts';

type Active = Pick<Situation, 'active' | 'nowUs'>;

/**
 * Share of the lifetime at which the alert is raised: a fifth, as automatic renewal starts at a third (decision 14).
 */
const lifetimeShare = 5;

/** Limits for long-lived certificates; short-lived ones are renewed within days. */
const longLivedUs = 30 * dayUs;

const nearEndUs = { min: 7 * dayUs, max: 30 * dayUs };

const criticalUs = 2 * dayUs;

/**
 * Checks the time until the certificate expires. Resolved by a renewal, which leaves far more than a tenth above the
 * limit.
 */
export function checkCertificate(certificate: Certificate | null, situation: Active): CheckResult {
  const { alert, fine, found } = checkOf('certificate', '', situation);
  if (certificate?.notAfterUs == null || certificate.lifetimeUs === null) return fine;
  const { notAfterUs, lifetimeUs, lastFailure } = certificate;
  const leftUs = notAfterUs - situation.nowUs;
  const share = lifetimeUs / lifetimeShare;
  const isLong = lifetimeUs >= longLivedUs;
  const limitUs = isLong ? Math.min(nearEndUs.max, Math.max(nearEndUs.min, share)) : share;
  if (leftUs > limitUs * (alert === undefined ? 1 : 1.1)) return fine;
  const isExpired = leftUs <= 0;
  return found({
    severity: leftUs < Math.min(criticalUs, share / 2) ? 'critical' : 'warning',
    cause: isExpired
      ? 'The certificate has expired and has not been renewed. The catalogue delivers no notifications.'
      : `The certificate expires in ${lengthText(leftUs)} and has not been renewed. After that, the catalogue delivers no notifications.`,
    evidence: [
      `The certificate is valid until ${momentText(notAfterUs)}.`,
      ...(lastFailure === null ? [] : [`The last renewal failed: ${quoted(lastFailure)}`]),
    ],
    nextStep:
      'To see why, run `earshot certificate show`. If you set EARSHOT_TLS_CERT and EARSHOT_TLS_KEY, renew these files.',
  });
}

/** Resolved when a fifth more is free. */
const diskResolveFactor = 1.2;

/** Checks the free space. Not checked when it is not known. */
export function checkDisk(disk: DiskSpace | null, situation: Active): CheckResult {
  if (disk === null) return notChecked;
  const { alert, fine, found } = checkOf('disk', '', situation);
  const { freeBytes, totalBytes, reserveBytes } = disk;
  const { warningBytes, criticalBytes } = diskLevels(disk);
  const isBelow = (bytes: number, isActive: boolean) =>
    freeBytes < bytes * (isActive ? diskResolveFactor : 1);
  if (!isBelow(warningBytes, alert !== undefined)) return fine;
  const isCritical = isBelow(criticalBytes, alert?.severity === 'critical');
  const end =
    reserveBytes === 0
      ? 'When the disk is full'
      : `When less than ${sizeText(reserveBytes)} is free`;
  return found({
    severity: isCritical ? 'critical' : 'warning',
    cause: `The disk of the data directory has only ${sizeText(freeBytes)} of free space.`,
    evidence: [
      `That is ${percentText(freeBytes / totalBytes)} of ${sizeText(totalBytes)}. ${end}, notifications are refused and lost.`,
    ],
    nextStep:
      'Free some space, remove old notifications with `earshot prune`, or move EARSHOT_DATA_DIR to a larger disk.',
  });
}

/** Delay before the alert is raised, as a queue may be full for a moment. */
const refusingUs = 45_000_000;

/** Time without refusals after which it is resolved. */
const acceptingUs = 300_000_000;

/** Checks the intake. `reason` is why notifications cannot be stored; null when they can. */
export function checkIntake(
  reason: string | null,
  situation: Active,
  conditionAgeUs: ConditionAge,
): CheckResult {
  const { alert, fine, found } = checkOf('intake', '', situation);
  const refusedUs = conditionAgeUs('intake refuses', reason !== null);
  const acceptedUs = conditionAgeUs('intake accepts', reason === null);
  if (reason === null) return alert !== undefined && acceptedUs < acceptingUs ? notChecked : fine;
  if (alert === undefined && refusedUs < refusingUs) return notChecked;
  return found({
    severity: 'critical',
    cause:
      'Notifications cannot be stored. The catalogue retries each delivery three times, then drops the notification.',
    evidence: [quoted(reason)],
    nextStep:
      'Run `earshot doctor` and fix the fault. A running receiver then fetches lost notifications automatically. Otherwise run `earshot reconcile`.',
  });
}

/** Number of intervals without a backup that raises the alert. */
const intervals = 2;

/** After a start, a due backup is made first. */
const firstUs = hourUs;

/** Checks the age of the last backup. Resolved by the next successful one. */
export function checkBackup(
  { made, failed, everyHours }: LastBackups & { everyHours: number | null },
  situation: Pick<Situation, 'active' | 'nowUs' | 'uptimes'>,
): CheckResult {
  const { alert, fine, found } = checkOf('backup', '', situation);
  if (everyHours === null) return fine;
  const ageUs = made === null ? Number.POSITIVE_INFINITY : situation.nowUs - made.startedAtUs;
  if (ageUs <= intervals * everyHours * hourUs) return fine;
  if (alert === undefined && upForUs(situation) < firstUs) return notChecked;
  const last =
    made === null
      ? 'No backup was ever made.'
      : `The last backup was started at ${momentText(made.startedAtUs)}: ${quoted(made.file)}`;
  const hasFailed = failed !== null && failed.endedAtUs > (made?.endedAtUs ?? 0);
  const reason = hasFailed
    ? `The last attempt failed at ${momentText(failed.endedAtUs)}: ${quoted(failed.error ?? '')}`
    : null;
  return found({
    severity: 'warning',
    cause:
      made === null
        ? 'There is no backup, although automatic backups are on.'
        : `The last backup is ${lengthText(ageUs)} old, although a backup should be made every ${everyHours} h.`,
    evidence: reason === null ? [last] : [last, reason],
    nextStep:
      'Fix the reported fault: the backup is retried automatically. To retry now: `earshot backup`.',
  });
}
