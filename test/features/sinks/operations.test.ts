import { describe, expect, it } from 'vitest';
import { sinkReader, sinkWaitMaxUs, unusedSink } from '../../../src/features/sinks/terms.ts';
import { collect } from '../../helpers/deliveries.ts';
import { openLocalStore } from '../../store/local-store.ts';
import { openFile } from '../../store/sqlite-store.ts';
import {
  acknowledged,
  atUs,
  dead,
  dueProducts,
  postponed,
  queued,
  replayOf,
} from './sink-items.ts';

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

  it('accepts a part of the log once, and only from the cursor on', async () => {
    const { store } = await openLocalStore();
    const enqueue = (after: number, upTo: number) =>
      store.sinks.enqueue({ ...read, after, upTo, items: [item(upTo)] });
    expect(await enqueue(4, 7)).toBe(false);
    expect(await store.cursor(reader)).toBeNull();
    expect(await enqueue(0, 7)).toBe(true);
    expect([await enqueue(0, 7), await enqueue(6, 8)]).toEqual([false, false]);
    await store.moveCursor(reader, 2, atUs);
    expect([await enqueue(7, 8), await enqueue(2, 3)]).toEqual([false, true]);
    expect(await dueProducts(store)).toEqual(['product-7', 'product-3']);
    expect(await store.cursor(reader)).toBe(3);
  });

  it('distinguishes a new sink from one that began at the end of an empty log', async () => {
    const { store } = await openLocalStore();
    expect(await store.cursor(reader)).toBeNull();
    expect(await store.sinks.enqueue({ ...read, upTo: 0, items: [] })).toBe(true);
    expect(await store.cursor(reader)).toBe(0);
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

describe('stored replays', () => {
  it('advance with their items until they end', async () => {
    const { store, reopen } = await openLocalStore();
    const replay = await store.sinks.addReplay(replayOf(7));
    const { afterPosition: _, ...asked } = replayOf(7);
    expect(replay).toEqual({ ...asked, id: replay.id, position: 0, endedAtUs: null });
    const part = { ...read, replayId: replay.id, upTo: 4, items: [item(2)] };
    const mismatched = [
      { ...part, sink: 'other' },
      { ...part, after: 1 },
      { ...part, replayId: replay.id + 1 },
    ];
    for (const one of mismatched) expect(await store.sinks.enqueue(one)).toBe(false);
    expect(await store.sinks.enqueue(part)).toBe(true);
    expect(await store.sinks.enqueue(part)).toBe(false);
    const { sinks, cursor } = await reopen();
    expect(await sinks.replays({ all: false })).toEqual([{ ...replay, position: 4 }]);
    const rest = { ...part, after: 4, upTo: 7, items: [item(7)], atUs: atUs + 5 };
    expect(await sinks.enqueue(rest)).toBe(true);
    expect(await sinks.enqueue({ ...rest, after: 7, upTo: 8, items: [] })).toBe(false);
    expect(await sinks.replays({ all: false })).toEqual([]);
    const ended = { ...replay, position: 7, endedAtUs: atUs + 5 };
    expect(await sinks.replays({ all: true })).toEqual([ended]);
    const due = await sinks.due({ sink: 'act', nowUs: atUs + 5, limit: 9 });
    expect(due).toMatchObject([2, 7].map((n) => ({ ...item(n), replayId: replay.id })));
    expect(await cursor(reader)).toBeNull();
  });

  it('are refused when an unfinished replay delivers the same', async () => {
    const { store } = await openLocalStore();
    const { sinks } = store;
    const asked = { ...replayOf(7), sinceUs: atUs - 5, untilUs: null };
    const { id } = await sinks.addReplay(asked);
    const refused = { code: 'conflict', text: expect.stringContaining(`Replay ${id} to `) };
    const less = [{}, { sinceUs: atUs }, { untilUs: atUs }, { lastPosition: 6 }];
    for (const fields of less) {
      await expect(sinks.addReplay({ ...asked, ...fields })).rejects.toMatchObject(refused);
      expect(await sinks.sameReplay({ ...asked, ...fields })).toMatchObject({ id });
    }
    const other = [
      { filter: "Name eq 'x'" },
      { sinceUs: null },
      { sinceUs: atUs - 6 },
      { lastPosition: 8 },
      { sink: 'other' },
    ];
    for (const fields of other) expect(await sinks.sameReplay({ ...asked, ...fields })).toBeNull();
    // All queued, but not all delivered.
    const items = await queued(store, ['a', 'b', 'c', 'd', 'e', 'f', 'g'], { replayId: id });
    expect(await sinks.replays({ all: false })).toEqual([]);
    await expect(sinks.addReplay(asked)).rejects.toMatchObject(refused);
    await sinks.settle(items.map(acknowledged));
    expect((await sinks.addReplay(asked)).id).not.toBe(id);
  });

  it('are returned newest first, of one sink or of all', async () => {
    const { sinks } = (await openLocalStore()).store;
    const empty = { ...replayOf(0), sinceUs: null, untilUs: atUs };
    expect(await sinks.addReplay(empty)).toMatchObject({ untilUs: atUs, endedAtUs: atUs });
    for (const sink of ['act', 'other']) await sinks.addReplay(replayOf(5, { sink }));
    const listed = async (options: Parameters<typeof sinks.replays>[0]) =>
      (await sinks.replays(options)).map(({ sink, lastPosition }) => [sink, lastPosition]);
    expect(await listed({ all: true })).toEqual([
      ['other', 5],
      ['act', 5],
      ['act', 0],
    ]);
    expect(await listed({ all: false, sink: 'act' })).toEqual([['act', 5]]);
    expect(await listed({ all: true, sink: 'nobody' })).toEqual([]);
  });
});

describe('due items', () => {
  it('are live items first, then replayed ones, in the order of queueing', async () => {
    const { store } = await openLocalStore();
    const replay = async (filter: string) =>
      (await store.sinks.addReplay(replayOf(9, { filter }))).id;
    const [first, second] = [await replay('a'), await replay('b')];
    await queued(store, ['b'], { replayId: second });
    await queued(store, ['a'], { replayId: first });
    await queued(store, ['z']);
    await queued(store, ['c'], { replayId: first });
    await queued(store, ['y']);
    await queued(store, ['other'], { sink: 'other' });
    expect(await dueProducts(store)).toEqual(['z', 'y', 'b', 'a', 'c']);
    expect(await dueProducts(store, { limit: 3 })).toEqual(['z', 'y', 'b']);
    expect(await dueProducts(store, { limit: 1 })).toEqual(['z']);
    expect(await dueProducts(store, { nowUs: atUs - 1 })).toEqual([]);
  });

  it('exclude products with an earlier waiting item, due or not', async () => {
    const { store } = await openLocalStore();
    const { sinks } = store;
    const [first, , second] = await queued(store, ['A-1', 'b', 'a-1', 'a-1']);
    if (first === undefined || second === undefined) throw new Error('not queued');
    expect(await dueProducts(store)).toEqual(['A-1', 'b']);
    await sinks.settle([postponed(first, atUs + 5)]);
    expect(await dueProducts(store)).toEqual(['b']);
    expect(await dueProducts(store, { nowUs: atUs + 5 })).toEqual(['A-1', 'b']);
    await sinks.settle([dead(first)]);
    const due = await sinks.due({ sink: 'act', nowUs: atUs, limit: 9 });
    expect(due.map(({ id }) => id)).toContain(second.id);
    // A retried item comes before items that were queued after it.
    await sinks.retry({ sink: 'act', ids: [first.id], nowUs: atUs });
    expect(await dueProducts(store)).toEqual(['A-1', 'b']);
    await sinks.settle([acknowledged(first)]);
    expect((await sinks.due({ sink: 'act', nowUs: atUs, limit: 1 }))[0]?.id).not.toBe(first.id);
  });

  it('keep the order of a product between live items and replays, and between replays', async () => {
    const { store } = await openLocalStore();
    const { sinks } = store;
    const replay = async (filter: string) => (await sinks.addReplay(replayOf(9, { filter }))).id;
    const [first, second] = [await replay('a'), await replay('b')];
    const [live] = await queued(store, ['a']);
    const [again] = await queued(store, ['x', 'A', 'b'], { replayId: first });
    const [late] = await queued(store, ['b', 'x'], { replayId: second });
    await queued(store, ['y', 'B', 'a']);
    if (!live || !again || !late) throw new Error('not queued');
    // Items that block a live one come first.
    expect(await dueProducts(store)).toEqual(['b', 'a', 'y', 'x']);
    await sinks.settle([postponed(live, atUs + 5), dead(again)]);
    const due = await sinks.due({ sink: 'act', nowUs: atUs, limit: 9 });
    expect(due.map(({ productId }) => productId)).toEqual(['b', 'y', 'x']);
    // A dead letter blocks nothing.
    expect(due.at(-1)?.replayId).toBe(second);
    await sinks.settle([acknowledged(live)]);
    expect(await dueProducts(store)).toEqual(['A', 'b', 'y', 'x']);
  });

  it('report the time when the next item becomes due', async () => {
    const { store } = await openLocalStore();
    const { sinks } = store;
    expect(await sinks.nextDueAtUs('act')).toBeNull();
    const [first, , other] = await queued(store, ['a', 'a', 'b']);
    if (first === undefined || other === undefined) throw new Error('not queued');
    expect(await sinks.nextDueAtUs('act')).toBe(atUs);
    // The second item of the product is due, but must wait for the first.
    await sinks.settle([postponed(first, atUs + 7), postponed(other, atUs + 9)]);
    expect(await sinks.nextDueAtUs('act')).toBe(atUs + 7);
    await sinks.settle([acknowledged(first)]);
    expect(await sinks.nextDueAtUs('act')).toBe(atUs);
    expect(await sinks.nextDueAtUs('other')).toBeNull();
  });

  it('do not wait for a time that a fast clock has set', async () => {
    const { store } = await openLocalStore();
    await queued(store, ['a'], { atUs: atUs + sinkWaitMaxUs });
    expect(await dueProducts(store)).toEqual([]);
    expect(await dueProducts(store, { nowUs: atUs - 1 })).toEqual(['a']);
  });
});

describe('outcomes of items', () => {
  it('remove acknowledged items, and keep the errors of the others', async () => {
    const { store, reopen } = await openLocalStore();
    const [a, b, c, d] = await queued(store, ['a', 'b', 'c', 'd']);
    if (!a || !b || !c || !d) throw new Error('not queued');
    await store.sinks.settle([
      acknowledged(a),
      postponed(b, atUs + 5),
      postponed(c, atUs + 6, { counts: false, error: 'It is down.' }),
      dead(d),
      acknowledged({ id: 999 }),
      postponed({ id: 999 }, atUs),
    ]);
    const reopened = await reopen();
    const { sinks } = reopened;
    const waiting = await collect(sinks.items({ sink: 'act', state: 'waiting' }));
    expect(waiting).toEqual([
      { ...c, dueAtUs: atUs + 6, error: 'It is down.' },
      { ...b, dueAtUs: atUs + 5, error: 'It answered 500.', attempts: 1 },
    ]);
    const [e] = await queued(reopened, ['e']);
    const failed = { sink: 'act', state: 'waiting', failed: true } as const;
    expect(e).toMatchObject({ error: null });
    expect(await collect(sinks.items(failed))).toEqual(waiting);
    expect(await sinks.counts()).toMatchObject([{ waiting: 3, failed: 2, dead: 1 }]);
    const refused = { ...d, state: 'dead', error: 'It answered 400.', attempts: 1 };
    expect(await collect(sinks.items({ state: 'dead' }))).toEqual([refused]);
    // Reported twice, or late.
    await sinks.settle([acknowledged(a), dead(d, 'Again.'), postponed(d, atUs)]);
    expect(await collect(sinks.items({ state: 'dead' }))).toEqual([refused]);
    await sinks.settle([acknowledged(d)]);
    expect(await collect(sinks.items({ state: 'dead' }))).toEqual([]);
  });

  it('are not stored when one of them is invalid', async () => {
    const { store } = await openLocalStore();
    const [a, b] = await queued(store, ['a', 'b']);
    if (!a || !b) throw new Error('not queued');
    const invalid = store.sinks.settle([acknowledged(a), dead(b, {} as unknown as string)]);
    await expect(invalid).rejects.toMatchObject({ code: 'internal' });
    expect(await dueProducts(store)).toEqual(['a', 'b']);
  });

  it('are counted by sink name, with the most recent error', async () => {
    const { store } = await openLocalStore();
    const { sinks } = store;
    await sinks.enqueue({ ...read, sink: 'new', upTo: 0, items: [] });
    await sinks.addReplay(replayOf(9, { sink: 'a-replay' }));
    await store.moveCursor('summaries', 5, atUs);
    const [a, b, c] = await queued(store, ['a', 'b', 'c'], { atUs: atUs + 1 });
    await queued(store, ['d'], { atUs: atUs - 1 });
    if (!a || !b || !c) throw new Error('not queued');
    const none = unusedSink('');
    const since = { oldestQueuedAtUs: atUs - 1, oldestLiveQueuedAtUs: atUs - 1 };
    const ofAct = async () => (await sinks.counts()).find(({ sink }) => sink === 'act');
    expect(await sinks.counts()).toEqual([
      { ...none, sink: 'a-replay' },
      { ...none, sink: 'act', waiting: 4, ...since },
      { ...none, sink: 'new' },
    ]);
    await sinks.settle([dead(b, 'First.')]);
    await sinks.settle([postponed(c, atUs, { error: 'Second.' })]);
    await sinks.settle([postponed(a, atUs, { error: 'Third.' })]);
    expect(await ofAct()).toMatchObject({ waiting: 3, dead: 1, error: 'Third.' });
    await sinks.settle([acknowledged(a)]);
    expect(await ofAct()).toMatchObject({ waiting: 2, error: 'Second.' });
    await sinks.settle([postponed(c, atUs, { error: 'Fourth.' })]);
    expect(await ofAct()).toMatchObject({ error: 'Fourth.' });
    await sinks.settle([acknowledged(c)]);
    expect(await ofAct()).toMatchObject({ waiting: 1, error: 'First.' });
  });

  it('show since when the sink accepts nothing, until the last attempt succeeds', async () => {
    const { store } = await openLocalStore();
    const { sinks } = store;
    const [a, b, c] = await queued(store, ['a', 'b', 'c'], { atUs });
    if (!a || !b || !c) throw new Error('not queued');
    const failing = async () => (await sinks.counts())[0]?.failingSinceUs;
    expect(await failing()).toBeNull();
    await sinks.settle([postponed(a, atUs)]);
    expect(await failing()).toBe(atUs);
    await sinks.settle([{ id: a.id, outcome: 'acknowledged', deliveredAtUs: atUs + 5 }]);
    expect(await failing()).toBeNull();
    // A refused item, while others are delivered, does not show that the sink fails.
    await sinks.settle([postponed(b, atUs)]);
    expect(await failing()).toBeNull();
    await sinks.settle([postponed(c, atUs, { counts: false })]);
    expect(await failing()).toBe(atUs + 5);
  });

  it('retry the named or all dead letters of one sink', async () => {
    const { store } = await openLocalStore();
    const { sinks } = store;
    const items = await queued(store, ['a', 'b', 'c', 'd']);
    const others = await queued(store, ['a'], { sink: 'other' });
    await sinks.settle([...items.slice(0, 3), ...others].map((one) => dead(one)));
    const [a, b, , d] = items;
    if (!a || !b || !d) throw new Error('not queued');
    const nowUs = atUs + 5;
    const ids = [b.id, b.id, d.id, others[0]?.id ?? 0];
    expect(await sinks.retry({ sink: 'act', ids, nowUs })).toBe(1);
    const due = await sinks.due({ sink: 'act', nowUs, limit: 9 });
    expect(due).toEqual([{ ...b, dueAtUs: nowUs, queuedAtUs: nowUs }, d]);
    expect(await sinks.retry({ sink: 'act', ids: 'all', nowUs })).toBe(2);
    expect(await dueProducts(store, { nowUs })).toEqual(['a', 'b', 'c', 'd']);
    expect(await collect(sinks.items({ state: 'dead' }))).toMatchObject([{ sink: 'other' }]);
  });

  it('drop dead letters, or all waiting items with their active replays', async () => {
    const { store } = await openLocalStore();
    const { sinks } = store;
    const others = await sinks.addReplay(replayOf(9, { sink: 'other' }));
    const replay = await sinks.addReplay(replayOf(9));
    const items = await queued(store, ['a', 'b', 'c', 'd']);
    await queued(store, ['e'], { replayId: replay.id });
    await queued(store, ['a'], { sink: 'other' });
    const [a, b, c] = items;
    if (!a || !b || !c) throw new Error('not queued');
    await sinks.settle([dead(a), dead(b)]);
    const drop = (state: 'waiting' | 'dead', ids: number[] | 'all') =>
      sinks.drop({ sink: 'act', state, ids, nowUs: atUs + 5 });
    expect(await drop('dead', [a.id, c.id])).toBe(1);
    expect(await drop('waiting', [b.id, c.id])).toBe(1);
    expect(await sinks.replays({ all: false })).toHaveLength(2);
    expect(await drop('waiting', 'all')).toBe(2);
    expect(await sinks.replays({ all: false })).toEqual([others]);
    const ended = { ...replay, position: 1, endedAtUs: atUs + 5 };
    expect(await sinks.replays({ all: true, sink: 'act' })).toEqual([ended]);
    const rest = { ...read, replayId: replay.id, after: 1, items: [] };
    expect(await sinks.enqueue(rest)).toBe(false);
    expect(await drop('dead', 'all')).toBe(1);
    expect(await sinks.counts()).toMatchObject([
      { sink: 'act', waiting: 0, dead: 0 },
      { sink: 'other', waiting: 1 },
    ]);
    expect(await store.cursor(reader)).toBe(4);
  });
});

const products = (count: number) => Array.from({ length: count }, (_, i) => `p-${i}`);

describe('the sink queue', () => {
  it('finds due items among 1,000 waiting ones and 20,000 dead letters within a few milliseconds', async () => {
    const { store, dataDir } = await openLocalStore();
    const { sinks } = store;
    const waiting = await queued(store, [...products(500), ...products(500)]);
    const replay = await sinks.addReplay(replayOf(9));
    await queued(store, products(1000), { replayId: replay.id });
    openFile(dataDir).exec(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
       INSERT INTO sink_item (sink, stream, position, product_id, state, attempts, due_at_us, error,
         failure, queued_at_us) SELECT 'act', 0, 1, 'p-' || i, 'dead', 5, 1, 'No.', i, 1 FROM n`,
    );
    // The worst case: almost nothing is due.
    await sinks.settle(waiting.slice(0, 499).map((one) => postponed(one, atUs + 5)));
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
    expect(await sinks.retry({ sink: 'act', ids: 'all', nowUs: atUs })).toBe(20_000);
    expect(await collect(sinks.items({ state: 'waiting' }))).toHaveLength(22_000);
    const dropped = await sinks.drop({ sink: 'act', state: 'waiting', ids: 'all', nowUs: atUs });
    expect(dropped).toBe(22_000);
    expect(await sinks.replays({ all: false })).toEqual([]);
  });

  it('never reuses the id of an item', async () => {
    const { store } = await openLocalStore();
    const [first] = await queued(store, ['a']);
    if (first === undefined) throw new Error('not queued');
    await store.sinks.drop({ sink: 'act', state: 'waiting', ids: 'all', nowUs: atUs });
    const [second] = await queued(store, ['a']);
    expect(second?.id).toBeGreaterThan(first.id);
  });
});
