import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { createRandom } from '../../../src/sandbox/clock.ts';
import { inspectBackup } from '../../../src/store/backups/backup-format.ts';
import type { BackupProgress } from '../../../src/store/backups/backup-target.ts';
import { verifySealed } from '../../../src/store/backups/restore-backup.ts';
import { databaseFileName } from '../../../src/store/engine/database.ts';
import { createAcquireLock } from '../../../src/store/engine/locks.ts';
import { delivery } from '../../helpers/deliveries.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { openLocalStore } from '../local-store.ts';
import {
  about,
  contentsIn,
  contentsOf,
  filesIn,
  fill,
  isKept,
  openFilled,
  restore,
} from './backup-context.ts';

const verify = (file: string) => verifySealed(file, inspectBackup(file, isKept), {});

describe('a backup', () => {
  it('is one file, readable by its owner only, that SQLite opens and that describes its content', async () => {
    const { store, file, out, backUp } = await openFilled(40);
    await store.accept(delivery('no notification at all'));
    const made = await backUp();
    expect(made).toEqual({ notifications: 40, lastPosition: 40, bytes: statSync(file).size });
    expect(filesIn(out)).toEqual(['backup.db']);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const database = new Sqlite(file, { readonly: true });
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
    expect(database.prepare('SELECT count(*) FROM quarantine').pluck().get()).toBe(1);
    database.close();
    const { files, ...inspected } = inspectBackup(file, isKept);
    expect(inspected).toMatchObject({ ...about, ...made });
    expect(files.map(({ path }) => path)).toEqual([
      'acme/certificate.json',
      'endpoint-credentials.json',
    ]);
    await verify(file);
  });

  it('contains everything acknowledged before, and a consistent snapshot of what arrives during the backup', async () => {
    const { store, file, folder, backUp } = await openFilled(2_000, 4_096);
    let going = true;
    let next = 2_000;
    const send = async () => {
      for (; going; next += 20) await fill(store, { from: next, to: next + 20 });
    };
    const sending = send();
    const [first, second] = [await backUp(), await backUp({ replace: true })];
    going = false;
    await sending;
    expect(next).toBeGreaterThan(2_100);
    expect(first.notifications).toBeGreaterThanOrEqual(2_000);
    expect(second.notifications).toBeGreaterThan(first.notifications);
    await restore(file, join(folder, 'restored'));
    const restored = await contentsIn(join(folder, 'restored'));
    const all = await contentsOf(store);
    expect(all.length).toBe(next);
    expect(restored).toEqual(all.slice(0, second.notifications));
  });

  it('checkpoints the write-ahead log for other programs, so that the next commit need not', async () => {
    const { store, dataDir, backUp } = await openFilled(1);
    const reader = new Sqlite(join(dataDir, databaseFileName));
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM notification').get();
    await fill(store, { from: 1, to: 3_000, bodyBytes: 8_192 });
    reader.exec('COMMIT');
    const pagesOfLog = () => {
      const [row] = reader.pragma('wal_checkpoint(NOOP)') as {
        log: number;
        checkpointed: number;
      }[];
      return row;
    };
    expect(pagesOfLog()?.log).toBeGreaterThan(1_000);
    expect(pagesOfLog()?.checkpointed).toBeLessThan(1_000);
    await backUp();
    expect(pagesOfLog()?.checkpointed).toBe(pagesOfLog()?.log);
    reader.close();
  });

  it('stops when aborted at any moment, and leaves no files', async () => {
    const { out, file, backUp } = await openFilled(2_000, 4_096);
    const random = createRandom(29);
    let ended = 0;
    for (let round = 0; round < 8; round += 1) {
      const stopping = new AbortController();
      const making = backUp({ signal: stopping.signal, replace: true }).then(
        () => 'made',
        (error: { code?: string }) => error.code,
      );
      // The abort time is random by design; nothing is awaited here.
      await delay(random.integer(0, 400));
      stopping.abort();
      const outcome = await making;
      expect(['made', 'cancelled']).toContain(outcome);
      if (outcome === 'cancelled') ended += 1;
      expect(filesIn(out).filter((name) => name !== 'backup.db')).toEqual([]);
      if (existsSync(file)) await verify(file);
    }
    expect(ended).toBeGreaterThan(0);
  });

  it('of a damaged log is refused and does not replace a sound backup', async () => {
    const { store, dataDir, file, out, backUp } = await openFilled(500, 2_048);
    await backUp();
    const sound = readFileSync(file);
    await store.close();
    const database = join(dataDir, databaseFileName);
    const bytes = readFileSync(database);
    // Overwrites whole pages in the middle of the file.
    bytes.fill(0x5a, 16_384 * 20, 16_384 * 24);
    writeFileSync(database, bytes);
    await expect(backUp({ replace: true })).rejects.toMatchObject({ code: 'unavailable' });
    expect(filesIn(out)).toEqual(['backup.db']);
    expect(readFileSync(file).equals(sound)).toBe(true);
  });

  it('reports its progress', async () => {
    const bodyBytes = 8_192;
    const { backUp, store } = await openFilled(4_000, bodyBytes);
    // On a fast disk, 30 MiB are copied before the first progress report.
    for (let from = 4_000; from < 24_000; from += 4_000) {
      await fill(store, { from, to: from + 4_000, bodyBytes });
    }
    const reports: BackupProgress[] = [];
    await backUp({ onProgress: (progress) => reports.push(progress) });
    expect(reports.length).toBeGreaterThan(0);
    for (const { done, total } of reports) expect(done).toBeLessThanOrEqual(total ?? done);
  });
});

