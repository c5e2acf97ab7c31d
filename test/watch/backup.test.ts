import { expect, it } from 'vitest';
import type { BackupRun } from '../../src/domain/backups.ts';
import { beginUs, hourUs, openWorld } from './watch-world.ts';

const made = (hour: number): BackupRun => ({
  file: '/mnt/backups/earshot-20261119T000000Z.db',
  startedAtUs: beginUs + hour * hourUs,
  endedAtUs: beginUs + hour * hourUs + 60e6,
  bytes: 4_096,
  lastPosition: 7,
  error: null,
});

const failed = (hour: number): BackupRun => ({
  ...made(hour),
  bytes: null,
  lastPosition: null,
  error: 'The disk of /mnt/backups is full (ENOSPC).',
});

/** Up since the beginning, until this hour. */
async function lastingAt(world: Awaited<ReturnType<typeof openWorld>>, hour: number) {
  await world.live({ toUs: beginUs + hour * hourUs, pushedAtUs: [] });
  await world.look();
  return world.lasting();
}

it('is raised when the last backup is older than two intervals, and over with the next', async () => {
  const world = await openWorld({ backupEveryHours: 24 }, []);
  await world.store.backups.recordBackup(made(0));
  expect(await lastingAt(world, 48)).toEqual([]);
  await world.store.backups.recordBackup(failed(40));
  expect(await lastingAt(world, 49)).toEqual([
    expect.objectContaining({
      kind: 'backup',
      severity: 'warning',
      cause: 'The last backup is 2 days old, though one is to be made every 24 h.',
      evidence: [
        expect.stringContaining('/mnt/backups/earshot-20261119T000000Z.db'),
        expect.stringContaining('The disk of /mnt/backups is full (ENOSPC).'),
      ],
    }),
  ]);
  await world.store.backups.recordBackup(made(49));
  expect(await lastingAt(world, 50)).toEqual([]);
});

it('is raised for none at all, once there was time for the first', async () => {
  const world = await openWorld({ backupEveryHours: 24 }, []);
  expect(await lastingAt(world, 0.9)).toEqual([]);
  const [alert] = await lastingAt(world, 1.1);
  expect(alert).toMatchObject({ kind: 'backup', evidence: ['None was ever made.'] });
});

it('is none where nobody wants backups, or the wish is taken back', async () => {
  const world = await openWorld({ backupEveryHours: null }, []);
  await world.store.backups.recordBackup(made(0));
  expect(await lastingAt(world, 500)).toEqual([]);
  world.world.backupEveryHours = 24;
  expect(await lastingAt(world, 501)).toHaveLength(1);
  world.world.backupEveryHours = null;
  expect(await lastingAt(world, 502)).toEqual([]);
});
