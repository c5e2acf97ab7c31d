/** Storage jobs of a receiver: backups, pruning, compaction. Locks exclude commands and other receivers. */

import { type Io, pause } from '../core/cli/io.ts';
import type { Config } from '../core/config/config.ts';
import { type Job, type RoundTimes, startJob } from '../core/host/job.ts';
import { formatDateUs } from '../core/terms/dates.ts';
import { sizeText } from '../core/terms/formats.ts';
import type { BackupRun, Logger } from '../core/terms/ports.ts';
import { dayUs, hourUs, minuteMs } from '../core/terms/time-units.ts';
import { removeOldBackups } from '../features/backup/backup-folder.ts';
import { makeBackup } from '../features/backup/make-backup.ts';
import { blockerText, othersOf } from '../features/pruning/command.ts';
import { compactLog } from '../store/bodies/compact-log.ts';
import type { DataPlace } from '../store/engine/disk-limit.ts';
import { createAcquireLock } from '../store/engine/locks.ts';
import { type Pruned, pruneLog } from '../store/pruning/prune-log.ts';
import type { LogSize, Retention } from '../store/pruning/terms.ts';
import type { Store } from '../store/store.ts';
import type { TablesSlot } from '../store/tables.ts';

/** Each round checks whether a backup is due. */
const backupTimes: RoundTimes = {
  firstMs: minuteMs,
  intervalMs: minuteMs,
  retryMs: 5 * minuteMs,
  retryMsMax: 360 * minuteMs,
};

interface BackupParts {
  store: Pick<Store, 'backups'>;
  log: Logger;
}

type ServedBackups = Config['backup'] &
  DataPlace & { folder: string; version: string; tables: readonly TablesSlot[] };

/** Makes a backup whenever one is due. Logs and records a failure, and retries later. */
export function startBackups(
  parts: BackupParts,
  config: ServedBackups,
  { nowUs, random }: Pick<Io, 'nowUs' | 'random'>,
  times: Partial<RoundTimes> = {},
): Job {
  const { log } = parts;
  const { folder, everyHours, keep } = config;
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
        const { made } = await parts.store.backups.lastBackups();
        const lastUs = Math.max(madeAtUs, made?.startedAtUs ?? 0);
        const startedAtUs = nowUs();
        if (!isDue(lastUs, everyHours, startedAtUs)) return;
        await backUp(parts, config, { nowUs, signal });
        madeAtUs = startedAtUs;
      },
    },
    { pause, random, log },
  );
}

/** A backup from the future was made with a wrong clock, so the next one is due. */
function isDue(lastUs: number, everyHours: number, nowUs: number): boolean {
  return lastUs > nowUs || nowUs - lastUs >= everyHours * hourUs;
}

async function backUp(
  { store, log }: BackupParts,
  { dataDir, diskReserveBytes, tables, folder, keep, version }: ServedBackups,
  { nowUs, signal }: { nowUs: () => number; signal: AbortSignal },
): Promise<void> {
  const record = (run: BackupRun) =>
    store.backups.recordBackup(run).catch((error: unknown) => {
      log.error({ err: error }, 'failed to record the result of a backup');
    });
  const place = { dataDir, diskReserveBytes };
  const made = await makeBackup({ place, tables, folder, version, nowUs, record, signal });
  const { path, bytes, notifications, lastPosition } = made;
  const removed = removeOldBackups(folder, keep, path);
  log.info({ path, bytes, notifications, lastPosition, removed }, 'made and verified a backup');
}

const pruneTimes: RoundTimes = {
  firstMs: 10 * minuteMs,
  intervalMs: 24 * 60 * minuteMs,
  retryMs: 10 * minuteMs,
};

/** Share of the file that may stay free for the notifications of the next day, so that fewer pages move. */
const freeShare = 0.05;

interface PruneParts {
  store: Pick<Store, 'pruning' | 'find' | 'acquireLock'>;
  log: Logger;
}

/** Prunes the log once a day. A round is skipped while a command prunes. */
export function startPruning(
  parts: PruneParts,
  { keep }: { keep: Retention },
  { nowUs, random }: Pick<Io, 'nowUs' | 'random'>,
  times: Partial<RoundTimes> = {},
): Job {
  const { log } = parts;
  log.info({ keep: keepText(keep) }, 'automatic pruning enabled');
  return startJob(
    {
      every: { ...pruneTimes, ...times },
      failed: 'failed to prune the log; retrying later',
      acquireLock: () => parts.store.acquireLock('prune', { waitMs: 0 }),
      run: (signal) => pruneOnce(parts, keep, { nowUs: nowUs(), signal }),
    },
    { pause, random, log },
  );
}

