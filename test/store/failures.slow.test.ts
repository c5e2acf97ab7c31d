import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { mountSmallDisk } from '../e2e/disk-small.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { openStoreReader } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { runBoundByPermissions } from './bound-by-permissions.ts';
import { openFile, openSqliteStore } from './sqlite-store.ts';

const isRoot = process.getuid?.() === 0;
const inCi = process.env.CI === 'true';

/** A body of realistic size, so that a small disk fills up soon. */
const large = (number: number) => delivery(notification(number, { padding: 'x'.repeat(5_000) }));

/** Opens the file as another program that does not wait for locks. */
const openWithoutWait = (dataDir: string) => openFile(dataDir, { timeout: 0 });

function integrity(dataDir: string): unknown {
  return openWithoutWait(dataDir).pragma('integrity_check', { simple: true });
}

describe('a full disk', () => {
  it('refuses notifications, loses no acknowledged one, and resumes when space is freed', async (context) => {
    // A real file system of 7 MiB. CI runs as root, so the test must run there.
    if (!isRoot && !inCi) return context.skip('mounting a small disk takes root');
    const disk = temporaryDirectory();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=7m', 'tmpfs', disk]);
    onTestFinished(() => void spawnSync('umount', ['--lazy', disk]));
    const filler = join(disk, 'filler');
    writeFileSync(filler, Buffer.alloc(3 * 2 ** 20));
    const { store, reopen } = await openSqliteStore({
      dataDir: join(disk, 'data'),
      // Disables the reserve, so that the disk really fills up.
      diskReserveBytes: 0,
    });
    const answered: string[] = [];
    let refusal: unknown;
    for (let i = 0; refusal === undefined && i < 2_000; i += 1) {
      await store.accept(large(i)).then(
        () => answered.push(`ack-${i}`),
        (error: unknown) => {
          refusal = error;
        },
      );
    }
    expect(answered.length).toBeGreaterThan(20);
    expect(refusal).toMatchObject({ code: 'unavailable' });
    expect(refusal).toMatchObject({ facts: { fault: 'disk-full' } });
    await expect(store.checkWritable()).rejects.toMatchObject({ code: 'unavailable' });
    await expect(store.accept(large(5_000))).rejects.toMatchObject({ code: 'unavailable' });

    rmSync(filler);
    await store.checkWritable();
    expect(await store.accept(large(6_000))).toMatchObject({ outcome: 'stored' });
    const again = await reopen();
    const rows = await collect(again.find({ order: 'oldest' }));
    expect(rows.map(({ ackId }) => ackId)).toEqual([...answered, 'ack-6000']);
    expect(integrity(join(disk, 'data'))).toBe('ok');
  });
});

describe('a read-only file', () => {
  it('refuses notifications with advice, and accepts them again when the file is writable', async () => {
    const { store, dataDir } = await openSqliteStore();
    await store.accept(delivery(notification(1)));
    await store.close();
    chmodSync(join(dataDir, databaseFileName), 0o444);
    const { stdout, stderr } = runBoundByPermissions('read-only-child.ts', dataDir);
    expect(stderr).toBe('');
    const { start, afterPermission } = JSON.parse(stdout);
    expect(start).toMatchObject({ code: 'unavailable' });
    expect(start.message).toContain('(SQLITE_READONLY');
    expect(afterPermission).toMatchObject({ outcome: 'stored' });
  });
});

