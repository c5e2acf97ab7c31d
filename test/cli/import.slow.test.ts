/** `earshot import`: merges two data directories. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { importLog, openPushedHere } from '../../src/cli/commands/import.ts';
import type { Delivery } from '../../src/domain/ports.ts';
import type { SubscriptionEvent } from '../../src/domain/subscription.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { openStoreReader } from '../../src/store/store.ts';
import { atUs, missing, push, pushed } from '../store/catalogue-events.ts';
import { expectEnd, nowUs, printedJson } from './fake-io.ts';
import { delivery, filledContext, numbered, rawDelivery, withStore } from './filled-store.ts';

/** An old host that has received these deliveries, and a new one that imports them. */
async function createHosts(received: readonly Delivery[], own: readonly Delivery[] = []) {
  const old = await filledContext(received);
  const fresh = await filledContext(own);
  const importOld = async () => {
    return await printedJson(expectEnd(fresh.earshot(['import', old.dataDir, '--json']), 0));
  };
  const quarantined = async (): Promise<{ receivedAt: string; subscription: string | null }[]> =>
    await printedJson(fresh.earshot('quarantine list --json'));
  const rows = () => fresh.rows('query');
  const ackIds = async () => (await rows()).map(({ ackId }) => ackId);
  return { old, fresh, importOld, quarantined, rows, ackIds };
}

const good = (ackId: string) => ({ SubscriptionEvent: 'created', ProductId: ackId, AckId: ackId });

/** Hosts that share one notification; others were received by one host only. */
const createMixedHosts = () =>
  createHosts(
    [
      delivery({ AckId: 'both' }),
      delivery({ AckId: 'old-only' }, { subscription: null, receivedAtUs: 1_777_000_000_000_000 }),
      rawDelivery(JSON.stringify([good('array-1'), good('array-2')])),
      rawDelivery(JSON.stringify([good('mixed'), 7]), { headers: ['X-A', '1'] }),
      rawDelivery('no notification'),
    ],
    [delivery({ AckId: 'both' }), delivery({ AckId: 'new-only' })],
  );

describe('earshot import', () => {
  it('stores what only the other host has, with path and time of receipt', async () => {
    const { importOld, rows, quarantined } = await createMixedHosts();
    expect(await importOld()).toEqual({
      notifications: 5,
      stored: 4,
      duplicates: 1,
      quarantined: 2,
    });
    const all = await rows();
    expect(all.map(({ ackId }) => ackId).toSorted()).toEqual(
      ['array-1', 'array-2', 'both', 'mixed', 'new-only', 'old-only'].toSorted(),
    );
    expect(all.find(({ ackId }) => ackId === 'old-only')).toMatchObject({
      subscription: null,
      receivedAt: '2026-04-24T03:06:40.000000Z',
    });
    expect(await quarantined()).toHaveLength(2);
  });

  it('adds nothing when repeated', async () => {
    const { old, fresh, importOld, rows, quarantined } = await createMixedHosts();
    await importOld();
    const before = (await rows()).length;
    const { err } = await expectEnd(fresh.earshot(['import', old.dataDir]), 0);
    expect(err).toMatch(
      /^Notifications read: 5\. Stored: 0\. Duplicates: 4\. Bodies quarantined: \d\.\n$/,
    );
    expect(await rows()).toHaveLength(before);
    expect(await quarantined()).toHaveLength(2);
  });

  it('imports thousands in batches', { timeout: 30_000 }, async () => {
    const { importOld } = await createHosts(numbered(1, 3_000));
    expect(await importOld()).toMatchObject({ notifications: 3_000, stored: 3_000 });
  });

  it('from a folder without a database fails with the reason', async () => {
    const fresh = await filledContext([delivery()]);
    await expectEnd(fresh.earshot('import /nonexistent/earshot'), 2, /\/nonexistent\/earshot/);
    const other = await filledContext([delivery()]);
    const near = new RegExp(`Did you mean ${other.dataDir}\\?`);
    await expectEnd(fresh.earshot(`import ${other.dataDir}/${databaseFileName}`), 2, near);
    mkdirSync(join(fresh.dataDir, 'other'));
    symlinkSync(other.dataDir, join(fresh.dataDir, 'other/data'));
    const inside = /Did you mean .*other\/data\?/;
    await expectEnd(fresh.earshot(`import ${fresh.dataDir}/other`), 2, inside);
  });
});

function changeDatabase(dataDir: string, sql: string): void {
  const database = new Sqlite(join(dataDir, databaseFileName));
  database.exec(sql);
  database.close();
}

const bad = (count: number) => Array.from({ length: count }, () => rawDelivery('no notification'));

