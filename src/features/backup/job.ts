/** Automatic backups of a receiver. */
import { type Io, pause } from '../../core/cli/io.ts';
import type { Config } from '../../core/config/config.ts';
import { type Job, type RoundTimes, startJob } from '../../core/host/job.ts';
import { hourUs, minuteMs } from '../../core/terms/dates.ts';
import type { BackupRun, Logger } from '../../core/terms/ports.ts';
import type { DataPlace } from '../../store/engine/disk-limit.ts';
import type { Store } from '../../store/store.ts';
import { removeOldBackups } from './backup-folder.ts';
import { type BackupOptions, makeBackup } from './make-backup.ts';

/** Each round checks whether a backup is due. */
const backupTimes: RoundTimes = {
  firstMs: minuteMs,
  intervalMs: minuteMs,
  retryMs: 5 * minuteMs,
  retryMsMax: 360 * minuteMs,
};

/** Makes a backup whenever one is due. Logs and records a failure, and retries later. */
export function startBackups(
  { store, log }: { store: Pick<Store, 'backups'>; log: Logger },
  config: Config['backup'] & Pick<BackupOptions, 'folder' | 'version' | 'tables'> & DataPlace,
  { nowUs, random }: Pick<Io, 'nowUs' | 'random'>,
  times: Partial<RoundTimes> = {},
): Job {
  const { folder, everyHours, keep } = config;
  const record = (run: BackupRun) =>
    store.backups.recordBackup(run).catch((error: unknown) => {
      log.error({ err: error }, 'failed to record the result of a backup');
    });
  log.info({ folder, everyHours, keep }, 'automatic backups enabled');
  // Kept in memory, too: a backup that could not be recorded is not repeated at once.
  let madeAtUs = 0;
  return startJob(
    {
      every: { ...backupTimes, ...times },
      failed: 'backup failed; retrying later',
      fields: { folder },
      busy: 'backup postponed: another backup is running',
      run: async (signal) => {
        const last = await store.backups.lastBackups();
        const lastUs = Math.max(madeAtUs, last.made?.startedAtUs ?? 0);
        const startedAtUs = nowUs();
        // A backup from the future was made with a wrong clock, so the next one is due.
        if (lastUs <= startedAtUs && startedAtUs - lastUs < everyHours * hourUs) return;
        const made = await makeBackup({ ...config, nowUs, record, signal });
        const { path, bytes, notifications, lastPosition } = made;
        const removed = removeOldBackups(folder, keep, path);
        log.info({ path, bytes, notifications, lastPosition, removed }, madeText);
        madeAtUs = startedAtUs;
      },
    },
    { pause, random, log },
  );
}

const madeText = 'made and verified a backup';
