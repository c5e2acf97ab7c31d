/** Alerts of the machine: certificate, disk, intake, backups, and the receivers and database of a shared log. */

import { checkOf, evaluate, problem, type Situation } from '../../core/terms/check.ts';
import { type Evaluation, evaluation, ok } from '../../core/terms/evaluation.ts';
import {
  countText,
  lengthText,
  momentText,
  percentText,
  quoted,
  sizeText,
} from '../../core/terms/formats.ts';
import { type DiskSpace, diskLevels, type LastBackups } from '../../core/terms/ports.ts';
import { dayUs, hourUs, minuteUs } from '../../core/terms/time-units.ts';
import type { DatabaseWarning, KnownNode } from '../shared-log/terms.ts';
import type { Certificate } from './probes.ts';

/**
 * Remaining time at which the alert is raised: a fifth of the lifetime, as automatic renewal starts at a third
 * (decision 14), and at most a month. It is critical at half of that, and at most two days.
 */
const certificateLimits = { share: 1 / 5, maxUs: 30 * dayUs, criticalMaxUs: 2 * dayUs };

export const certificateCheck = checkOf<Certificate | null>(
  'certificate',
  (certificate, { nowUs }) => {
    if (certificate?.notAfterUs == null || certificate.lifetimeUs === null) return null;
    const { notAfterUs, lifetimeUs, lastFailure } = certificate;
    const { share, maxUs, criticalMaxUs } = certificateLimits;
    const leftUs = notAfterUs - nowUs;
    const limitUs = Math.min(maxUs, share * lifetimeUs);
    if (leftUs > limitUs) return null;
    return problem(
      leftUs < Math.min(criticalMaxUs, limitUs / 2) ? 'critical' : 'warning',
      `The certificate ${leftUs <= 0 ? 'has expired' : `expires in ${lengthText(leftUs)}`} and has not been renewed. After its end, the catalogue delivers no notifications.`,
      'To see why, run `earshot certificate show`. If you set EARSHOT_TLS_CERT and EARSHOT_TLS_KEY, renew these files.',
      `The certificate is valid until ${momentText(notAfterUs)}.`,
      lastFailure !== null && `The last renewal failed: ${quoted(lastFailure)}`,
    );
  },
);

/** Evaluates the certificate. */
export function evaluateCertificate(
  certificate: Certificate | null,
  situation: Situation,
): Evaluation {
  const { notAfterUs = null, lastFailure = null } = certificate ?? {};
  if (notAfterUs === null) {
    return evaluation(
      'critical',
      'There is no certificate yet, so the catalogue cannot reach this endpoint.',
      'A running receiver orders it, and retries automatically. To order it now: `earshot certificate renew`.',
      lastFailure !== null && `Last error: ${lastFailure}`,
    );
  }
  const failure = lastFailure === null ? '' : '; the last renewal failed';
  const fine = ok(`valid for another ${lengthText(notAfterUs - situation.nowUs)}${failure}`);
  return evaluate([certificateCheck], certificate, { situation, fine });
}

/** Resolved when a fifth more is free. */
const diskResolveFactor = 1.2;

/** Not checked when the free space is not known. */
export const diskCheck = checkOf<DiskSpace | null>('disk', (disk, { alert }) => {
  if (disk === null) return 'unchecked';
  const { freeBytes, totalBytes, reserveBytes } = disk;
  const { warningBytes, criticalBytes } = diskLevels(disk);
  const isBelow = (bytes: number, isActive: boolean) =>
    freeBytes < bytes * (isActive ? diskResolveFactor : 1);
  if (!isBelow(warningBytes, alert !== undefined)) return null;
  return problem(
    isBelow(criticalBytes, alert?.level === 'critical') ? 'critical' : 'warning',
    `The disk of the data directory has only ${sizeText(freeBytes)} of free space.`,
    'Free some space, remove old notifications with `earshot prune`, or move EARSHOT_DATA_DIR to a larger disk.',
    `That is ${percentText(freeBytes / totalBytes)} of ${sizeText(totalBytes)}. At ${sizeText(reserveBytes)}, notifications are refused and lost.`,
  );
});

