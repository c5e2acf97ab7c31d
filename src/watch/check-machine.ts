/** Checks the machine: certificate, disk, intake and backups. Used by the watchdog and the status. */

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

/** A sixth of a certificate's life: those that renew themselves do so at a third (decision 14). */
const lifetimeShare = 6;

/** Of long-lived ones, at least and at most; short-lived ones renew within days. */
const longLivedUs = 30 * dayUs;

const nearEndUs = { min: 7 * dayUs, max: 30 * dayUs };

const criticalUs = 2 * dayUs;

/** Over when it is renewed: then far more is left than a tenth above the limit. */
export function checkCertificate(certificate: Certificate | null, situation: Active): CheckResult {
  const { alert, fine, found } = checkOf('certificate', '', situation);
  if (certificate?.notAfterUs == null || certificate.lifetimeUs === null) return fine;
  const { notAfterUs, lifetimeUs, lastFailure } = certificate;
  const leftUs = notAfterUs - situation.nowUs;
  const share = lifetimeUs / lifetimeShare;
  const isLong = lifetimeUs >= longLivedUs;
  const limitUs = isLong ? Math.min(nearEndUs.max, Math.max(nearEndUs.min, share)) : share;
  if (leftUs > limitUs * (alert === undefined ? 1 : 1.1)) return fine;
  const ends = leftUs > 0 ? `ends in ${lengthText(leftUs)}` : 'has ended';
  return found({
    severity: leftUs < Math.min(criticalUs, share / 2) ? 'critical' : 'warning',
    cause: `The certificate ${ends}, and has not been renewed; then the catalogue refuses this endpoint.`,
    evidence: [
      `It is valid until ${momentText(notAfterUs)}.`,
      ...(lastFailure === null ? [] : [`The last renewal failed: ${quoted(lastFailure)}`]),
    ],
    nextStep:
      'Run `earshot certificate show` to see why, or put renewed files where EARSHOT_TLS_CERT and EARSHOT_TLS_KEY say.',
  });
}

/** It is over when a fifth more is free. */
const diskResolveFactor = 1.2;

/** Without a figure of the system, it cannot be checked. */
export function checkDisk(disk: DiskSpace | null, situation: Active): CheckResult {
  if (disk === null) return notChecked;
  const { alert, fine, found } = checkOf('disk', '', situation);
  const { freeBytes, totalBytes, reserveBytes } = disk;
  const { warningBytes, criticalBytes } = diskLevels(disk);
  const isBelow = (bytes: number, isOver: boolean) =>
    freeBytes < bytes * (isOver ? diskResolveFactor : 1);
  if (!isBelow(warningBytes, alert !== undefined)) return fine;
  const isCritical = isBelow(criticalBytes, alert?.severity === 'critical');
  const end = reserveBytes === 0 ? 'when it is full' : `below ${sizeText(reserveBytes)}`;
  return found({
    severity: isCritical ? 'critical' : 'warning',
    cause: `The disk of the data directory has ${sizeText(freeBytes)} left.`,
    evidence: [
      `That is ${percentText(freeBytes / totalBytes)} of ${sizeText(totalBytes)}; ${end} notifications are refused, and lost.`,
    ],
    nextStep:
      'Free some space, remove old notifications with `earshot prune`, or move EARSHOT_DATA_DIR to a larger disk.',
  });
}

/** So long before it is told: a queue that is full for a moment is none to speak of. */
const refusingUs = 45_000_000;

/** So long does it take without a break before it is over. */
const takingUs = 300_000_000;

/** `reason` is why notifications cannot be stored; null when they can. */
export function checkIntake(
  reason: string | null,
  situation: Active,
  conditionAgeUs: ConditionAge,
): CheckResult {
  const { alert, fine, found } = checkOf('intake', '', situation);
  const refusedUs = conditionAgeUs('intake refuses', reason !== null);
  const takenUs = conditionAgeUs('intake takes', reason === null);
  if (reason === null) return alert !== undefined && takenUs < takingUs ? notChecked : fine;
  if (alert === undefined && refusedUs < refusingUs) return notChecked;
  return found({
    severity: 'critical',
    cause:
      'Notifications cannot be stored; the catalogue tries each three times, and then it is lost.',
    evidence: [quoted(reason)],
    nextStep:
      'Run `earshot doctor`; when it works again, `earshot reconcile` fetches what was lost, as `earshot start` does by itself.',
  });
}

/** So many may be left out: the next one is due, or is being made. */
const intervals = 2;

/** After a start, one that is due is made first. */
const firstUs = hourUs;

/** Over with the next one that is made. */
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
      ? 'None was ever made.'
      : `The last one was begun at ${momentText(made.startedAtUs)}: ${quoted(made.file)}`;
  const hasFailed = failed !== null && failed.endedAtUs > (made?.endedAtUs ?? 0);
  const reason = hasFailed
    ? `The last try failed at ${momentText(failed.endedAtUs)}: ${quoted(failed.error ?? '')}`
    : null;
  return found({
    severity: 'warning',
    cause:
      made === null
        ? 'There is no backup, though one is to be made by itself.'
        : `The last backup is ${lengthText(ageUs)} old, though one is to be made every ${everyHours} h.`,
    evidence: reason === null ? [last] : [last, reason],
    nextStep:
      'Put right what the reason says, or run `earshot backup` to see it; it is tried again by itself.',
  });
}
