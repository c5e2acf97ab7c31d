import {
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { createRandom } from '../../../src/sandbox/clock.ts';
import { databaseFileName, schemaVersion } from '../../../src/store/engine/database.ts';
import { migrations } from '../../../src/store/engine/migrations.ts';
import { openStore } from '../../../src/store/store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import {
  contentsIn,
  contentsOf,
  filesIn,
  fill,
  openFilled,
  restore,
  secrets,
  writeSecrets,
} from './backup-context.ts';

const restoredFiles = ['acme', 'acme/certificate.json', 'earshot.db', 'endpoint-credentials.json'];
const withoutLocks = (names: readonly string[]) => names.filter((name) => !name.endsWith('.lock'));

/** A backup of a few notifications, and a data directory that does not exist yet. */
async function openBackedUp(notifications = 20) {
  const context = await openFilled(notifications);
  await context.backUp();
  return { ...context, fresh: join(context.folder, 'deep', 'fresh') };
}

describe('restoring', () => {
  it('creates a data directory with all data, accessible to its owner only', async () => {
    const { store, file, fresh } = await openBackedUp();
    await store.moveCursor('tail:mine', 7, 1);
    const restored = await restore(file, fresh);
    expect(restored).toMatchObject({ notifications: 20, lastPosition: 20 });
    expect(withoutLocks(filesIn(fresh))).toEqual(restoredFiles);
    for (const name of restoredFiles) {
      expect(statSync(join(fresh, name)).mode & 0o077, name).toBe(0);
    }
    for (const [path, text] of Object.entries(secrets)) {
      expect(readFileSync(join(fresh, path), 'utf8')).toBe(text);
    }
    expect(await contentsIn(fresh)).toEqual(await contentsOf(store));
  });

  it('leaves a store that continues after the backup and contains none of its metadata', async () => {
    const { file, fresh } = await openBackedUp();
    await restore(file, fresh);
    const store = await openStore({ dataDir: fresh, nowUs: () => 0, mustExist: true });
    // The last old notification is a duplicate; the others are new.
    await fill(store, { from: 19, to: 25 });
    expect((await store.counts()).notifications).toBe(25);
    expect(await store.lastPosition()).toBeGreaterThan(20);
    await store.close();
    const database = new Sqlite(join(fresh, databaseFileName));
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
    const tables =
      "SELECT count(*) FROM sqlite_schema WHERE name IN ('backup_about', 'backup_file')";
    expect(database.prepare(tables).pluck().get()).toBe(0);
    expect(database.pragma('auto_vacuum', { simple: true })).toBe(2);
    database.close();
  });

  it('does not leave an empty log when it is interrupted before the log is in place', async () => {
    const { file, fresh } = await openBackedUp();
    mkdirSync(join(fresh, 'restoring'), { recursive: true, mode: 0o700 });
    const opening = openStore({ dataDir: fresh, nowUs: () => 0 });
    await expect(opening).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringMatching(/run `earshot restore` again/),
    });
    await restore(file, fresh);
    const store = await openStore({ dataDir: fresh, nowUs: () => 0 });
    expect((await store.counts()).notifications).toBe(20);
    await store.close();
  });

  it('moves previous files aside and leaves unrelated files alone', async () => {
    const { store, dataDir, file } = await openBackedUp();
    await fill(store, { from: 20, to: 30 });
    await store.close();
    writeFileSync(join(dataDir, 'products-4.db'), 'an index');
    writeFileSync(join(dataDir, 'acme', 'order.json'), '{}');
    writeFileSync(join(dataDir, 'notes.txt'), 'mine');
    await restore(file, dataDir);
    expect(withoutLocks(filesIn(dataDir)).filter((name) => !name.startsWith('old/'))).toEqual(
      [...restoredFiles, 'notes.txt', 'old'].toSorted(),
    );
    expect(filesIn(join(dataDir, 'old'))).toEqual(
      [...restoredFiles, 'acme/order.json', 'products-4.db'].toSorted(),
    );
    expect(await contentsIn(join(dataDir, 'old'))).toHaveLength(30);
    expect(await contentsIn(dataDir)).toHaveLength(20);
  });

  it('keeps existing secrets when the backup has none', async () => {
    const { store, dataDir, backUp, file } = await openBackedUp();
    await backUp({ files: [], replace: true });
    await store.close();
    await restore(file, dataDir);
    expect(withoutLocks(filesIn(dataDir)).filter((name) => !name.startsWith('old'))).toEqual(
      restoredFiles,
    );
    expect(filesIn(join(dataDir, 'old'))).toEqual(['earshot.db']);
  });

  it('is refused while another program has the log open, without disturbing that program', async () => {
    const { store, dataDir, file } = await openBackedUp();
    const before = filesIn(dataDir);
    await expect(restore(file, dataDir)).rejects.toMatchObject({ code: 'conflict' });
    await fill(store, { from: 20, to: 30 });
    expect(withoutLocks(filesIn(dataDir))).toEqual(withoutLocks(before));
    expect(await store.lastPosition()).toBe(30);
    await store.close();
    // A read-only command counts as well.
    const reading = new Sqlite(join(dataDir, databaseFileName), { readonly: true });
    reading.prepare('SELECT 1 FROM notification').get();
    await expect(restore(file, dataDir)).rejects.toMatchObject({ code: 'conflict' });
    reading.close();
    await restore(file, dataDir);
  });

  it('replaces a log that is too damaged to open', async () => {
    const { store, dataDir, file } = await openBackedUp();
    await store.close();
    writeFileSync(join(dataDir, databaseFileName), Buffer.alloc(50_000, 0x5a));
    await restore(file, dataDir);
    expect(await contentsIn(dataDir)).toHaveLength(20);
  });

  it('stops when aborted, and leaves everything as it was', async () => {
    const { store, dataDir, file } = await openBackedUp();
    await fill(store, { from: 20, to: 30 });
    await store.close();
    const before = withoutLocks(filesIn(dataDir));
    for (const phase of ['copying', 'verifying']) {
      const stopping = new AbortController();
      const onProgress = (progress: { phase: string }) => {
        if (progress.phase === phase) stopping.abort();
      };
      const { signal } = stopping;
      await expect(restore(file, dataDir, { onProgress, signal })).rejects.toMatchObject({
        code: 'cancelled',
      });
      expect(withoutLocks(filesIn(dataDir))).toEqual(before);
    }
    expect(await contentsIn(dataDir)).toHaveLength(30);
  });

  it('starts over after an interrupted restore', async () => {
    const { file, fresh } = await openBackedUp();
    mkdirSync(join(fresh, 'restoring', 'acme'), { recursive: true, mode: 0o700 });
    writeFileSync(join(fresh, 'restoring', databaseFileName), 'half of it');
    await restore(file, fresh);
    expect(withoutLocks(filesIn(fresh))).toEqual(restoredFiles);
  });
});

