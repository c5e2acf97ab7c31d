/** Bodies as they lie in the file, and as every reader gets them. */
import { describe, expect, it } from 'vitest';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import { generatedBodies } from '../../helpers/generated-bodies.ts';
import { openSqliteStore } from '../sqlite-store.ts';
import { inFile, keptRows } from './bodies-in-file.ts';

describe('bodies in the file', () => {
  it('are packed with those that came at the same time, and are read byte by byte', async () => {
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

  it('are those of the log and those in quarantine, which tells their size as they came', async () => {
    const { store } = await openSqliteStore();
    const held = JSON.stringify([notification(1), 'no notification', 'x'.repeat(3_000)]);
    const [, rejected] = await Promise.all(
      [notification(2), held, notification(3)].map((body) => store.accept(delivery(body))),
    );
    expect(rejected).toMatchObject({ outcome: 'rejected', stored: 1 });
    const [entry] = await collect(store.quarantined({ released: false }));
    expect(entry?.bodyBytes).toBe(held.length);
    expect(Buffer.from((await store.quarantineEntry(1)).body).toString()).toBe(held);
    const [row] = await collect(store.find({ ackId: 'ack-1' }));
    expect(Buffer.from(await store.body(row?.position ?? 0)).toString()).toBe(held);
  });

  it('are not written when their commit fails, nor is the id of one given twice', async () => {
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

describe('a pack that is damaged', () => {
  it('is told to whoever asks for what is in it; all others are read, and intake goes on', async () => {
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