describe('a file that cannot be opened, even for reading', () => {
  it('is named in the error, with a full or read-only disk as the cause', async (context) => {
    if (!isRoot && !inCi) return context.skip('mounting a small disk takes root');
    const { store, dataDir } = await openSqliteStore();
    await store.accept(delivery(notification(1)));
    const disk = mountSmallDisk(3);
    const file = join(disk.folder, databaseFileName);
    // The state after a crash of the machine: the shared memory file must be recreated.
    for (const suffix of ['', '-wal']) {
      copyFileSync(join(dataDir, `${databaseFileName}${suffix}`), `${file}${suffix}`);
    }
    const read = () => {
      const reader = openStoreReader(disk.folder);
      return reader.counts().finally(() => reader.close());
    };
    disk.fill();
    await expect(read()).rejects.toMatchObject({ facts: { fault: 'disk-failed' } });
    disk.free();
    rmSync(`${file}-shm`);
    execFileSync('mount', ['-o', 'remount,ro', disk.folder]);
    await expect(read()).rejects.toMatchObject({ facts: { fault: 'database-not-writable' } });
    await expect(read()).rejects.toThrow(file);
    execFileSync('mount', ['-o', 'remount,rw', disk.folder]);
    expect(await read()).toMatchObject({ notifications: 1 });
  });
});

describe('a file locked by another program', () => {
  it('is written as soon as the lock is released', async () => {
    const { store, dataDir } = await openSqliteStore();
    const other = openWithoutWait(dataDir);
    other.exec('BEGIN IMMEDIATE');
    const waiting = store.accept(delivery(notification(1)));
    // Proves that the writer waits: it has the delivery, and a later question is unanswered.
    expect(await store.lastPosition()).toBe(0);
    other.exec('ROLLBACK');
    expect(await waiting).toMatchObject({ outcome: 'stored' });
  });

  it('refuses notifications after five seconds, stores none of them, and resumes when the lock is released', async () => {
    const { store, dataDir } = await openSqliteStore();
    const other = openWithoutWait(dataDir);
    other.exec('BEGIN IMMEDIATE');
    const refused = store.accept(delivery(notification(1)));
    await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
    await expect(refused).rejects.toThrow('locked by another program');
    other.exec('ROLLBACK');
    expect(await store.accept(delivery(notification(1)))).toMatchObject({ outcome: 'stored' });
    expect(await store.counts()).toMatchObject({ notifications: 1, duplicates: 0 });
  });

  it('refuses at once what exceeds the queue, and keeps what it has accepted', async () => {
    const { store, dataDir } = await openSqliteStore({ queueBytesMax: 50_000 });
    const other = openWithoutWait(dataDir);
    other.exec('BEGIN IMMEDIATE');
    const results = Array.from({ length: 100 }, (_, i) => store.accept(large(i)));
    const settled = Promise.allSettled(results);
    await expect(results[99]).rejects.toThrow('The intake queue is full');
    other.exec('ROLLBACK');
    const stored = (await settled).filter(({ status }) => status === 'fulfilled');
    expect(stored.length).toBeGreaterThan(5);
    expect(stored.length).toBeLessThan(10);
    expect(await store.counts()).toMatchObject({ notifications: stored.length });
    expect(await store.accept(large(99))).toMatchObject({ outcome: 'stored' });
  });
});

