import { createHash } from 'node:crypto';
import {
  cpSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import {
  backupsIn,
  checkBackup,
  type FileSum,
  readBackup,
  removeOldBackups,
} from '../../../src/features/backup/backup-folder.ts';
import { databaseFileName, schemaVersion } from '../../../src/store/engine/database.ts';
import { createAcquireLock } from '../../../src/store/engine/locks.ts';
import { delivery } from '../../helpers/deliveries.ts';
import { expectRefused } from '../../helpers/refusals.ts';
import { openStore, tables } from '../../helpers/store.ts';
import { contentsIn, filesIn, fill, openFilled, restore, secrets } from './backup-context.ts';

const kept = ['acme', 'acme/certificate.json', 'earshot.db', 'endpoint-credentials.json'];

describe('a backup', () => {
  it('contains the log and the secrets, and nothing else, for its owner only', async () => {
    const { store, dataDir, backUp } = await openFilled(7);
    await store.accept(delivery('no notification at all'));
    writeFileSync(join(dataDir, 'acme', 'Notes.txt'), 'mine');
    writeFileSync(join(dataDir, 'products-4.db'), 'an index');
    const { path, bytes, ...made } = await backUp();
    expect(made).toMatchObject({ notifications: 7, lastPosition: 7, schemaVersion });
    expect(filesIn(path)).toEqual([...kept, 'manifest.json']);
    expect(JSON.parse(readFileSync(join(path, 'manifest.json'), 'utf8'))).toEqual(made);
    for (const name of ['.', ...filesIn(path)]) {
      expect(statSync(join(path, name)).mode & 0o077, name).toBe(0);
    }
    const before = filesIn(path);
    await checkBackup(readBackup(path), { tables });
    expect(filesIn(path)).toEqual(before);
    expect(bytes).toBe(made.files.reduce((sum, file) => sum + file.bytes, 0));
  });

  it('of a damaged log is refused', async () => {
    const { store, dataDir, out, backUp } = await openFilled(100, 8_192);
    await store.close();
    const database = join(dataDir, databaseFileName);
    // Whole pages in the middle of the file.
    const bytes = readFileSync(database).fill(0x5a, 16_384 * 20, 16_384 * 24);
    writeFileSync(database, bytes);
    await expectRefused(backUp(), 'unavailable');
    expect(filesIn(out)).toEqual([]);
  });

  it('is refused in the data directory, and while another one is made', async () => {
    const { folder, dataDir, out, backUp } = await openFilled(1);
    symlinkSync(dataDir, join(folder, 'link'));
    for (const target of [dataDir, join(dataDir, 'new'), join(folder, 'link', 'new')]) {
      await expectRefused(backUp({ folder: target }), 'usage');
    }
    const release = await createAcquireLock(dataDir)('backup', { waitMs: 0 });
    await expectRefused(backUp(), 'conflict');
    release();
    expect(filesIn(out)).toEqual([]);
  });

  it('that was interrupted is incomplete, and removed by the next one', async () => {
    const { out, backUp } = await openFilled(1);
    const { path } = await backUp();
    renameSync(path, `${path}.part`);
    writeFileSync(join(out, 'mine.part'), 'x');
    expect(() => readBackup(`${path}.part`)).toThrow(/is incomplete/);
    const made = await backUp();
    expect(backupsIn(out)).toEqual([made.path]);
    expect(readFileSync(join(out, 'mine.part'), 'utf8')).toBe('x');
  });

  it('is removed when it is old, complete, and made by earshot', async () => {
    const { out, backUp } = await openFilled(1);
    const { path: first } = await backUp();
    const [damaged = '', third = '', last = ''] = [1, 2, 3].map((hour) => {
      const path = first.replace(/(?<=-\d{8}T)\d\d/, `2${hour}`);
      cpSync(first, path, { recursive: true });
      return path;
    });
    rmSync(join(damaged, 'manifest.json'));
    renameSync(first, join(out, 'mine'));
    expect(removeOldBackups(out, 1, last)).toEqual([third]);
    expect(backupsIn(out)).toEqual([last, damaged]);
    expect(readBackup(join(out, 'mine')).notifications).toBe(1);
  });
});

interface Manifest extends Record<string, unknown> {
  files: FileSum[];
}

/** Changes the manifest, as an attacker can. */
const forge = (change: (manifest: Manifest) => unknown) => (path: string) => {
  const file = join(path, 'manifest.json');
  const manifest: Manifest = JSON.parse(readFileSync(file, 'utf8'));
  change(manifest);
  writeFileSync(file, JSON.stringify(manifest));
};

/** Changes the database, and its sum. */
const forgeDatabase = (sql: string) => (path: string) => {
  const database = new Sqlite(join(path, databaseFileName)).unsafeMode();
  database.pragma('synchronous = OFF');
  database.exec(sql);
  database.close();
  forge(({ files }) => {
    const bytes = readFileSync(join(path, databaseFileName));
    const sum = { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
    Object.assign(files.find((file) => file.path === databaseFileName) ?? {}, sum);
  })(path);
};

/** Adds a file that exists, with its sum. */
const addFile = (name: string) => (path: string) => {
  const sha256 = createHash('sha256').update('').digest('hex');
  writeFileSync(join(path, name), '');
  forge(({ files }) => files.push({ path: name, bytes: 0, sha256 }))(path);
};

/** Moves a file or folder, and links to it. */
const linked = (name: string) => (path: string) => {
  renameSync(join(path, name), join(path, '..', `moved-${name}`));
  symlinkSync(`../moved-${name}`, join(path, name));
};

const trigger = 'CREATE TRIGGER t AFTER INSERT ON notification BEGIN DELETE FROM history; END';
const capitals = `INSERT INTO sqlite_schema VALUES ('TRIGGER', 't', 'notification', 0, '${trigger}')`;

const harms: Record<string, (path: string) => void> = {
  'a changed byte': (path) => {
    const file = join(path, databaseFileName);
    const bytes = readFileSync(file);
    const at = Math.floor(Math.random() * bytes.length);
    writeFileSync(file, bytes.fill((bytes[at] ?? 0) ^ 1, at, at + 1));
  },
  'a changed secret': (path) => writeFileSync(join(path, 'endpoint-credentials.json'), '{}'),
  'a missing file': (path) => rmSync(join(path, 'acme/certificate.json')),
  'an added file': (path) => writeFileSync(join(path, 'acme/account.json'), '{}'),
  'a journal': (path) => writeFileSync(join(path, 'earshot.db-journal'), 'x'),
  'a link': linked(databaseFileName),
  'a linked folder': linked('acme'),
  'a linked manifest': linked('manifest.json'),
  'no manifest': (path) => rmSync(join(path, 'manifest.json')),
  'a manifest that is none': (path) => truncateSync(join(path, 'manifest.json'), 100),
  'a path that leads out of the folder': addFile('../outside.json'),
  'a settings file': addFile('earshot.config.ts'),

  'no database': forge((all) => {
    all.files = all.files.filter((file) => file.path !== databaseFileName);
  }),
  'another position': forge((all) => Object.assign(all, { lastPosition: 4 })),

  'another version': forge((all) => Object.assign(all, { schemaVersion: 0 })),
  'an unknown field': forge((all) => Object.assign(all, { more: 1 })),
  'a trigger': forgeDatabase(trigger),
  'a trigger whose type is in capitals': forgeDatabase(`PRAGMA writable_schema = ON; ${capitals}`),
  'a view': forgeDatabase('CREATE VIEW v AS SELECT 1'),
  'no index': forgeDatabase('DROP INDEX notification_received_at_us'),
  'a generated column': forgeDatabase('ALTER TABLE history ADD COLUMN more TEXT AS (hex(reason))'),
};

describe('restoring', () => {
  it('refuses a backup with any change or of a newer version, and changes nothing', async () => {
    const { folder, backUp } = await openFilled(5);
    const { path } = await backUp();
    const fresh = join(folder, 'fresh');
    mkdirSync(fresh);
    for (const [i, [what, harm]] of Object.entries(harms).entries()) {
      const harmed = join(folder, what, 'backup');
      cpSync(path, harmed, { recursive: true });
      harm(harmed);
      const before = filesIn(folder);
      // Both do the same checks; a restore takes longer, because it waits for the disk.
      const refusing = async () =>
        i % 6 === 0 ? restore(harmed, fresh) : checkBackup(readBackup(harmed), { tables });
      await expect(refusing(), what).rejects.toMatchObject({ code: 'invalid' });
      expect(filesIn(folder), what).toEqual(before);
    }
    for (const newer of [{ format: 999 }, { format: 1, schemaVersion: 999 }]) {
      forge((all) => Object.assign(all, newer, { more: 1 }))(path);
      expect(() => readBackup(path)).toThrow(/newer version of earshot/);
    }
  });

  it('is refused in a directory with a log or a file of the backup, and leaves other files alone', async () => {
    const { store, folder, dataDir, backUp } = await openFilled(5);
    const { path } = await backUp();
    await expectRefused(restore(path, dataDir), 'conflict');
    await fill(store, { from: 5, to: 8 });
    expect(await store.lastPosition()).toBe(8);
    const other = join(folder, 'other');
    mkdirSync(other);
    for (const name of ['products-4.db', 'earshot.db-wal', 'endpoint-credentials.json']) {
      writeFileSync(join(other, name), 'mine');
      await expectRefused(restore(path, other), 'conflict');
      expect(filesIn(other)).toEqual([name]);
      rmSync(join(other, name));
    }
    writeFileSync(join(other, 'notes.txt'), 'mine');
    await restore(path, other);
    expect(filesIn(other)).toEqual([...kept, 'notes.txt'].toSorted());
    expect(await contentsIn(other)).toHaveLength(5);
  });

  it('leaves a directory, for its owner only, in which a receiver continues', async () => {
    const { store, folder, backUp } = await openFilled(5);
    const { path } = await backUp();
    await store.close();
    const fresh = join(folder, 'deep', 'fresh');
    await restore(path, fresh);
    expect(filesIn(fresh)).toEqual(kept);
    for (const name of ['.', ...kept]) {
      expect(statSync(join(fresh, name)).mode & 0o077, name).toBe(0);
    }
    for (const [name, text] of Object.entries(secrets)) {
      expect(readFileSync(join(fresh, name), 'utf8')).toBe(text);
    }
    const again = await openStore({ dataDir: fresh, mustExist: true });
    // The last old notification is a duplicate; the others are new.
    await fill(again, { from: 4, to: 8 });
    expect((await again.counts()).notifications).toBe(8);
    await again.close();
  });
});
