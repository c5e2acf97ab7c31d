/** Backups on a disk that is full, or becomes full while they are written. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openFilled, restore } from '../store/backups/backup-context.ts';
import { mountSmallDisk } from './disk-small.ts';

const canMount = process.env.CI !== undefined || process.getuid?.() === 0;

describe.skipIf(!canMount)(
  'a disk without free space for a backup (needs root to mount one)',
  () => {
    it('is reported before anything is written', async () => {
      const { backUp } = await openFilled(2_000, 8_192);
      const disk = mountSmallDisk(4);
      const file = join(disk.folder, 'backup.db');
      await expect(backUp({ file })).rejects.toThrow(
        /has not enough free space for a backup: .* free/,
      );
      expect(readdirSync(disk.folder)).toEqual([]);
    });

    it('that becomes full keeps no partial file, and accepts the backup when space is free', async () => {
      const { backUp } = await openFilled(2_000, 8_192);
      const disk = mountSmallDisk(40);
      const file = join(disk.folder, 'backup.db');
      const making = backUp({ file }).then(
        () => null,
        (error: Error) => error.message,
      );
      await expect.poll(() => existsSync(`${file}.part`), { interval: 1 }).toBe(true);
      disk.fill();
      expect(await making).toMatch(/The disk of .*backup\.db.* is full/);
      expect(readdirSync(disk.folder)).toEqual(['filler']);
      disk.free();
      expect(await backUp({ file })).toMatchObject({ notifications: 2_000 });
      expect(readdirSync(disk.folder)).toEqual(['backup.db']);
    });

    it('is reported when restoring, before or during the copy, and no partial file remains', async () => {
      const { file, backUp } = await openFilled(2_000, 8_192);
      await backUp();
      const small = mountSmallDisk(4);
      await expect(restore(file, join(small.folder, 'data'))).rejects.toThrow(
        /has not enough free space for the backup/,
      );
      const disk = mountSmallDisk(40);
      let filled = false;
      const onProgress = () => {
        if (!filled) disk.fill();
        filled = true;
      };
      await expect(restore(file, join(disk.folder, 'data'), { onProgress })).rejects.toThrow(
        /The disk of .* is full/,
      );
      disk.free();
      for (const { folder } of [small, disk]) {
        expect(readdirSync(join(folder, 'data')).filter((name) => !name.endsWith('.lock'))).toEqual(
          [],
        );
      }
      await restore(file, join(disk.folder, 'data'));
    });

    it('can be the disk of the data directory: storing notifications has priority', async () => {
      const { dataDir, file, out, backUp } = await openFilled(100);
      const place = { dataDir, diskReserveBytes: 2 ** 60 };
      await expect(backUp({ place })).rejects.toThrow(/including the disk reserve/);
      const elsewhere = mountSmallDisk(40);
      const onAnother = join(elsewhere.folder, 'backup.db');
      await expect(backUp({ place, file: onAnother })).rejects.toThrow(/Backup is paused/);
      expect([...readdirSync(out), ...readdirSync(elsewhere.folder)]).toEqual([]);
      await backUp({ file });
    });
  },
);
