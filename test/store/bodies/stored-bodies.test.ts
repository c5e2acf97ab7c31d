/** Bodies as stored in the file, and as every reader gets them. */
import { describe, expect, it } from 'vitest';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import { generatedBodies } from '../../helpers/generated-bodies.ts';
import { openSqliteStore } from '../sqlite-store.ts';
import { inFile, keptRows } from './bodies-in-file.ts';

describe('stored bodies', () => {
  it('are packed with those that arrived at the same time, and are read unchanged', async () => {
    const { store, dataDir, reopen } = await openSqliteStore();
    const bodies = generatedBodies(100);
    const receipts = await Promise.all(bodies.map((body) => store.accept(delivery(body))));
    expect(receipts.every(({ outcome }) => outcome === 'stored')).toBe(true);
    const rows = keptRows(dataDir);
    expect(rows.length).toBeLessThan(25);
    expect(rows.every(({ encoding }) => encoding === 'zstd-1')).toBe(true);
    expect(rows.reduce((sum, row) => sum + row.bodies, 0)).toBe(100);
    const again = await reopen();
    for (const [i, body] of bodies.entries()) {
      expect(Buffer.from(await again.body(i + 1)).equals(body), `position ${i + 1}`).toBe(true);
    }
  });

  it('belong to the log or the quarantine, which reports their original size', async () => {
    const { store } = await openSqliteStore();
    const quarantined = JSON.stringify([notification(1), 'no notification', 'x'.repeat(3_000)]);
    const [, rejected] = await Promise.all(
      [notification(2), quarantined, notification(3)].map((body) => store.accept(delivery(body))),
    );
    expect(rejected).toMatchObject({ outcome: 'rejected', stored: 1 });
    const [entry] = await collect(store.quarantined({ released: false }));
    expect(entry?.bodyBytes).toBe(quarantined.length);
    expect(Buffer.from((await store.quarantineEntry(1)).body).toString()).toBe(quarantined);
    const [row] = await collect(store.find({ ackId: 'ack-1' }));
    expect(Buffer.from(await store.body(row?.position ?? 0)).toString()).toBe(quarantined);
  });

  it('are not written when their commit fails, and their ids are not reused', async () => {
    const { store, dataDir } = await openSqliteStore();
    await store.accept(delivery(notification(1)));
    inFile(dataDir, (database) =>
      database.exec(
        `CREATE TRIGGER refuse BEFORE INSERT ON notification WHEN NEW.ack_id = 'ack-3'
         BEGIN SELECT raise(ABORT, 'refused by a test'); END`,
      ),
    );
    const deliveries = [2, 3, 4, 5].map((number) => delivery(notification(number)));
    const receipts = await Promise.all(deliveries.map((one) => store.accept(one)));
    expect(receipts.map(({ outcome }) => outcome)).toEqual([
      'stored',
      'rejected',
      'stored',
      'stored',
    ]);
    for await (const { position, ackId } of store.find({})) {
      const body = JSON.parse(Buffer.from(await store.body(position)).toString());
      expect(body).toMatchObject({ AckId: ackId });
    }
    const { body } = await store.quarantineEntry(1);
    expect(JSON.parse(Buffer.from(body).toString())).toMatchObject({ AckId: 'ack-3' });
    expect(keptRows(dataDir).reduce((sum, { bodies }) => sum + bodies, 0)).toBe(5);
  });
});

describe('a damaged pack', () => {
  it('is reported to readers of its bodies; other bodies stay readable and intake continues', async () => {
    const { store, dataDir } = await openSqliteStore();
    const bodies = generatedBodies(9);
    for (const three of [bodies.slice(0, 3), bodies.slice(3, 6)]) {
      await Promise.all(three.map((body) => store.accept(delivery(body))));
    }
    inFile(dataDir, (database) =>
      database
        .prepare(
          'UPDATE body SET packed = CAST(substr(packed, 1, 900) || zeroblob(20) AS BLOB) WHERE id = 1',
        )
        .run(),
    );
    await expect(store.body(2)).rejects.toMatchObject({ code: 'unavailable' });
    await expect(store.body(2)).rejects.toThrow(/A body in the log is damaged/);
    expect(Buffer.from(await store.body(5))).toEqual(bodies[4]);
    await Promise.all(bodies.slice(6).map((body) => store.accept(delivery(body))));
    expect(Buffer.from(await store.body(9))).toEqual(bodies[8]);
  });
});
