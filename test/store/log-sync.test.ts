/** Answers of the writer thread wait until the write-ahead log is on disk. */
import fs from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { delivery, notification } from '../helpers/deliveries.ts';
import { openFile, openSqliteStore } from './sqlite-store.ts';

afterEach(() => vi.restoreAllMocks());

const rowsIn = (dataDir: string) =>
  openFile(dataDir).prepare('SELECT count(*) FROM notification').pluck().get();

/** Holds each sync until `release` is called. */
function holdSyncs() {
  const held: (() => void)[] = [];
  const sync = fs.fdatasync;
  vi.spyOn(fs, 'fdatasync').mockImplementation((descriptor, callback) => {
    held.push(() => sync(descriptor, callback));
  });
  return { held, release: () => held.shift()?.() };
}

describe('a delivery', () => {
  it('is answered after the sync that follows its commit, not after an earlier one', async () => {
    const { store, dataDir } = await openSqliteStore();
    const { held, release } = holdSyncs();
    const answers: string[] = [];
    const accept = async (name: string, number: number) => {
      await store.accept(delivery(notification(number)));
      answers.push(name);
    };
    const first = accept('first', 1);
    await expect.poll(() => held.length).toBe(1);
    const others = [accept('second', 2), accept('third', 3)];
    // Committed, and visible to readers, but not answered.
    await expect.poll(() => rowsIn(dataDir)).toBe(3);
    expect(answers).toEqual([]);
    release();
    await first;
    await expect.poll(() => held.length).toBe(1);
    expect(answers).toEqual(['first']);
    release();
    await Promise.all(others);
    expect(answers).toEqual(['first', 'second', 'third']);
  });

  it('is refused after a failed sync, and stored once when it is sent again', async () => {
    const { store, dataDir } = await openSqliteStore();
    const fails = vi.spyOn(fs, 'fdatasync').mockImplementation((_, callback) => {
      callback(Object.assign(new Error('i/o error'), { code: 'EIO' }));
    });
    await expect(store.accept(delivery(notification(1)))).rejects.toMatchObject({
      code: 'unavailable',
    });
    fails.mockRestore();
    const again = () => store.accept(delivery(notification(1))).catch(() => null);
    await expect.poll(again).toMatchObject({ outcome: 'duplicate' });
    expect(rowsIn(dataDir)).toBe(1);
  });

  it('is refused when the write-ahead log is removed during the sync', async () => {
    const { store, dataDir } = await openSqliteStore();
    await store.accept(delivery(notification(1)));
    const { held, release } = holdSyncs();
    const refused = expect(store.accept(delivery(notification(2)))).rejects;
    await expect.poll(() => held.length).toBe(1);
    fs.renameSync(join(dataDir, 'earshot.db-wal'), join(dataDir, 'moved'));
    release();
    await refused.toMatchObject({ code: 'unavailable' });
    vi.restoreAllMocks();
    const again = () => store.accept(delivery(notification(2))).catch(() => null);
    await expect.poll(again).toMatchObject({ outcome: 'duplicate' });
    expect(rowsIn(dataDir)).toBe(2);
  });
});

it('a closing store answers what it committed', async () => {
  const { store } = await openSqliteStore();
  const { held, release } = holdSyncs();
  const answer = store.accept(delivery(notification(1)));
  await expect.poll(() => held.length).toBe(1);
  const closed = store.close();
  release();
  await expect(answer).resolves.toMatchObject({ outcome: 'stored' });
  await closed;
});
