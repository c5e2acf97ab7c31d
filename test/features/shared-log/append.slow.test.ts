import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import { expectRefused } from '../../helpers/refusals.ts';
import { startDatabaseProxy } from './database-proxy.ts';
import {
  atPort,
  createDatabase,
  hasPostgres,
  openLog,
  openNode,
  query,
  useServer,
} from './shared-log-context.ts';

describe.runIf(hasPostgres)('an append to the shared log', () => {
  const server = useServer();

  it('is refused in a log of a newer version', async () => {
    const url = await createDatabase(server());
    await (await openLog({ url })).close();
    await query(url, 'INSERT INTO earshot.schema_version VALUES (2)');
    await expectRefused(
      openLog({ url }),
      'configuration',
      'newer version of earshot (schema 2; this version supports',
    );
  });

  it('is stored once when the connection is cut after the request and before the reply', async () => {
    const url = await createDatabase(server());
    const proxy = await startDatabaseProxy(server().port);
    const { store } = await openNode({ url: atPort(url, proxy.port) });
    proxy.cutReplyTo('earshot.append');
    const receipt = await store.accept(delivery(notification(1)));
    expect(receipt).toEqual({ outcome: 'stored', stored: 1, duplicates: 0 });
    expect(proxy.cuts()).toBe(1);
    const appended = await query(url, 'SELECT number, asked FROM earshot.entry');
    expect(appended).toEqual([{ number: '1', asked: 1 }]);
    await store.shared?.caughtUp();
    expect(await store.counts()).toMatchObject({ notifications: 1, duplicates: 0 });
  });

  it('waits for no other one with the same keys in the opposite order', async () => {
    const url = await createDatabase(server());
    const [a, b] = [await openNode({ url }), await openNode({ url })];
    const all = Array.from({ length: 40 }, (_, i) => notification(i));
    for (let round = 0; round < 10; round += 1) {
      const own = all.map((one) => ({ ...one, AckId: `${round} ${one.AckId}` }));
      const receipts = await Promise.all([
        a.store.accept(delivery(own)),
        b.store.accept(delivery(own.toReversed())),
      ]);
      const stored = receipts.map((receipt) => ('stored' in receipt ? receipt.stored : 0));
      expect(stored.toSorted()).toEqual([0, 40]);
    }
    for (const { store } of [a, b]) await store.shared?.caughtUp();
    expect(await collect(a.store.find({}))).toEqual(await collect(b.store.find({})));
    expect(await a.store.counts()).toMatchObject({ notifications: 400, duplicates: 400 });
  });

  it('becomes visible on other nodes during a long transaction in this and another database', async () => {
    const url = await createDatabase(server());
    for (const place of [url, server().url('postgres')]) {
      const long = new pg.Client(place);
      await long.connect();
      onTestFinished(() => long.end());
      await long.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await long.query('SELECT pg_current_xact_id()');
    }
    const [a, b] = [await openNode({ url }), await openNode({ url })];
    await a.store.accept(delivery(notification(1)));
    await expect.poll(() => b.store.counts()).toMatchObject({ notifications: 1 });
  });

  it('keeps text that PostgreSQL does not accept', async () => {
    const url = await createDatabase(server());
    const [a, b] = [await openNode({ url }), await openNode({ url })];
    const odd = 'a\u0000b\ud800c\u2028d';
    const bodies = [
      notification(1, { AckId: odd, ProductName: odd, SubscriptionEvent: odd, ProductId: odd }),
      notification(2, { SubscriptionId: odd, note: odd }),
    ];
    for (const body of bodies) {
      const receipt = await a.store.accept(delivery(body));
      expect(receipt).toMatchObject({ outcome: 'stored' });
    }
    await a.store.accept(delivery(`{"${odd}`, { headers: ['X-Odd', odd] }));
    for (const { store } of [a, b]) await store.shared?.caughtUp();
    const rows = await collect(b.store.find({}));
    expect(rows).toEqual(await collect(a.store.find({})));
    expect(rows[1]?.productName).toBe(odd.toWellFormed());
    const [entry] = await collect(b.store.quarantined({}));
    expect((await b.store.quarantineEntry(entry?.id ?? 0)).headers).toEqual(['X-Odd', odd]);
  });
});