describe('a damaged or foreign file', () => {
  const openingOf = (dataDir: string) => openSqliteStore({ dataDir });
  const fileIn = (dataDir: string) => join(dataDir, databaseFileName);

  it('is refused and left unchanged when it is not a database', async () => {
    const dataDir = temporaryDirectory();
    const text = 'this is no database '.repeat(1_000);
    writeFileSync(fileIn(dataDir), text);
    await expect(openingOf(dataDir)).rejects.toThrow('damaged, or is not a database');
    expect(readFileSync(fileIn(dataDir), 'utf8')).toBe(text);
  });

  it('refuses notifications when pages are damaged, and says what to do', async () => {
    const { store, dataDir, reopen } = await openSqliteStore();
    for (let i = 0; i < 200; i += 1) await store.accept(large(i));
    await store.close();
    const bytes = readFileSync(fileIn(dataDir));
    // Every page except the first, which has the header and the schema.
    bytes.fill(0xa5, 16_384);
    writeFileSync(fileIn(dataDir), bytes);
    const damaged = await reopen().catch((error: unknown) => error);
    const refusal =
      damaged instanceof Error
        ? damaged
        : await (await reopen()).accept(large(1_000)).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'unavailable' });
    expect(String(refusal)).toContain('damaged');
  });

  it('is refused when it is the database of another program', async () => {
    const dataDir = temporaryDirectory();
    const other = new Sqlite(fileIn(dataDir));
    other.exec('CREATE TABLE theirs (a)');
    other.close();
    await expect(openingOf(dataDir)).rejects.toMatchObject({ code: 'configuration' });
    await expect(openingOf(dataDir)).rejects.toThrow('another program');
  });

  it('is refused when the data directory cannot be created', async () => {
    const dataDir = join(temporaryDirectory(), 'file');
    writeFileSync(dataDir, '');
    await expect(openingOf(join(dataDir, 'data'))).rejects.toThrow('EARSHOT_DATA_DIR');
  });

  it('is reported when it is removed while open, and recreated for the next notification', async () => {
    const { store, dataDir } = await openSqliteStore();
    await store.accept(delivery(notification(1)));
    for (const end of ['', '-wal', '-shm']) rmSync(fileIn(dataDir) + end, { force: true });
    await expect(store.accept(delivery(notification(2)))).rejects.toThrow('moved or deleted');
    await store.accept(delivery(notification(2)));
    expect(await store.lastPosition()).toBe(1);
    expect(existsSync(fileIn(dataDir))).toBe(true);
    const rows = openWithoutWait(dataDir).prepare('SELECT ack_id FROM notification').pluck().all();
    expect(rows).toEqual(['ack-2']);
  });

  it('refuses changes when it is removed, and stores the next one in a new file', async () => {
    const { store, dataDir } = await openSqliteStore();
    const gap = { subscription: 'alps', events: ['created'], filter: '', fromUs: 5 } as const;
    const openGap = { ...gap, reason: 'It was paused.' };
    const removeFiles = () => {
      for (const end of ['', '-wal', '-shm']) rmSync(join(dataDir, databaseFileName) + end);
    };
    removeFiles();
    const refused = store.administration.commit({ openGap });
    await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
    await store.administration.commit({ openGap });
    removeFiles();
    const alsoRefused = store.administration.markDeliveries([]);
    await expect(alsoRefused).rejects.toMatchObject({ code: 'unavailable' });
  });
});

describe('files next to the database that are removed while open', () => {
  it.each([[['-wal']], [['-shm']], [['-wal', '-shm']]])(
    '(%j) are noticed, and every acknowledged notification is in the file afterwards',
    async (ends) => {
      const { store, dataDir } = await openSqliteStore();
      await store.accept(delivery(notification(0)));
      const ackIds = async () => (await collect(store.find({}))).map(({ ackId }) => ackId);
      // The reader has them open, too.
      expect(await ackIds()).toEqual(['ack-0']);
      for (const end of ends) rmSync(join(dataDir, databaseFileName) + end);
      const answered = ['ack-0'];
      let refused = 0;
      let number = 0;
      const push = async () => {
        number += 1;
        await store.accept(delivery(notification(number))).then(
          () => answered.push(`ack-${number}`),
          () => {
            refused += 1;
          },
        );
        return answered.length;
      };
      await expect.poll(push, { timeout: 15_000 }).toBeGreaterThan(5);
      expect(refused).toBeGreaterThan(0);
      // The state after a kill: copied while they are open.
      const copy = temporaryDirectory();
      for (const end of ['', '-wal']) {
        copyFileSync(join(dataDir, databaseFileName) + end, join(copy, databaseFileName) + end);
      }
      expect(integrity(copy)).toBe('ok');
      const kept = openWithoutWait(copy).prepare('SELECT ack_id FROM notification').pluck().all();
      expect(kept).toEqual(expect.arrayContaining(answered));
      expect(await store.counts()).toMatchObject({ notifications: kept.length });
      expect((await ackIds()).toSorted()).toEqual(kept.toSorted());
    },
    30_000,
  );

  it.each([[['-wal']], [['-shm']], [['-wal', '-shm']]])(
    '(%j) are noticed without a push, too: a kill loses nothing',
    async (ends) => {
      const { store, dataDir } = await openSqliteStore();
      for (let number = 0; number < 20; number += 1) {
        await store.accept(delivery(notification(number)));
      }
      expect(await collect(store.find({}))).toHaveLength(20);
      for (const end of ends) rmSync(join(dataDir, databaseFileName) + end);
      // The state after a kill.
      const kept = () => {
        const copy = temporaryDirectory();
        copyFileSync(join(dataDir, databaseFileName), join(copy, databaseFileName));
        const count = 'SELECT count(*) FROM notification';
        return openWithoutWait(copy).prepare(count).pluck().get();
      };
      await expect.poll(kept, { timeout: 5_000, interval: 50 }).toBe(20);
      const push = () => store.accept(delivery(notification(20)));
      await expect(push()).rejects.toMatchObject({ code: 'unavailable' });
      await expect.poll(() => push().catch(String)).toMatchObject({ outcome: 'stored' });
    },
  );
});