async function pruneOnce(
  { store, log }: PruneParts,
  keep: Retention,
  { nowUs, signal }: { nowUs: number; signal: AbortSignal },
): Promise<void> {
  const { pruning } = store;
  const lastUs = await newestUs(store);
  if (lastUs === null) return;
  // Age counts from the newest notification, so a wrong clock or a long silence does not empty the log.
  const idleUs = Math.max(0, nowUs - lastUs);
  const ageUs = keep.ageUs === null ? null : keep.ageUs + idleUs;
  const request = { keep: { ...keep, ageUs }, withQuarantined: false, freeShare, nowUs };
  const before = await pruning.logSize();
  const pruned = await pruneLog(request, { pruning, pause, signal });
  const after = await pruning.logSize();
  logPruned(pruned, { before, after, log });
  if (signal.aborted) return;
  const isTooOld = ageUs !== null && (after.firstReceivedAtUs ?? nowUs) < nowUs - ageUs;
  const isTooLarge = keep.bytes !== null && after.usedBytes > keep.bytes;
  if (isTooOld || isTooLarge) await warnBlocked({ pruning, log }, after);
}

/** Returns the catalogue's time if it is earlier: the local clock may have been fast at the receipt. */
async function newestUs({ find }: Pick<Store, 'find'>): Promise<number | null> {
  for await (const { receivedAtUs, notificationDateUs } of find({ limit: 1 })) {
    return Math.min(receivedAtUs, notificationDateUs ?? receivedAtUs);
  }
  return null;
}

function logPruned(
  pruned: Pruned,
  { before, after, log }: { before: LogSize; after: LogSize; log: Logger },
): void {
  const { notifications, quarantine: quarantined } = pruned;
  const fields = {
    notifications,
    quarantined,
    ...othersOf(pruned),
    since: after.firstReceivedAtUs === null ? null : formatDateUs(after.firstReceivedAtUs),
    bytes: after.usedBytes,
    givenBackBytes: before.usedBytes + before.freeBytes - after.usedBytes - after.freeBytes,
  };
  if (notifications + quarantined > 0) log.info(fields, 'pruned the log');
  else log.debug(fields, 'nothing to prune');
}

async function warnBlocked(
  { pruning, log }: Pick<Store, 'pruning'> & { log: Logger },
  { firstPosition }: LogSize,
): Promise<void> {
  const blockers = await pruning.pruneBlockers();
  const heldBy = blockers.filter(({ position }) => position <= firstPosition).map(blockerText);
  if (heldBy.length === 0) return;
  log.warn({ heldBy }, 'pruning to EARSHOT_KEEP is blocked; see `earshot prune --dry-run`');
}

/** Example: `365d, 46.5 GiB`. */
function keepText({ ageUs, bytes }: Retention): string {
  const age = ageUs === null ? [] : [`${Math.round((ageUs / dayUs) * 10) / 10}d`];
  return [...age, ...(bytes === null ? [] : [sizeText(bytes)])].join(', ');
}

const compactTimes: RoundTimes = { firstMs: 5 * minuteMs, intervalMs: 60 * minuteMs };

/** Ratio of the pause after a step to the duration of the step. */
const restFactor = 4;

/** Polling interval of the intake queue. */
const busyPollMs = 1_000;

/** Compacts the log once an hour, in short steps. */
export function startCompacting(
  { store, log }: { store: Pick<Store, 'queue'>; log: Logger },
  place: DataPlace,
  { random }: Pick<Io, 'random'>,
  times: Partial<RoundTimes> = {},
): Job {
  const run = async (signal: AbortSignal) => {
    const rest = async (tookMs: number) => {
      await pause(restFactor * tookMs, signal);
      while (store.queue().bytes > 0 && !signal.aborted) await pause(busyPollMs, signal);
    };
    const done = await compactLog({ ...place, freeShare, rest, signal });
    if (done.unreadable > 0) log.error({ rows: done.unreadable }, 'unreadable bodies');
    log.debug(done, 'compacted the log');
  };
  return startJob(
    {
      every: { ...compactTimes, ...times },
      failed: 'failed to compact the log; retrying later',
      // Of this machine: with a shared log, each receiver compacts its own file.
      acquireLock: () => createAcquireLock(place.dataDir)('compact', { waitMs: 0 }),
      run,
    },
    { pause, random, log },
  );
}
