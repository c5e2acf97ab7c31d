import { describe, expect, it } from 'vitest';
import { sinkReader, sinkWaitMaxUs } from '../../../src/features/sinks/terms.ts';
import { collect } from '../../helpers/deliveries.ts';
import { openLocalStore } from '../../store/local-store.ts';
import { openFile } from '../../store/sqlite-store.ts';
import { acknowledged, atUs, dueProducts, postponed, queued, replayOf } from './sink-items.ts';

const reader = sinkReader('act');
const read = { sink: 'act', replayId: null, after: 0, upTo: 9, atUs };
const item = (position: number) => ({ position, productId: `product-${position}` });

describe('the queue of a sink', () => {
  it('keeps every field of an item over a restart, and the cursor', async () => {
    const { store, reopen } = await openLocalStore();
    const items = [item(3), item(4)];
    expect(await store.sinks.enqueue({ ...read, items })).toBe(true);
    const again = await reopen();
    const fresh = { state: 'waiting', attempts: 0, dueAtUs: atUs, error: null };
    const known = { ...fresh, id: expect.any(Number), sink: 'act', replayId: null };
    const due = await again.sinks.due({ sink: 'act', nowUs: atUs, limit: 9 });
    expect(due).toEqual(items.map((one) => ({ ...one, ...known, queuedAtUs: atUs })));
    expect(await again.cursor(reader)).toBe(9);
  });

  it('does not wait for a time that a fast clock has set', async () => {
    const { store } = await openLocalStore();
    await queued(store, ['a'], { atUs: atUs + sinkWaitMaxUs });
    expect(await dueProducts(store)).toEqual([]);
    expect(await dueProducts(store, { nowUs: atUs - 1 })).toEqual(['a']);
  });

  it('offers one item of each product in the order of queuing, live or replayed', async () => {
    const { store } = await openLocalStore();
    const { id: replayId } = await store.sinks.addReplay(replayOf(9));
    await queued(store, ['x', 'a', 'b', 'a'], { replayId });
    const [first = expect.fail()] = await queued(store, ['c', 'B', 'C', 'A']);
    expect(await dueProducts(store)).toEqual(['x', 'a', 'b', 'c']);
    await store.sinks.settle([postponed(first, atUs + 5)], atUs);
    expect(await dueProducts(store)).toEqual(['x', 'a', 'b']);
    expect(await dueProducts(store, { nowUs: atUs + 5 })).toEqual(['x', 'a', 'b', 'c']);
  });

  it('stores each part of the log once, and never uses an id again', async () => {
    const { store } = await openLocalStore();
    const { sinks } = store;
    const [one = expect.fail(), two = expect.fail()] = await queued(store, ['a', 'b']);
    expect(await sinks.enqueue({ ...read, items: [item(1)] })).toBe(false);
    await sinks.settle([acknowledged(two), { id: one.id, outcome: 'dead', error: 'No.' }], atUs);
    await sinks.settle([acknowledged({ id: 999 }), postponed(one, atUs)], atUs);
    expect(await sinks.drop({ sink: 'other', state: 'dead' })).toBe(0);
    expect(await sinks.drop({ sink: 'act', state: 'dead', ids: [two.id] })).toBe(0);
    expect(await sinks.retry({ sink: 'other', nowUs: atUs })).toBe(0);
    expect(await sinks.retry({ sink: 'act', nowUs: atUs })).toBe(1);
    const [three = expect.fail()] = await queued(store, ['c']);
    expect(three.id).toBeGreaterThan(two.id);
    expect(await sinks.due({ sink: 'act', nowUs: atUs, limit: 9 })).toMatchObject([
      { id: one.id, attempts: 0, error: null },
      { id: three.id },
    ]);
  });

  it('stores items and cursor together, or neither', async () => {
    const { store } = await openLocalStore();
    const invalid = [
      { ...read, items: [item(1), { position: 2, productId: null as unknown as string }] },
      { ...read, items: [], atUs: Number.NaN },
    ];
    for (const one of invalid) {
      await expect(store.sinks.enqueue(one)).rejects.toMatchObject({ code: 'internal' });
    }
    const outside = [
      { ...read, after: 5, items: [item(5)] },
      { ...read, items: [item(10)] },
      { ...read, after: 9, upTo: 8, items: [] },
    ];
    for (const one of outside) {
      await expect(store.sinks.enqueue(one)).rejects.toMatchObject({ code: 'invalid' });
    }
    expect(await store.cursor(reader)).toBeNull();
    expect(await dueProducts(store)).toEqual([]);
  });
});