describe('an error not caused by the disk', () => {
  it('quarantines the one body that cannot be stored, and stores the others of its group', async () => {
    const { store, dataDir } = await openSqliteStore();
    const other = openWithoutWait(dataDir);
    other.exec(`CREATE TRIGGER poison BEFORE INSERT ON notification WHEN NEW.product_id = 'product-3'
      BEGIN SELECT RAISE(ABORT, 'poison'); END`);
    const receipts = await Promise.all(
      [1, 2, 3, 4].map((n) => store.accept(delivery(notification(n)))),
    );
    const outcomes = receipts.map(({ outcome }) => outcome);
    expect(outcomes).toEqual(['stored', 'stored', 'rejected', 'stored']);
    const [entry] = await collect(store.quarantined({ released: false }));
    expect(entry).toMatchObject({ reason: 'not-storable' });
    other.exec('DROP TRIGGER poison');
    expect(await store.retry(entry?.id ?? 0, 1)).toMatchObject({ outcome: 'stored' });
  });

  it('lets a thread that failed to start be started again', async () => {
    const dataDir = temporaryDirectory();
    const reader = openStoreReader(dataDir);
    onTestFinished(() => reader.close());
    await expect(reader.counts()).rejects.toMatchObject({ code: 'configuration' });
    await openSqliteStore({ dataDir });
    const counts = await vi.waitFor(() => reader.counts(), { timeout: 10_000, interval: 50 });
    expect(counts).toMatchObject({ notifications: 0 });
  });

  it('restricts the data directory to its owner', async () => {
    const dataDir = join(temporaryDirectory(), 'made');
    await openSqliteStore({ dataDir });
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  });
});

describe('a query by time of receipt', () => {
  it('uses the index, however large the log is', async () => {
    const { store, dataDir } = await openSqliteStore();
    for (let i = 0; i < 50; i += 1) {
      await store.accept(delivery(notification(i), { receivedAtUs: (i % 2 ? i : 100 - i) * 10 }));
    }
    const rows = await collect(store.find({ sinceUs: 505, untilUs: 805 }));
    const expected = Array.from({ length: 50 }, (_, i) => i).filter((i) => {
      const us = (i % 2 ? i : 100 - i) * 10;
      return us >= 505 && us < 805;
    });
    expect(rows.map(({ ackId }) => ackId).reverse()).toEqual(expected.map((i) => `ack-${i}`));
    const plan = openWithoutWait(dataDir)
      .prepare(
        'EXPLAIN QUERY PLAN SELECT min(+position) FROM notification WHERE received_at_us >= 1',
      )
      .all();
    expect(JSON.stringify(plan)).toContain('COVERING INDEX notification_received_at_us');
  });
});
