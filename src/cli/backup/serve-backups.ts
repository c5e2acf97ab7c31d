/** Backups by themselves, inside a receiver that serves: when one is due, and never two at a time. */
import { join } from 'node:path';
import type { BackupConfig } from '../../config/backup-config.ts';
import { errorText, isAppError } from '../../domain/app-error.ts';
import type { BackupRun } from '../../domain/backups.ts';
import type { Logger } from '../../domain/ports.ts';
import { doRounds, type RoundTimes } from '../../domain/rounds.ts';
import type { Store } from '../../store/store.ts';
import type { Io } from '../io.ts';
import { pause } from '../until-aborted.ts';
import { backupName, removeOldBackups } from './backup-names.ts';
import { makeRememberedBackup } from './remembered-backup.ts';

const minuteMs = 60_000;
/** Each round looks whether one is due; a failure is tried again soon, then seldom. */
const usual: RoundTimes = {
  firstMs: minuteMs,
  intervalMs: minuteMs,
  retryMs: 5 * minuteMs,
  retryMsMax: 360 * minuteMs,
};

const hourUs = 3_600_000_000;

export interface BackupParts {
  store: Pick<Store, 'backups'>;
  log: Logger;
}

export type ServedBackups = BackupConfig & { folder: string; version: string };

/** Starts the loop. Whatever fails is logged, remembered, and tried again later. Tests make the times shorter. */
export function startBackups(
  parts: BackupParts,
  config: ServedBackups,
  { nowUs, random }: Pick<Io, 'nowUs' | 'random'>,
  times: Partial<RoundTimes> = {},
): { stop(): Promise<void> } {
  const { log } = parts;
  const { folder, everyHours, keep } = config;
  const stopping = new AbortController();
  const { signal } = stopping;
  log.info({ folder, everyHours, keep }, 'backups are made by themselves');
  // Kept here as well: one that could not be remembered is none to be made again.
  let madeAtUs = 0;
  const round = async (): Promise<boolean> => {
    try {
      const lastUs = Math.max(madeAtUs, await lastMadeAtUs(parts));
      if (isDue(lastUs, everyHours, nowUs())) {
        madeAtUs = await backUp(parts, config, { nowUs, signal });
      }
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      const isExpected = isAppError(error) && error.code !== 'internal';
      const fields = isExpected ? { reason: errorText(error) } : { err: error };
      // By a command: that makes one as well.
      if (isAppError(error, 'conflict')) log.info(fields, 'the backup waits for another');
      else log.error({ folder, ...fields }, 'no backup could be made; it is tried again');
      return false;
    }
  };
  const running = doRounds(round, { ...usual, ...times }, { pause, random, signal });
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

/** By what is remembered, so that a restart changes nothing. */
async function lastMadeAtUs({ store }: BackupParts): Promise<number> {
  return (await store.backups.lastBackups()).made?.startedAtUs ?? 0;
}

/** One from the future was made by a clock that ran ahead. */
function isDue(lastUs: number, everyHours: number, nowUs: number): boolean {
  return lastUs > nowUs || nowUs - lastUs >= everyHours * hourUs;
}

/** Resolves with when it was begun. */
async function backUp(
  { store, log }: BackupParts,
  { dataDir, diskReserveBytes, folder, keep, version }: ServedBackups,
  { nowUs, signal }: { nowUs: () => number; signal: AbortSignal },
): Promise<number> {
  const newest = backupName(nowUs());
  const remember = async (run: BackupRun) => {
    await store.backups.recordBackup(run).catch((error: unknown) => {
      log.error({ err: error }, 'what came of a backup could not be remembered');
    });
  };
  const made = await makeRememberedBackup(
    {
      place: { dataDir, diskReserveBytes },
      file: join(folder, newest),
      createsFolder: true,
      replace: false,
      version,
      withSecrets: true,
      signal,
    },
    { nowUs, remember },
  );
  const removed = removeOldBackups(folder, { keep, newest });
  const { run, bytes, notifications, lastPosition } = made;
  const seconds = Math.round((run.endedAtUs - run.startedAtUs) / 1e6);
  log.info(
    { file: run.file, bytes, notifications, lastPosition, seconds, removed },
    'a backup was made and checked',
  );
  return run.startedAtUs;
}
