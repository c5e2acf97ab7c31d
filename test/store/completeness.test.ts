import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { migrations } from '../../src/store/engine/migrations.ts';
import { openStore, openStoreReader } from '../../src/store/store.ts';
import { atUs, hour, missing, push, pushed, subscription } from '../contract/catalogue-events.ts';
import { describeCompleteness } from '../contract/completeness-contract.ts';
import { describeLatePushes } from '../contract/late-push-contract.ts';
import { describeRecovery } from '../contract/recovery-contract.ts';
import { collect } from '../helpers/deliveries.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { openLocalStore } from './local-store.ts';
import { openSqliteStore } from './sqlite-store.ts';

describeCompleteness('the store', openLocalStore);
describeRecovery('the SQLite store', async () => (await openSqliteStore()).store);
describeLatePushes('the store', async () => (await openLocalStore()).store);

function openFile(dataDir: string) {
  const database = new Sqlite(join(dataDir, databaseFileName));
  onTestFinished(() => void database.close());
  return database;
}

describe('a file of version 3', () => {
  it('is brought up to date, with what is registered as the first definitions', async () => {
    const dataDir = temporaryDirectory();
    const database = openFile(dataDir);
    database.exec(migrations.slice(0, 3).join(''));
    database.exec(`
      INSERT INTO body VALUES (1, 'identity', CAST('{}' AS BLOB));
      INSERT INTO notification VALUES
        (1, x'00', 'ack-0', 'product-0', NULL, 'created', 'alps', NULL, NULL, 7, 'push', 3, 9, 1, 0);
      INSERT INTO registration (name, events, filter, status, unfinished, activity_at_us, notified_at_us)
        VALUES ('andes', '["deleted"]', '', 'running', 0, 30, 31),
               ('alps', '["created","modified"]', 'true', 'running', 0, 99, 99);
      INSERT INTO history (at_us, subscription, action, actor, reason)
        VALUES (10, 'alps', 'created', 'register', ''), (40, 'alps', 'replaced', 'register', ''),
               (50, 'alps', 'resumed', 'maintain', ''), (60, 'other', 'created', 'register', '');
    `);
    database.pragma(`application_id = ${0x65617273}`);
    database.pragma('user_version = 3');
    const { store } = await openSqliteStore({ dataDir });
    expect(await store.completeness.definitions()).toEqual([
      { subscription: 'andes', fromUs: 30, events: ['deleted'], filter: '' },
      { subscription: 'alps', fromUs: 40, events: ['created', 'modified'], filter: 'true' },
    ]);
    expect(await collect(store.find({}))).toMatchObject([{ ackId: 'ack-0', timesSeen: 3 }]);
    const options = { events: [missing(1), missing(2)], knownUpTo: 1, atUs };
    expect(await store.completeness.recover(options)).toEqual([2, 3]);
    expect(await store.accept(push(pushed(2)))).toMatchObject({ outcome: 'duplicate' });
  });
});

describe('completeness, worked on by two programs,', () => {
  it('has each event once, and gives both the same run', async () => {
    const { store, dataDir } = await openSqliteStore();
    const other = await openStore({ dataDir, nowUs: () => 0 });
    onTestFinished(() => other.close());
    const events = Array.from({ length: 50 }, (_, i) => missing(i));
    const programs = [store, other];
    const [mine = [], others = []] = await Promise.all(
      programs.map(({ completeness }) => completeness.recover({ events, knownUpTo: 0, atUs })),
    );
    expect(mine.map((position, i) => position ?? others[i])).not.toContain(null);
    expect(await store.lastPosition()).toBe(50);
    const runs = await Promise.all(
      programs.map(({ completeness }, i) =>
        completeness.beginRun({ request: 'a', atUs: atUs + i }),
      ),
    );
    expect(runs[0]).toEqual(runs[1]);
  });

  it('answers without a writer, and while another program holds the lock', async () => {
    const { store, dataDir } = await openSqliteStore();
    await store.completeness.markUp({ fromUs: 1, toUs: 2 });
    await store.completeness.recover({ events: [missing(1)], knownUpTo: 0, atUs });
    await store.accept(push(pushed(2)));
    await store.close();
    const { completeness, close } = openStoreReader(dataDir);
    onTestFinished(close);
    openFile(dataDir).exec('BEGIN IMMEDIATE; DELETE FROM uptime; DELETE FROM notification');
    const window = { sinceUs: atUs, untilUs: atUs + hour };
    const productIds = ['product-1'];
    expect(await completeness.uptimes(0)).toHaveLength(1);
    expect(await completeness.recoveredEvents({ subscription, productIds })).toHaveLength(1);
    expect(await completeness.arrivals(window)).toHaveLength(1);
    expect(await completeness.coverage(window)).toEqual([]);
    expect(await completeness.definitions()).toEqual([]);
  });
});

describe('a recovery of 100 events at the end of a long tail', () => {
  it('takes less than 100 ms of computing', async () => {
    const { store } = await openSqliteStore();
    const body = Array.from({ length: 4_000 }, (_, i) => ({
      SubscriptionEvent: 'modified',
      ProductId: `product-${i}`,
      AckId: `${i}`,
      value: { ModificationDate: '2026-01-01T00:00:00Z' },
    }));
    await store.accept(push(body));
    const tookMs: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const events = Array.from({ length: 100 }, (_, i) =>
        missing(i, { event: 'modified', eventUs: atUs + round * 1_000 }),
      );
      const before = process.cpuUsage();
      await store.completeness.recover({ events, knownUpTo: 0, atUs });
      const { user, system } = process.cpuUsage(before);
      tookMs.push((user + system) / 1_000);
    }
    // Of all threads. The clock would tell what else the machine does.
    expect(Math.min(...tookMs)).toBeLessThan(100);
    expect(await store.lastPosition()).toBe(4_300);
  });
});
