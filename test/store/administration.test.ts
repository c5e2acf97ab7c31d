import { rmSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { NewGap } from '../../src/domain/account.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { migrations } from '../../src/store/engine/migrations.ts';
import { openStore, openStoreReader, type StoreReader } from '../../src/store/store.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { openSqliteStore } from './sqlite-store.ts';

function openReader(dataDir: string): StoreReader {
  const reader = openStoreReader(dataDir);
  onTestFinished(() => reader.close());
  return reader;
}

const gap: NewGap = {
  subscription: 'alps',
  events: ['created'],
  filter: '',
  fromUs: 5,
  reason: 'It was paused.',
};

describe('a file of version 1', () => {
  /** The file as the first version made it, with one notification. */
  function writeFirstVersion(): string {
    const dataDir = temporaryDirectory();
    const database = new Sqlite(join(dataDir, databaseFileName));
    database.exec(migrations.slice(0, 1).join(''));
    database.exec(`
      INSERT INTO body VALUES (1, 'identity', CAST('the body' AS BLOB));
      INSERT INTO notification VALUES
        (1, x'00', 'ack-0', 'product-0', NULL, 'created', 's2', NULL, NULL, 7, 'push', 3, 9, 1, 0);
    `);
    database.pragma(`application_id = ${0x65617273}`);
    database.pragma('user_version = 1');
    database.close();
    return dataDir;
  }

  it('is brought up to date with its notifications kept', async () => {
    const { store, reopen } = await openSqliteStore({ dataDir: writeFirstVersion() });
    await store.administration.commit({ openGap: gap });
    await store.accept(delivery(notification(1)));
    const again = await reopen();
    expect(await again.administration.gaps()).toMatchObject([gap]);
    expect(await collect(again.find({ order: 'oldest' }))).toMatchObject([
      { position: 1, ackId: 'ack-0', timesSeen: 3, lastSeenAtUs: 9 },
      { position: 2, ackId: 'ack-1' },
    ]);
    expect(Buffer.from(await again.body(1)).toString()).toBe('the body');
  });

  it('is not read before that, and the reader is told what to do', async () => {
    const dataDir = writeFirstVersion();
    const refused = openReader(dataDir).administration.gaps();
    await expect(refused).rejects.toMatchObject({ code: 'configuration' });
    await expect(refused).rejects.toMatchObject({
      text: expect.stringContaining('older earshot. Run `earshot start` once'),
    });
  });
});

describe('questions about the account', () => {
  it('need no writer, nor wait for one', async () => {
    const { store, dataDir } = await openSqliteStore();
    await store.administration.commit({ openGap: gap });
    await store.close();
    const { administration } = openReader(dataDir);
    const other = new Sqlite(join(dataDir, databaseFileName));
    onTestFinished(() => void other.close());
    other.exec('BEGIN IMMEDIATE; DELETE FROM gap');
    expect(await administration.gaps()).toMatchObject([gap]);
    expect(await administration.registrations()).toEqual([]);
    expect(await administration.history({ limit: 1 })).toEqual([]);
    expect(await administration.deliveryMarks()).toEqual([]);
  });

  it('are answered with what another program has just committed', async () => {
    const { store, dataDir } = await openSqliteStore();
    const { administration } = openReader(dataDir);
    expect(await administration.gaps()).toEqual([]);
    await store.administration.commit({ openGap: gap });
    expect(await administration.gaps()).toMatchObject([gap]);
  });
});

describe('changes by several programs', () => {
  it('open one gap, though both open it at the same moment', async () => {
    const { store, dataDir } = await openSqliteStore();
    const other = await openStore({ dataDir, nowUs: () => 0 });
    onTestFinished(() => other.close());
    const times = Array.from({ length: 20 }, (_, i) => i);
    await Promise.all(
      times.flatMap((fromUs) =>
        [store, other].map((one) => one.administration.commit({ openGap: { ...gap, fromUs } })),
      ),
    );
    expect(await store.administration.gaps()).toHaveLength(1);
  });

  it('are refused as unavailable when the file was taken away', async () => {
    const { store, dataDir } = await openSqliteStore();
    const takeAway = () => {
      for (const end of ['', '-wal', '-shm']) rmSync(join(dataDir, databaseFileName) + end);
    };
    takeAway();
    const refused = store.administration.commit({ openGap: gap });
    await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
    await store.administration.commit({ openGap: gap });
    takeAway();
    const alsoRefused = store.administration.markDeliveries([]);
    await expect(alsoRefused).rejects.toMatchObject({ code: 'unavailable' });
  });
});