it('a replay is refused until another one of the sink is queued, and its id is never used again', async () => {
  const { store } = await openLocalStore();
  const { sinks } = store;
  const added = await sinks.addReplay(replayOf(2));
  expect(await sinks.replay('act')).toEqual(added);
  await expect(sinks.addReplay(replayOf(2))).rejects.toMatchObject({ code: 'conflict' });
  const { id: other } = await sinks.addReplay(replayOf(2, { sink: 'bus' }));
  await queued(store, ['a'], { replayId: added.id });
  expect(await sinks.replay('act')).toMatchObject({ id: added.id, position: 1 });
  expect(await sinks.enqueue({ ...read, replayId: added.id, items: [] })).toBe(false);
  await queued(store, ['b'], { replayId: added.id });
  expect(await sinks.replay('act')).toBeNull();
  expect((await sinks.addReplay(replayOf(2))).id).toBeGreaterThan(other);
});

describe('outcomes of items', () => {
  it('show since when the sink accepts nothing, until the last attempt succeeds', async () => {
    const { store } = await openLocalStore();
    const { sinks } = store;
    const [a, b, c] = await queued(store, ['a', 'b', 'c'], { atUs });
    if (!a || !b || !c) throw new Error('not queued');
    const counts = async () => (await sinks.counts())[0];
    expect(await counts()).toMatchObject({ failingSinceUs: null, lastError: null });
    await sinks.settle([postponed(a, atUs)], atUs + 1);
    await sinks.settle([postponed(a, atUs, { error: 'It answered 502.' })], atUs + 2);
    expect(await counts()).toMatchObject({
      failingSinceUs: atUs + 1,
      lastError: expect.stringContaining('502'),
    });
    await sinks.settle([acknowledged(a)], atUs + 5);
    expect(await counts()).toMatchObject({ failingSinceUs: null, lastError: null });
    // A refused item, while others are delivered, does not show that the sink fails.
    await sinks.settle([postponed(b, atUs)], atUs + 6);
    expect(await counts()).toMatchObject({
      failingSinceUs: null,
      lastError: expect.stringContaining('500'),
    });
    await sinks.settle([postponed(c, atUs, { counts: false })], atUs + 7);
    expect(await counts()).toMatchObject({ failingSinceUs: atUs + 7 });
    // An earlier failure says nothing about later items.
    await sinks.drop({ sink: 'act', state: 'waiting' });
    const [d = expect.fail()] = await queued(store, ['d'], { atUs: atUs + 9 });
    expect(await counts()).toMatchObject({ failingSinceUs: null });
    await sinks.settle([postponed(d, atUs)], atUs + 10);
    expect(await counts()).toMatchObject({ failingSinceUs: atUs + 9 });
  });
});

const products = (count: number) => Array.from({ length: count }, (_, i) => `p-${i}`);

describe('the sink queue', () => {
  it('finds due items among 1,000 waiting ones and 20,000 dead letters within a few milliseconds', async () => {
    const { store, dataDir } = await openLocalStore();
    const { sinks } = store;
    const waiting = await queued(store, [...products(500), ...products(500)]);
    const replay = await sinks.addReplay(replayOf(9_999));
    await queued(store, products(1000), { replayId: replay.id });
    openFile(dataDir).exec(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
       INSERT INTO sink_item (sink, position, product_id, state, attempts, due_at_us, error,
         queued_at_us) SELECT 'act', 1, 'p-' || i, 'dead', 5, 1, 'No.', 1 FROM n`,
    );
    // The worst case: almost nothing is due.
    const later = waiting.slice(0, 499).map((one) => postponed(one, atUs + 5));
    await sinks.settle(later, atUs);
    const tookMs: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const before = process.cpuUsage();
      expect(await dueProducts(store, { limit: 1 })).toEqual(['p-499']);
      await sinks.nextDueAtUs('act');
      await sinks.counts();
      const { user, system } = process.cpuUsage(before);
      tookMs.push((user + system) / 1_000);
    }
    // CPU time of all threads: elapsed time would depend on the load of the machine.
    expect(Math.min(...tookMs)).toBeLessThan(30);
    expect(await sinks.counts()).toMatchObject([{ waiting: 2_000, dead: 20_000 }]);
    expect(await sinks.retry({ sink: 'act', nowUs: atUs })).toBe(20_000);
    expect(await collect(sinks.items({ state: 'waiting' }))).toHaveLength(22_000);
    const dropped = await sinks.drop({ sink: 'act', state: 'waiting' });
    expect(dropped).toBe(22_000);
    expect(await sinks.replay('act')).toBeNull();
  });
});
