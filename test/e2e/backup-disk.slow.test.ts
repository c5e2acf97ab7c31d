/** Backups on a disk that is full, or becomes full while they are written. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesIn, openFilled, restore } from '../features/backup/backup-context.ts';
import { canMount, mountSmallDisk } from './disk-small.ts';

describe.skipIf(!canMount)(
  'a disk without free space for a backup (needs root to mount one)',
  () => {
    it('is reported before anything is written', async () => {
      const { backUp } = await openFilled(2_000, 8_192);
      const { folder } = mountSmallDisk(4);
      await expect(backUp({ folder })).rejects.toThrow(/has not enough free space: .* free/);
      expect(readdirSync(folder)).toEqual([]);
    });

    it('that becomes full keeps no incomplete backup, and accepts one when space is free', async () => {
      const { backUp } = await openFilled(2_000, 8_192);
      const disk = mountSmallDisk(40);
      const { folder } = disk;
      const making = backUp({ folder }).then(
        () => null,
        (error: Error) => error.message,
      );
      const isCopying = () => filesIn(folder).some((name) => name.endsWith('.part/earshot.db'));
      await expect.poll(isCopying, { interval: 1 }).toBe(true);
      disk.fill();
      expect(await making).toMatch(
        /cannot be read or written: the disk is full \((ENOSPC|SQLITE_FULL)\)/,
      );
      expect(readdirSync(folder)).toEqual(['filler']);
      disk.free();
      expect(await backUp({ folder })).toMatchObject({ notifications: 2_000 });
    });

    it('is reported when restoring, and no file of the backup remains', async () => {
      const { backUp } = await openFilled(2_000, 8_192);
      const { path } = await backUp();
      const disk = mountSmallDisk(4);
      const dataDir = join(disk.folder, 'data');
      await expect(restore(path, dataDir)).rejects.toThrow(/the disk is full \(ENOSPC\)/);
      expect(filesIn(dataDir)).toEqual([]);
      const large = mountSmallDisk(40);
      await restore(path, join(large.folder, 'data'));
      expect(existsSync(join(large.folder, 'data/earshot.db'))).toBe(true);
    });

    it('can be the disk of the data directory: storing notifications has priority', async () => {
      const { dataDir, out, backUp } = await openFilled(100);
      const place = { dataDir, diskReserveBytes: 2 ** 60 };
      await expect(backUp({ place })).rejects.toThrow(/Backup is paused/);
      expect(readdirSync(out)).toEqual([]);
      await backUp();
    });
  },
);
