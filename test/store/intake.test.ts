import { describe, expect, it } from 'vitest';
import type { NotificationQuery } from '../../src/core/terms/ports.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { expectRefused } from '../helpers/refusals.ts';
import { openLocalStore } from './local-store.ts';

describe('intake into the log', () => {
  it('stores a new notification and finds it again', async () => {
    const { store } = await openLocalStore();
    const receipt = await store.accept(delivery(notification(1), { subscription: 's2' }));
    expect(receipt).toEqual({ outcome: 'stored', stored: 1, duplicates: 0 });
    expect(await collect(store.find({}))).toEqual([
      {
        position: 1,
        ackId: 'ack-1',
        productId: 'product-1',
        productName: 'S2A_MSIL2A_000001.SAFE',
        event: 'created',
        subscription: 's2',
        subscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb',
        notificationDateUs: Date.UTC(2026, 10, 20, 6, 0, 0, 123) * 1000,
        receivedAtUs: 1_795_000_000_000_000,
        source: 'push',
        timesSeen: 1,
        lastSeenAtUs: 1_795_000_000_000_000,
        bodyIndex: 0,
      },
    ]);
  });

  it('quarantines a push with a Content-Encoding, and stores an entry of a queue from a compressed page', async () => {
    const { store } = await openLocalStore();
    const headers = ['X', 'Content-Encoding', 'content-encoding', 'gzip'];
    const accept = (fields: object) => store.accept(delivery(notification(1), fields));
    const faults = [{ code: 'unsupported-encoding' }];
    expect(await accept({ headers })).toMatchObject({ outcome: 'rejected', stored: 0, faults });
    const [entry] = await collect(store.quarantined({}));
    expect(await store.retry(entry?.id ?? 0)).toMatchObject({ outcome: 'rejected', faults });
    expect(await accept({ headers, source: 'pull' })).toMatchObject({ outcome: 'stored' });
    const identity = ['Content-Encoding', 'Identity', 'X', 'content-encoding'];
    expect(await accept({ headers: identity })).toMatchObject({ outcome: 'duplicate' });
  });

  it('counts a duplicate on its row and keeps the first body', async () => {
    const { store } = await openLocalStore();
    await store.accept(delivery(notification(1)));
    const again = delivery(` ${JSON.stringify(notification(1))}`, {
      receivedAtUs: 1_795_000_000_500_000,
    });
    expect(await store.accept(again)).toEqual({ outcome: 'duplicate', duplicates: 1 });
    const [row, ...others] = await collect(store.find({}));
    expect(others).toEqual([]);
    expect(row).toMatchObject({ timesSeen: 2, lastSeenAtUs: 1_795_000_000_500_000 });
    expect(row).toMatchObject({ receivedAtUs: 1_795_000_000_000_000 });
    expect(Buffer.from(await store.body(1)).toString()).not.toMatch(/^ /);
    expect(await store.counts()).toEqual({ notifications: 1, duplicates: 1, quarantined: 0 });
  });

  it('keeps one body for an array, byte by byte, and answers duplicate only when all of it is known', async () => {
    const { store } = await openLocalStore();
    await store.accept(delivery(notification(1)));
    const mixed = await store.accept(delivery([notification(1), notification(2)]));
    expect(mixed).toEqual({ outcome: 'stored', stored: 1, duplicates: 1 });
    const known = await store.accept(delivery([notification(1), notification(2)]));
    expect(known).toEqual({ outcome: 'duplicate', duplicates: 2 });
    const text = `  ${JSON.stringify([notification(3), notification(4, { note: 'ä€\u2028' })])} \r\n\t`;
    await store.accept(delivery(text));
    // A shared log leaves no gap for duplicates, so that its positions are others.
    const rows = await collect(store.find({ limit: 2 }));
    expect(rows.map(({ ackId }) => ackId)).toEqual(['ack-4', 'ack-3']);
    for (const { position } of rows) {
      expect(Buffer.from(await store.body(position)).equals(Buffer.from(text))).toBe(true);
    }
    await expectRefused(store.body(99), 'not_found');
  });

  const bare = { SubscriptionEvent: 'modified', ProductId: 'p' };
  const ofAnother = { ...notification(1), SubscriptionId: 'another' };
  it.each<[what: string, bodies: [body: object, outcome: string][]]>([
    [
      'without AckId and date: by its content',
      [
        [{ ...bare, value: { a: 1 } }, 'stored'],
        [{ ...bare, value: { a: 2 } }, 'stored'],
        [{ ...bare, value: { a: 2 } }, 'duplicate'],
      ],
    ],
    [
      'by its AckId within its subscription',
      [
        [notification(1), 'stored'],
        [ofAnother, 'stored'],
        [notification(1), 'duplicate'],
        [{ ...ofAnother, SubscriptionId: 'ANOTHER' }, 'duplicate'],
      ],
    ],
  ])('recognises a duplicate %s', async (_what, bodies) => {
    const { store } = await openLocalStore();
    const outcomes: string[] = [];
    for (const [body] of bodies) outcomes.push((await store.accept(delivery(body))).outcome);
    expect(outcomes).toEqual(bodies.map(([, outcome]) => outcome));
  });

  it('quarantines other content under a known AckId, once', async () => {
    const { store } = await openLocalStore();
    const { value: product, ...rest } = notification(1);
    await store.accept(delivery({ ...rest, value: product }));
    // Another order of keys is the same content.
    await store.accept(delivery({ value: product, ...rest }));
    expect(await store.quarantinedCount()).toBe(0);
    const other = { ...rest, value: { Online: true } };
    for (let times = 0; times < 3; times += 1) {
      expect((await store.accept(delivery(other))).outcome).toBe('duplicate');
    }
    // The second one in an array, and both in the same transaction.
    await store.accept(delivery([notification(2), notification(2, { extra: 1 })]));
    const entries = await collect(store.quarantined({}));
    expect(entries.map(({ reason }) => reason)).toEqual(['ack-id-reused', 'ack-id-reused']);
    const body = (await store.quarantineEntry(entries[1]?.id ?? 0)).body;
    expect(JSON.parse(Buffer.from(body).toString())).toEqual(other);
    expect((await store.drift()).map(({ shape }) => shape)).toContain('ack-id-reused');
  });

  it('limits the number of drift shapes', async () => {
    const { store } = await openLocalStore();
    const fields = Array.from({ length: 500 }, (_, i) => [`invented${i}`, i]);
    await store.accept(delivery({ ...notification(1), ...Object.fromEntries(fields) }));
    const shapes = await store.drift();
    expect(shapes.length).toBeLessThan(250);
    expect(shapes.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThanOrEqual(500);
  });

  it('filters rows by each condition, newest or oldest first', async () => {
    const { store } = await openLocalStore();
    for (let i = 1; i <= 5; i += 1) {
      const fields = { SubscriptionEvent: i % 2 ? 'created' : 'Deleted' };
      // As if the clock was set back.
      const second = [0, 5, 2, 3, 1, 4][i] ?? 0;
      const context = { receivedAtUs: second * 1_000_000, subscription: i > 3 ? 'late' : null };
      await store.accept(delivery(notification(i, fields), context));
    }
    const positions = async (query: NotificationQuery) =>
      (await collect(store.find(query))).map(({ position }) => position);
    expect(await positions({})).toEqual([5, 4, 3, 2, 1]);
    expect(await positions({ order: 'oldest', limit: 2 })).toEqual([1, 2]);
    expect(await positions({ ackId: 'ack-3' })).toEqual([3]);
    expect(await positions({ productId: 'product-4' })).toEqual([4]);
    expect(await positions({ name: 'S2A_MSIL2A_000002.SAFE' })).toEqual([2]);
    expect(await positions({ name: 'S2?_*00[12]*' })).toEqual([]);
    expect(await positions({ name: '*00000?.SAFE' })).toEqual([5, 4, 3, 2, 1]);
    expect(await positions({ events: ['deleted'] })).toEqual([4, 2]);
    expect(await positions({ events: ['deleted', 'created'], limit: 3 })).toEqual([5, 4, 3]);
    expect(await positions({ subscription: 'late' })).toEqual([5, 4]);
    expect(await positions({ source: 'reconcile' })).toEqual([]);
    expect(await positions({ sinceUs: 2_000_000, untilUs: 4_000_000 })).toEqual([3, 2]);
    expect(await positions({ sinceUs: 9_000_000 })).toEqual([]);
    expect(await positions({ untilUs: 1 })).toEqual([]);
    expect(await positions({ afterPosition: 2, beforePosition: 5 })).toEqual([4, 3]);
    expect(await positions({ positions: [1, 4, 99] })).toEqual([4, 1]);
  });

  it('returns pages without repeated or skipped rows while new rows arrive', async () => {
    const { store } = await openLocalStore();
    const accept = (from: number, to: number) =>
      Promise.all(
        Array.from({ length: to - from }, (_, i) => store.accept(delivery(notification(from + i)))),
      );
    await accept(0, 2_500);
    const seen: string[] = [];
    for await (const { ackId } of store.find({ order: 'newest' })) {
      seen.push(ackId ?? '');
      if (seen.length === 10) await accept(2_500, 2_600);
    }
    expect(new Set(seen).size).toBe(2_500);
    expect(seen).toHaveLength(2_500);
  });
});

describe('the quarantine', () => {
  it('stores the valid notifications of an array and quarantines the whole body', async () => {
    const { store } = await openLocalStore();
    const body = [notification(1), { nothing: true }, notification(2)];
    const receipt = await store.accept(delivery(body));
    expect(receipt).toMatchObject({ outcome: 'rejected', stored: 2 });
    expect(await store.counts()).toEqual({ notifications: 2, duplicates: 0, quarantined: 1 });
    const entry = await store.quarantineEntry(1);
    expect(entry.faults).toMatchObject([{ code: 'event-missing', index: 1 }]);
    expect(JSON.parse(Buffer.from(entry.body).toString())).toEqual(body);
  });

  it('keeps an unreadable entry of a queue once, and each push', async () => {
    const { store } = await openLocalStore();
    for (const [source, count] of [
      ['pull', 1],
      ['push', 3],
    ] as const) {
      for (let i = 0; i < 2; i += 1) await store.accept({ ...delivery('bad'), source });
      expect(await store.quarantinedCount()).toBe(count);
    }
  });

  it('lists the newest first, page after page', async () => {
    const { store } = await openLocalStore();
    await Promise.all(Array.from({ length: 1_200 }, (_, i) => store.accept(delivery(`bad ${i}`))));
    const ids = (await collect(store.quarantined({}))).map(({ id }) => id);
    expect(ids).toEqual(Array.from({ length: 1_200 }, (_, i) => 1_200 - i));
    const few = await collect(store.quarantined({ limit: 3 }));
    expect(few.map(({ id }) => id)).toEqual([1_200, 1_199, 1_198]);
    const next = store.quarantined({ beforeId: 1_198, limit: 1_100 });
    const nextIds = (await collect(next)).map(({ id }) => id);
    expect(nextIds).toEqual(Array.from({ length: 1_100 }, (_, i) => 1_197 - i));
  });
});

it('stored cursors move forward and back, and survive a restart', async () => {
  const { store, reopen } = await openLocalStore();
  await store.moveCursor('index', 7, 1);
  await store.moveCursor('sink', 2, 1);
  await store.moveCursor('index', 4, 2);
  expect(await store.cursor('index')).toBe(4);
  const again = await reopen();
  const positions = ['index', 'sink', 'never-there'].map((reader) => again.cursor(reader));
  expect(await Promise.all(positions)).toEqual([4, 2, null]);
});
