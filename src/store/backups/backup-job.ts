/** One piece of work of the thread for backups: how far it is, and whether it is to go on. */
import { setImmediate as otherWork } from 'node:timers/promises';
import { AppError } from '../../domain/app-error.ts';
import { type DataPlace, requireSpareRoom } from '../engine/disk-limit.ts';
import type { BackupProgress } from './backup-messages.ts';

/** So long does it work before it looks whether it is to stop. */
const turnMs = 50;

export interface BackupJob {
  progress: BackupProgress;
  /** Throws `cancelled` once it was told to stop, and `unavailable` when intake needs the room on the disk. */
  goOn(): void;
  /** The same, and now and then lets the thread read what it is told. */
  turn(): Promise<void>;
  stop(): void;
}

export function createBackupJob(place: DataPlace): BackupJob {
  let isStopped = false;
  let beganMs = performance.now();
  const goOn = () => {
    if (isStopped) throw wasEnded();
    requireSpareRoom(place, 'A backup');
  };
  return {
    progress: { phase: 'copying', done: 0, total: null },
    goOn,
    turn: async () => {
      if (performance.now() - beganMs < turnMs) return;
      await otherWork();
      goOn();
      beganMs = performance.now();
    },
    stop: () => {
      isStopped = true;
    },
  };
}

export function wasEnded(): AppError {
  return new AppError('cancelled', 'Ended before it was finished; nothing of it was kept.');
}