/** Evaluates the disk of the data directory; null if its space is not known. */
export function evaluateDisk(disk: DiskSpace | null, situation: Situation): Evaluation {
  if (disk === null) return ok('free space unknown on this system');
  const fine = ok(`${sizeText(disk.freeBytes)} of ${sizeText(disk.totalBytes)} free`);
  return evaluate([diskCheck], disk, { situation, fine });
}

/** The subject is the reason why notifications cannot be stored. A queue may be full for a moment. */
export const intakeCheck = checkOf<string | null>(
  'intake',
  (reason) => {
    if (reason === null) return null;
    const found = problem(
      'critical',
      'Notifications cannot be stored. The catalogue retries each delivery three times, then drops the notification.',
      'Run `earshot doctor` and fix the fault. A running receiver then fetches lost notifications automatically. Otherwise run `earshot reconcile`.',
      quoted(reason),
    );
    return { ...found, raiseAfterUs: 0.75 * minuteUs };
  },
  5 * minuteUs,
);

/** Number of intervals without a backup that raises the alert. */
const intervals = 2;

/** After a start, a due backup is made first. */
const firstBackupUs = hourUs;

type BackupView = LastBackups & { everyHours: number | null };

/** Resolved by the next successful backup. */
export const backupCheck = checkOf<BackupView>('backup', (view, { nowUs, upSinceUs }) => {
  const { made, failed, everyHours } = view;
  const ageUs = made === null ? Number.POSITIVE_INFINITY : nowUs - made.startedAtUs;
  if (everyHours === null || ageUs <= intervals * everyHours * hourUs) return null;
  if (nowUs - upSinceUs < firstBackupUs) return 'unchecked';
  const hasFailed = failed !== null && failed.endedAtUs > (made?.endedAtUs ?? 0);
  return problem(
    'warning',
    made === null
      ? 'There is no backup, although automatic backups are on.'
      : `The last backup is ${lengthText(ageUs)} old, although a backup should be made every ${everyHours} h.`,
    'Fix the reported fault: the backup is retried automatically. To retry now: `earshot backup`.',
    hasFailed &&
      `The last attempt failed at ${momentText(failed.endedAtUs)}: ${quoted(failed.error ?? '')}`,
  );
});

/** A receiver reports every five seconds; a restart takes a few. */
const silentUs = minuteUs;

/** A receiver that applies entries has a lag of a few hundred under full load. */
const lagMax = 20_000;

/** A receiver without space for its own log still accepts notifications, but its queries stop. */
const freeBytesMin = 2 ** 30;

/** The subject is another receiver of the shared log. */
export const receiverCheck = checkOf<KnownNode>('receiver', (node) => {
  const { name, facts } = node;
  const what = receiverFault(node);
  if (what === null) return null;
  return problem(
    'warning',
    `The receiver ${quoted(name)} ${what}.`,
    `Check the log, the disk and the database connection of that receiver. If you have removed the receiver, run \`earshot admin log remove ${name}\`.`,
    quoted(facts.refusing ?? facts.fault ?? 'The other receivers accept notifications.'),
  );
});

/** Returns what the receiver does. */
function receiverFault({ lag, ageMs, facts }: KnownNode): string | null {
  const { refusing, fault, freeBytes } = facts;
  if (ageMs * 1_000 > silentUs) return `has not reported for ${lengthText(ageMs * 1_000)}`;
  if (refusing !== null) return 'cannot store notifications';
  if (fault !== null) return 'cannot apply entries of the shared log, so its queries are old';
  if (lag > lagMax) return `lags ${countText(lag)} entries, so its queries are old`;
  if (freeBytes === null || freeBytes >= freeBytesMin) return null;
  return `has only ${sizeText(freeBytes)} of free space on its disk`;
}

/** The subject are the warnings of the database of a shared log: it still accepts notifications. */
export const databaseCheck = checkOf<readonly DatabaseWarning[]>('database', (warnings) => {
  if (warnings.length === 0) return null;
  return problem(
    'warning',
    'The database of the shared log warns.',
    'Fix the cause in the database: PostgreSQL may later refuse notifications.',
    ...warnings.slice(0, 5).map(({ code, text }) => `${quoted(text)} (${code})`),
  );
});