describe('earshot import of quarantined bodies', () => {
  it('imports a notification with the length and time of receipt of a quarantined body', async () => {
    const good = delivery({ AckId: 'good' });
    const { importOld, quarantined, ackIds } = await createHosts([
      rawDelivery('x'.repeat(good.body.byteLength)),
      good,
    ]);
    expect(await importOld()).toMatchObject({ notifications: 1, stored: 1, quarantined: 1 });
    expect(await ackIds()).toEqual(['good']);
    expect(await quarantined()).toHaveLength(1);
  });

  it('imports each of several equal bodies once', async () => {
    const later = rawDelivery('no notification', { receivedAtUs: nowUs });
    const unnamed = rawDelivery('no notification', { subscription: null });
    const { importOld, quarantined } = await createHosts([...bad(3), later, unnamed]);
    expect(await importOld()).toMatchObject({ quarantined: 5 });
    expect(await importOld()).toMatchObject({ quarantined: 0 });
    const all = await quarantined();
    expect(all).toHaveLength(5);
    expect(all.filter(({ receivedAt }) => receivedAt === '2026-05-02T12:00:00.000000Z')).toEqual([
      all[1],
    ]);
    // In order of receipt; the newest is listed first.
    expect(all[0]).toMatchObject({ subscription: null });
  });

  it('imports a body with the length and time of receipt of one quarantined here', async () => {
    const { importOld, quarantined } = await createHosts(
      [rawDelivery('no notification')],
      [rawDelivery('on notification')],
    );
    expect(await importOld()).toMatchObject({ quarantined: 1 });
    expect(await importOld()).toMatchObject({ quarantined: 0 });
    expect(await quarantined()).toHaveLength(2);
  });

  it('imports only missing bodies, and none that was released here', async () => {
    const { fresh, importOld, quarantined } = await createHosts(bad(3), bad(1));
    changeDatabase(fresh.dataDir, 'UPDATE quarantine SET released_at_us = 1');
    expect(await importOld()).toMatchObject({ quarantined: 2 });
    expect(await importOld()).toMatchObject({ quarantined: 0 });
    expect(await quarantined()).toHaveLength(2);
  });

  it('quarantines once a notification whose AckId is used by another one here', async () => {
    const { importOld, quarantined, ackIds } = await createHosts(
      [delivery({ ProductId: 'theirs' })],
      [delivery({ ProductId: 'ours' })],
    );
    await importOld();
    expect(await quarantined()).toHaveLength(1);
    expect(await importOld()).toMatchObject({ notifications: 1, stored: 0, duplicates: 1 });
    expect(await quarantined()).toHaveLength(1);
    expect(await ackIds()).toEqual(['ack-1']);
  });

  it.each([
    ['in the log', 100],
    ['in the quarantine', 500],
  ])('continues where it was interrupted %s', async (_name, stopAfter) => {
    const { old, fresh, importOld, quarantined, ackIds } = await createHosts([
      ...numbered(1, 300),
      ...bad(450),
    ]);
    const stopping = new AbortController();
    const from = openStoreReader(old.dataDir);
    let accepted = 0;
    const interrupted = withStore(fresh.dataDir, (store) => {
      const accept = (given: Delivery) => {
        accepted += 1;
        if (accepted === stopAfter) stopping.abort();
        return store.accept(given);
      };
      const stderr = { write: () => true, once: () => undefined };
      const { signal } = stopping;
      const pushedHere = openPushedHere(fresh, signal);
      return importLog(from, { ...store, accept }, { stderr, signal, pushedHere });
    });
    await expect(interrupted).rejects.toMatchObject({ code: 'cancelled' });
    await from.close();
    expect((await quarantined()).length).toBeLessThan(450);
    await importOld();
    expect(await importOld()).toMatchObject({ stored: 0, duplicates: 300, quarantined: 0 });
    expect(new Set(await ackIds()).size).toBe(300);
    expect(await quarantined()).toHaveLength(450);
  });
});

/** An old host that has recovered these events, and a new one that received pushes of others. */
async function createRecoveredHosts(recovered: Parameters<typeof missing>[], pushes: unknown[]) {
  const hosts = await createHosts(
    [],
    pushes.map((body) => push(body)),
  );
  await withStore(hosts.old.dataDir, async (store) => {
    for (const one of recovered) {
      await store.completeness.recover({ events: [missing(...one)], knownUpTo: 0, atUs });
    }
  });
  const rows = async () =>
    (await hosts.rows()).map(({ event, productId, source }) => `${event} ${productId} ${source}`);
  return { ...hosts, rows };
}

const modified = (us: number) => ({ event: 'modified' as SubscriptionEvent, eventUs: atUs + us });

describe('earshot import of recovered events', () => {
  it('omits those that were pushed here, and imports the others once', async () => {
    const { importOld, rows } = await createRecoveredHosts(
      [
        [1],
        [2],
        [1, { event: 'deleted' }],
        [1, { subscription: 'andes' }],
        [3, modified(5_999)],
        [4, modified(9_000)],
      ],
      [
        pushed(1, { ProductId: 'PRODUCT-1' }),
        pushed(3, modified(5_000)),
        pushed(4, modified(8_000)),
      ],
    );
    const taken = [
      'created product-2',
      'deleted product-1',
      'created product-1',
      'modified product-4',
    ];
    const counts = { notifications: 6, stored: 4, duplicates: 2, quarantined: 0 };
    expect(await importOld()).toEqual(counts);
    const all = [
      ...['created PRODUCT-1 push', 'modified product-3 push', 'modified product-4 push'],
      ...taken.map((one) => `${one} reconcile`),
    ].toSorted();
    expect((await rows()).toSorted()).toEqual(all);
    expect(await importOld()).toEqual({ ...counts, stored: 0, duplicates: 6 });
    expect((await rows()).toSorted()).toEqual(all);
  });

  it('describes this in its help', async () => {
    const { out } = await (await filledContext()).earshot('import --help');
    expect(out).toContain('with the source "reconcile" is a duplicate');
  });
});
