/** What every store must remember of backups. */
import { describe, expect, it } from 'vitest';
import type { BackupRun, Backups } from '../../src/domain/ports.ts';

interface Reopenable {
  store: { backups: Backups };
  /** Closes the store and opens the same one again. */
  reopen(): Promise<{ backups: Backups }>;
}

const made = (startedAtUs: number): BackupRun => ({
  file: '/backups/earshot.db',
  startedAtUs,
  endedAtUs: startedAtUs + 5,
  bytes: 4_096,
  lastPosition: 7,
  error: null,
});

const failed = (startedAtUs: number): BackupRun => ({
  ...made(startedAtUs),
  bytes: null,
  lastPosition: null,
  error: 'The disk is full.',
});

export function describeBackups(name: string, open: () => Promise<Reopenable>): void {
  describe(`${name} as memory of backups`, () => {
    it('knows none before the first one', async () => {
      const { store } = await open();
      expect(await store.backups.lastBackups()).toEqual({ made: null, failed: null });
    });

    it('keeps the last that was made and the last that failed, over a restart', async () => {
      const { store, reopen } = await open();
      for (const run of [made(1), failed(10), made(20), failed(30), failed(40)]) {
        await store.backups.recordBackup(run);
      }
      const { backups } = await reopen();
      expect(await backups.lastBackups()).toEqual({ made: made(20), failed: failed(40) });
    });
  });
}
