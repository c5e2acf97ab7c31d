/** Backups in the status, and their alert. */

import { z } from 'zod';
import { bytes, flag, moment, seconds, toSeconds } from '../../core/status/gauge.ts';
import { defineStatusPart, type StatusSources, watchOne } from '../../core/status/status.ts';
import { hourUs } from '../../core/terms/dates.ts';
import { checkOf, type Evaluation, evaluate, ok, problem } from '../../core/terms/evaluation.ts';
import type { LastBackups } from '../../core/terms/ports.ts';
import { lengthText, momentText, quoted, sizeText } from '../../core/terms/text.ts';

/** `everyHours` is null if automatic backups are off. */
export type BackupView = LastBackups & { everyHours: number | null };

declare module '../../core/status/status.ts' {
  interface StatusFacts {
    backups: BackupView | null;
  }
}

/** Number of intervals without a backup that raises the alert. */
const intervals = 2;

/** After a start, a due backup is made first. */
const firstBackupUs = hourUs;

/** Returns the last failure, unless a later backup has succeeded. */
const newerFailure = ({ made, failed }: LastBackups) =>
  failed !== null && failed.endedAtUs > (made?.endedAtUs ?? 0) ? failed : null;

/** Resolved by the next successful backup. */
export const backupCheck = checkOf<BackupView>('backup', (view, { nowUs, upSinceUs }) => {
  const { made, everyHours } = view;
  const ageUs = made === null ? Number.POSITIVE_INFINITY : nowUs - made.startedAtUs;
  if (everyHours === null || ageUs <= intervals * everyHours * hourUs) return null;
  if (nowUs - upSinceUs < firstBackupUs) return 'unchecked';
  const failed = newerFailure(view);
  return problem(
    'warning',
    made === null
      ? 'There is no backup, although automatic backups are on.'
      : `The last backup is ${lengthText(ageUs)} old, although a backup should be made every ${everyHours} h.`,
    'Fix the reported fault: the backup is retried automatically. To retry now: `earshot backup`.',
    failed !== null &&
      `The last attempt failed at ${momentText(failed.endedAtUs)}: ${quoted(failed.error ?? '')}`,
  );
});

const run = z.object({
  file: z.string(),
  bytes: z.number().min(0).nullable(),
  lastPosition: z.int().min(0).nullable(),
  error: z.string().nullable(),
  startedAtUs: z.number(),
  endedAtUs: z.number(),
});

async function readBackups({ store, setting }: StatusSources): Promise<BackupView> {
  const { folder, everyHours } = setting('backup');
  const last = await store.backups.lastBackups();
  return { ...last, everyHours: folder === null ? null : everyHours };
}

const part = defineStatusPart({
  name: 'backup',
  unknown: { backups: null },
  fields: {
    backups: z
      // `everyHours` is null if automatic backups are off.
      .object({ made: run.nullable(), failed: run.nullable(), everyHours: z.number().nullable() })
      .nullable()
      .describe('Last successful and last failed backup.'),
  },
  open: (sources) => ({
    read: async () => ({ backups: await readBackups(sources) }),
    watch: () => [watchOne(backupCheck, () => readBackups(sources))],
  }),
  evaluate: ({ backups, atUs }, situation): Evaluation => {
    if (backups === null) return ok('unknown');
    const { made, everyHours } = backups;
    const every = everyHours === null ? '' : `, every ${everyHours} h`;
    const failure = newerFailure(backups) === null ? '' : '; the last attempt failed';
    const size = made?.bytes == null ? '' : `, ${sizeText(made.bytes)}`;
    const none = everyHours === null ? 'none made yet' : 'none yet';
    const age = made === null ? none : `${lengthText(atUs - made.startedAtUs)} old`;
    const fine = ok(`${age}${size}${every}${failure}`);
    return evaluate([backupCheck], backups, { situation, fine });
  },
  alertKinds: ['backup'],
  metrics: {
    Backups: [
      moment(
        'earshot_backup_success_timestamp_seconds',
        'Start time of the newest verified backup. The backup contains all notifications that were acknowledged before this time.',
        ({ backups }) => toSeconds(backups?.made?.startedAtUs),
      ),
      flag(
        'earshot_backup_succeeded',
        '1 if the last backup succeeded; absent before the first attempt.',
        ({ backups }) => (backups?.made || backups?.failed ? newerFailure(backups) === null : null),
      ),
      bytes(
        'earshot_backup_bytes',
        'Size of the newest backup.',
        ({ backups }) => backups?.made?.bytes,
      ),
      seconds(
        'earshot_backup_interval_seconds',
        'Interval of automatic backups; absent if automatic backups are off.',
        ({ backups }) => backups?.everyHours && backups.everyHours * 3_600,
      ),
    ],
  },
});

export const parts = [part];