describe('the destination of a backup', () => {
  it('must not exist, unless replacing is requested', async () => {
    const { file, backUp } = await openFilled(1);
    writeFileSync(file, 'mine');
    await expect(backUp()).rejects.toMatchObject({ code: 'usage' });
    expect(readFileSync(file, 'utf8')).toBe('mine');
    await backUp({ replace: true });
    await verify(file);
  });

  it('must not be the data directory, nor in a missing folder', async () => {
    const { dataDir, out, backUp } = await openFilled(1);
    for (const file of [
      join(dataDir, databaseFileName),
      join(dataDir, 'backup.db'),
      join(out, '..', 'data', 'backup.db'),
      join(out, 'none', 'backup.db'),
      out,
    ]) {
      await expect(backUp({ file, replace: true }), file).rejects.toMatchObject({ code: 'usage' });
    }
  });

  it('is used by one program at a time', async () => {
    const { dataDir, out, backUp } = await openFilled(1);
    const release = await createAcquireLock(dataDir)('backup', { waitMs: 0 });
    await expect(backUp()).rejects.toMatchObject({ code: 'conflict' });
    expect(filesIn(out)).toEqual([]);
    release();
    await backUp();
  });

  it('may contain the remains of an interrupted backup', async () => {
    const { file, out, backUp } = await openFilled(1);
    for (const suffix of ['', '-journal', '-wal', '-shm']) {
      writeFileSync(`${file}.part${suffix}`, 'left over');
    }
    await backUp();
    expect(filesIn(out)).toEqual(['backup.db']);
  });
});

it('a backup without a notification log is refused', async () => {
  const dataDir = temporaryDirectory();
  const { backUp } = await openFilled(1);
  await expect(backUp({ place: { dataDir } })).rejects.toMatchObject({ code: 'configuration' });
  writeFileSync(join(dataDir, databaseFileName), '');
  await expect(backUp({ place: { dataDir } })).rejects.toMatchObject({ code: 'configuration' });
});

it('the last successful and the last failed backup are remembered over a restart', async () => {
  const { store, reopen } = await openLocalStore();
  expect(await store.backups.lastBackups()).toEqual({ made: null, failed: null });
  const run = (at: number) => ({ file: '/backups/a.db', startedAtUs: at, endedAtUs: at + 5 });
  const made = (at: number) => ({ ...run(at), bytes: 4_096, lastPosition: 7, error: null });
  const failed = (at: number) => ({ ...run(at), bytes: null, lastPosition: null, error: 'Full.' });
  for (const one of [made(1), failed(10), made(20), failed(30), failed(40)]) {
    await store.backups.recordBackup(one);
  }
  const { backups } = await reopen();
  expect(await backups.lastBackups()).toEqual({ made: made(20), failed: failed(40) });
});
