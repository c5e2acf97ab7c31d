/** Judges what serves: the certificate, the disk, and whether notifications can be stored. */

import { hourUs } from '../domain/coverage.ts';
import { diskLevels } from '../domain/disk-room.ts';
import { sizeText } from '../domain/text.ts';
import type { LastsUs } from './check-account.ts';
import {
  dayUs,
  lastingAlert,
  lengthText,
  momentText,
  nothingWrong,
  type Probes,
  percentText,
  quoted,
  type Situation,
  unjudged,
  upForUs,
  type Verdict,
  type WatchWorld,
  wrong,
} from './situation.ts';

type Lasting = Pick<Situation, 'lasting' | 'nowUs'>;

/** A sixth of a certificate's life: those that renew themselves do so at a third (decision 14). */
const lifetimeShare = 6;

/** Of long-lived ones, at least and at most; short-lived ones renew within days. */
const longLivedUs = 30 * dayUs;

const nearEndUs = { min: 7 * dayUs, max: 30 * dayUs };

const criticalUs = 2 * dayUs;

/** Over when it is renewed: then far more is left than a tenth above the limit. */
export async function judgeCertificate(
  probes: Pick<Probes, 'certificate'>,
  situation: Lasting,
): Promise<Verdict> {
  const certificate = await probes.certificate();
  if (certificate?.notAfterUs == null || certificate.lifetimeUs === null) {
    return nothingWrong('certificate', '');
  }
  const { notAfterUs, lifetimeUs, lastFailure } = certificate;
  const leftUs = notAfterUs - situation.nowUs;
  const share = lifetimeUs / lifetimeShare;
  const isLong = lifetimeUs >= longLivedUs;
  const limitUs = isLong ? Math.min(nearEndUs.max, Math.max(nearEndUs.min, share)) : share;
  const isLasting = lastingAlert(situation, 'certificate', '') !== undefined;
  if (leftUs > limitUs * (isLasting ? 1.1 : 1)) return nothingWrong('certificate', '');
  const ends = leftUs > 0 ? `ends in ${lengthText(leftUs)}` : 'has ended';
  return wrong({
    kind: 'certificate',
    subject: '',
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
const diskOver = 1.2;

/** A system that does not say how much is free cannot be judged. */
export async function judgeDisk(
  probes: Pick<Probes, 'disk'>,
  situation: Lasting,
): Promise<Verdict> {
  const found = await probes.disk();
  if (found === null) return unjudged;
  const { freeBytes, totalBytes, reserveBytes } = found;
  const { warningBytes, criticalBytes } = diskLevels(found);
  const lasting = lastingAlert(situation, 'disk', '');
  const isBelow = (bytes: number, isOver: boolean) => freeBytes < bytes * (isOver ? diskOver : 1);
  if (!isBelow(warningBytes, lasting !== undefined)) return nothingWrong('disk', '');
  const isCritical = isBelow(criticalBytes, lasting?.severity === 'critical');
  const end = reserveBytes === 0 ? 'when it is full' : `below ${sizeText(reserveBytes)}`;
  return wrong({
    kind: 'disk',
    subject: '',
    severity: isCritical ? 'critical' : 'warning',
    cause: `The disk of the data directory has ${sizeText(freeBytes)} left.`,
    evidence: [
      `That is ${percentText(freeBytes / totalBytes)} of ${sizeText(totalBytes)}; ${end} notifications are refused, and lost.`,
    ],
    nextStep:
      'Free some room on it, remove old notifications with `earshot prune`, or move EARSHOT_DATA_DIR to a larger disk.',
  });
}

/** So long before it is told: a queue that is full for a moment is none to speak of. */
const refusingUs = 45_000_000;

/** So long does it take without a break before it is over. */
const takingUs = 300_000_000;

export async function judgeIntake(
  probes: Probes,
  situation: Lasting,
  lastsUs: LastsUs,
): Promise<Verdict> {
  const reason = await probes.intake();
  const refusedUs = lastsUs('intake refuses', reason !== null);
  const takenUs = lastsUs('intake takes', reason === null);
  const isLasting = lastingAlert(situation, 'intake', '') !== undefined;
  if (reason === null) {
    return isLasting && takenUs < takingUs ? unjudged : nothingWrong('intake', '');
  }
  if (!isLasting && refusedUs < refusingUs) return unjudged;
  return wrong({
    kind: 'intake',
    subject: '',
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
export async function judgeBackup(
  { backups, backupEveryHours }: Pick<WatchWorld, 'backups' | 'backupEveryHours'>,
  situation: Pick<Situation, 'lasting' | 'nowUs' | 'uptimes'>,
): Promise<Verdict> {
  if (backupEveryHours === null) return nothingWrong('backup', '');
  const { made, failed } = await backups.lastBackups();
  const ageUs = made === null ? Number.POSITIVE_INFINITY : situation.nowUs - made.startedAtUs;
  if (ageUs <= intervals * backupEveryHours * hourUs) return nothingWrong('backup', '');
  const isLasting = lastingAlert(situation, 'backup', '') !== undefined;
  if (!isLasting && upForUs(situation) < firstUs) return unjudged;
  const last =
    made === null
      ? 'None was ever made.'
      : `The last one was begun at ${momentText(made.startedAtUs)}: ${quoted(made.file)}`;
  const hasFailed = failed !== null && failed.endedAtUs > (made?.endedAtUs ?? 0);
  const reason = hasFailed
    ? `The last try failed at ${momentText(failed.endedAtUs)}: ${quoted(failed.error ?? '')}`
    : null;
  return wrong({
    kind: 'backup',
    subject: '',
    severity: 'warning',
    cause:
      made === null
        ? 'There is no backup, though one is to be made by itself.'
        : `The last backup is ${lengthText(ageUs)} old, though one is to be made every ${backupEveryHours} h.`,
    evidence: reason === null ? [last] : [last, reason],
    nextStep:
      'Put right what the reason says, or run `earshot backup` to see it; it is tried again by itself.',
  });
}