describe('a file that is not an intact backup', () => {
  it('is detected for any changed byte and any truncation', async () => {
    const { file, fresh } = await openBackedUp(3);
    const sound = readFileSync(file);
    const random = createRandom(8);
    const changed = (at: number) => {
      const bytes = Buffer.from(sound);
      bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << random.integer(0, 7)), at);
      return bytes;
    };
    const places = [0, 17, 24, 31, 92, sound.length - 100, sound.length - 1];
    const anywhere = () => random.integer(0, sound.length - 1);
    const wrong = [
      ...[...places, ...Array.from({ length: 20 }, anywhere)].map(changed),
      ...Array.from({ length: 10 }, () => sound.subarray(0, anywhere())),
      Buffer.concat([sound, Buffer.alloc(1)]),
    ];
    for (const bytes of wrong) {
      writeFileSync(file, bytes);
      await expect(restore(file, fresh)).rejects.toMatchObject({
        code: expect.stringMatching(/^(invalid|configuration)$/),
      });
    }
    expect(withoutLocks(existsSync(fresh) ? filesIn(fresh) : [])).toEqual([]);
  });

  it.each([
    ['it does not exist', () => undefined, /cannot be read: there is no such file/],
    ['it is not a database', (file: string) => writeFileSync(file, 'text'), /is not a backup/],
    ['it is empty', (file: string) => writeFileSync(file, ''), /is not a backup/],
    ['it is a directory', (file: string) => mkdirSync(file), /cannot be read: it is a directory/],
    [
      'it is a database of another program',
      (file: string) => new Sqlite(file).exec('CREATE TABLE mine (id)').close(),
      /not a backup made by earshot/,
    ],
  ])('is rejected with a reason: %s', async (_what, make, reason) => {
    const folder = temporaryDirectory();
    const file = join(folder, 'backup.db');
    make(file);
    await expect(restore(file, join(folder, 'data'))).rejects.toThrow(reason);
    expect(existsSync(join(folder, 'data'))).toBe(false);
  });

  it('includes a log that was never backed up', async () => {
    const { store, dataDir, fresh } = await openBackedUp();
    await store.close();
    await expect(restore(join(dataDir, databaseFileName), fresh)).rejects.toThrow(
      /not a backup made by earshot/,
    );
  });

  it('is reported with the number of missing bytes when it was truncated', async () => {
    const { file, fresh } = await openBackedUp();
    truncateSync(file, 40_000);
    await expect(restore(file, fresh)).rejects.toThrow(
      /is truncated: it has 40000 bytes, but should have more than/,
    );
  });

  it.each([
    ['PRAGMA user_version = 999', /newer version of earshot \(schema 999/],
    ['UPDATE backup_about SET format = 2', /newer version of earshot \(format 2/],
    ["UPDATE backup_file SET path = '../outside.json'", /never part of a backup/],
    ["UPDATE backup_file SET path = 'earshot.db'", /never part of a backup/],
  ])('is refused after %s', async (sql, reason) => {
    const { file, folder, fresh } = await openBackedUp();
    const database = new Sqlite(file);
    database.exec(sql.replace(/^UPDATE backup_file.*/, "$& WHERE path LIKE 'acme%'"));
    database.close();
    await expect(restore(file, fresh)).rejects.toThrow(reason);
    expect(existsSync(join(folder, 'outside.json'))).toBe(false);
  });
});

it('a backup of an older earshot is restored unchanged, and migrated by the next start', async () => {
  const { store, dataDir, file, fresh, backUp } = await openBackedUp();
  await store.close();
  writeSecrets(dataDir);
  const old = new Sqlite(join(dataDir, databaseFileName));
  // The file as version 7 left it, without the changes of later migrations.
  const added = migrations.slice(7).join('');
  for (const [, kind, name] of added.matchAll(/CREATE (TABLE|INDEX) (\w+)/g))
    old.exec(`DROP ${kind} ${name}`);
  for (const [, table, column] of added.matchAll(/ALTER TABLE (\w+) ADD COLUMN (\w+)/g))
    old.exec(`ALTER TABLE ${table} DROP COLUMN ${column}`);
  old.pragma('user_version = 7');
  old.close();
  await backUp({ replace: true });
  expect(await restore(file, fresh)).toMatchObject({ schemaVersion: 7, notifications: 20 });
  expect(await contentsIn(fresh)).toHaveLength(20);
  const now = new Sqlite(join(fresh, databaseFileName));
  expect(now.pragma('user_version', { simple: true })).toBe(schemaVersion);
  now.close();
});
