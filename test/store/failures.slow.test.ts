import { chmodSync, copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { expectRefused } from '../helpers/refusals.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { runBoundByPermissions } from './bound-by-permissions.ts';
import { openFile, openSqliteStore } from './sqlite-store.ts';

/** A body of realistic size, so that a small disk fills up soon. */
const large = (number: number) => delivery(notification(number, { padding: 'x'.repeat(5_000) }));

/** Opens the file as another program that does not wait for locks. */
const openWithoutWait = (dataDir: string) => openFile(dataDir, { timeout: 0 });

function integrity(dataDir: string): unknown {
  return openWithoutWait(dataDir).pragma('integrity_check', { simple: true });
}

it('a read-only file refuses notifications with advice, and accepts them again when the file is writable', async () => {
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

describe('a file locked by another program', () => {
  it('refuses notifications after five seconds, stores none of them, and resumes when the lock is released', async () => {
    const { store, dataDir } = await openSqliteStore();
    const other = openWithoutWait(dataDir);
    other.exec('BEGIN IMMEDIATE');
    const refused = store.accept(delivery(notification(1)));
    await expectRefused(refused, 'unavailable');
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

  it('is refused and left unchanged when it is not a database, or that of another program', async () => {
    const dataDir = temporaryDirectory();
    const text = 'this is no database '.repeat(1_000);
    writeFileSync(fileIn(dataDir), text);
    await expect(openingOf(dataDir)).rejects.toThrow('damaged, or is not a database');
    expect(readFileSync(fileIn(dataDir), 'utf8')).toBe(text);
    rmSync(fileIn(dataDir));
    const other = new Sqlite(fileIn(dataDir));
    other.exec('CREATE TABLE theirs (a)');
    other.close();
    await expect(openingOf(dataDir)).rejects.toThrow('another program');
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
});

describe('files next to the database that are removed while open', () => {
  const removed = [['-wal'], ['-shm'], ['-wal', '-shm']];
  const cases = removed.flatMap((ends) => [false, true].map((isIdle) => ({ ends, isIdle })));

  it.each(cases)(
    'are noticed, and lose no acknowledged notification: %j',
    async ({ ends, isIdle }) => {
      const { store, dataDir } = await openSqliteStore();
      const ackIds = async () => (await collect(store.find({}))).map(({ ackId }) => ackId);
      await store.accept(delivery(notification(0)));
      // The reader has them open, too.
      expect(await ackIds()).toEqual(['ack-0']);
      for (const end of ends) rmSync(join(dataDir, databaseFileName) + end);
      /** The rows after a kill: of these files, copied while they are open. */
      const rowsAfterKill = (ends: readonly string[]) => {
        const copy = temporaryDirectory();
        for (const end of ends) {
          copyFileSync(join(dataDir, databaseFileName) + end, join(copy, databaseFileName) + end);
        }
        expect(integrity(copy)).toBe('ok');
        return openWithoutWait(copy).prepare('SELECT ack_id FROM notification').pluck().all();
      };
      // Without a push, too.
      if (isIdle) await expect.poll(() => rowsAfterKill(['']), { interval: 50 }).toEqual(['ack-0']);
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
      const kept = rowsAfterKill(['', '-wal']);
      expect(kept).toEqual(expect.arrayContaining(answered));
      expect(await store.counts()).toMatchObject({ notifications: kept.length });
      expect((await ackIds()).toSorted()).toEqual(kept.toSorted());
    },
  );
});
