/** What every store must do with what sinks have yet to take. */
import { describe, expect, it } from 'vitest';
import type { Intake } from '../../src/domain/ports.ts';
import { sinkReader, sinkWaitMaxUs } from '../../src/domain/sinks.ts';
import { delivery, notification } from '../helpers/deliveries.ts';
import {
  atUs,
  dead,
  dueProducts,
  postponed,
  queued,
  replayOf,
  type SinkStore,
  taken,
} from './sink-items.ts';
import { describeSinkModel } from './sink-model-contract.ts';
import { describeSinkOutcomes } from './sink-outcomes-contract.ts';

type Store = SinkStore & Intake;

interface Reopenable {
  store: Store;
  /** Closes the store and opens the same one again. */
  reopen(): Promise<Store>;
}

type Open = () => Promise<Reopenable>;

export function describeSinks(name: string, open: Open): void {
  describeQueue(name, open);
  describeReplays(name, open);
  describeOrder(name, open);
  describeSinkOutcomes(name, open);
  describeSinkModel(name, open);
}

const reader = sinkReader('act');
const read = { sink: 'act', replayId: null, after: 0, upTo: 9, atUs };
const item = (position: number) => ({ position, productId: `product-${position}` });

function describeQueue(name: string, open: Open): void {
  describe(`${name} as queue of sinks`, () => {
    it('keeps every field of an item over a restart, and the cursor with it', async () => {
      const { store, reopen } = await open();
      const items = [item(3), item(4)];
      expect(await store.sinks.enqueue({ ...read, items })).toBe(true);
      const again = await reopen();
      const fresh = { state: 'waiting', attempts: 0, dueAtUs: atUs, error: null };
      const known = { ...fresh, id: expect.any(Number), sink: 'act', replayId: null };
      const due = await again.sinks.due({ sink: 'act', nowUs: atUs, limit: 9 });
      expect(due).toEqual(items.map((one) => ({ ...one, ...known, queuedAtUs: atUs })));
      expect(await again.cursor(reader)).toBe(9);
    });

    it('queues a part of the log once, and only from where the cursor stands', async () => {
      const { store } = await open();
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

    it('tells a new sink from one that began at the end of an empty log', async () => {
      const { store } = await open();
      expect(await store.cursor(reader)).toBeNull();
      expect(await store.sinks.enqueue({ ...read, upTo: 0, items: [] })).toBe(true);
      expect(await store.cursor(reader)).toBe(0);
    });

    it('moves the cursor with the items, or neither', async () => {
      const { store } = await open();
      const unkeepable = [
        { ...read, items: [item(1), { position: 2, productId: null as unknown as string }] },
        { ...read, items: [], atUs: Number.NaN },
      ];
      for (const one of unkeepable) {
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

    it('goes on taking notifications while items come and go', async () => {
      const { store } = await open();
      const receipts = [];
      for (let n = 0; n < 30; n += 1) {
        receipts.push(store.accept(delivery(notification(n))));
        const [one] = await queued(store, [`p-${n}`]);
        if (one !== undefined) await store.sinks.settle([taken(one)]);
      }
      const outcomes = (await Promise.all(receipts)).map(({ outcome }) => outcome);
      expect(outcomes).toEqual(receipts.map(() => 'stored'));
      expect(await store.cursor(reader)).toBe(30);
    });
  });
}

function describeReplays(name: string, open: Open): void {
  describe(`${name} as keeper of replays`, () => {
    it('moves one with its items, until it has ended', async () => {
      const { store, reopen } = await open();
      const replay = await store.sinks.addReplay(replayOf(7));
      const { afterPosition: _, ...asked } = replayOf(7);
      expect(replay).toEqual({ ...asked, id: replay.id, position: 0, endedAtUs: null });
      const part = { ...read, replayId: replay.id, upTo: 4, items: [item(2)] };
      const strangers = [
        { ...part, sink: 'other' },
        { ...part, after: 1 },
        { ...part, replayId: replay.id + 1 },
      ];
      for (const one of strangers) expect(await store.sinks.enqueue(one)).toBe(false);
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

    it('adds none that hands over what another one does that has not finished', async () => {
      const { store } = await open();
      const { sinks } = store;
      const asked = { ...replayOf(7), sinceUs: atUs - 5, untilUs: null };
      const { id } = await sinks.addReplay(asked);
      const refused = { code: 'conflict', text: expect.stringContaining(`Replay ${id}, asked`) };
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
      for (const fields of other)
        expect(await sinks.sameReplay({ ...asked, ...fields })).toBeNull();
      // All queued, but not all handed over.
      const items = await queued(store, ['a', 'b', 'c', 'd', 'e', 'f', 'g'], { replayId: id });
      expect(await sinks.replays({ all: false })).toEqual([]);
      await expect(sinks.addReplay(asked)).rejects.toMatchObject(refused);
      await sinks.settle(items.map(taken));
      expect((await sinks.addReplay(asked)).id).not.toBe(id);
    });

    it('tells the newest first, of one sink or of all', async () => {
      const { sinks } = (await open()).store;
      const empty = { ...replayOf(0), sinceUs: null, untilUs: atUs };
      expect(await sinks.addReplay(empty)).toMatchObject({ untilUs: atUs, endedAtUs: atUs });
      for (const sink of ['act', 'other']) await sinks.addReplay(replayOf(5, { sink }));
      const told = async (options: Parameters<typeof sinks.replays>[0]) =>
        (await sinks.replays(options)).map(({ sink, lastPosition }) => [sink, lastPosition]);
      expect(await told({ all: true })).toEqual([
        ['other', 5],
        ['act', 5],
        ['act', 0],
      ]);
      expect(await told({ all: false, sink: 'act' })).toEqual([['act', 5]]);
      expect(await told({ all: true, sink: 'nobody' })).toEqual([]);
    });
  });
}

function describeOrder(name: string, open: Open): void {
  describe(`${name} as keeper of the order`, () => {
    it('gives live items first, then replayed ones, as they were queued', async () => {
      const { store } = await open();
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

    it('gives none whose product has an earlier one that waits, due or not', async () => {
      const { store } = await open();
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
      // Tried again, it goes before what was queued after it.
      await sinks.retry({ sink: 'act', ids: [first.id], nowUs: atUs });
      expect(await dueProducts(store)).toEqual(['A-1', 'b']);
      await sinks.settle([taken(first)]);
      expect((await sinks.due({ sink: 'act', nowUs: atUs, limit: 1 }))[0]?.id).not.toBe(first.id);
    });

    it('keeps a product in order between what is new and replays, and between replays', async () => {
      const { store } = await open();
      const { sinks } = store;
      const replay = async (filter: string) => (await sinks.addReplay(replayOf(9, { filter }))).id;
      const [first, second] = [await replay('a'), await replay('b')];
      const [live] = await queued(store, ['a']);
      const [again] = await queued(store, ['x', 'A', 'b'], { replayId: first });
      const [late] = await queued(store, ['b', 'x'], { replayId: second });
      await queued(store, ['y', 'B', 'a']);
      if (!live || !again || !late) throw new Error('not queued');
      // What a live one waits for comes first.
      expect(await dueProducts(store)).toEqual(['b', 'a', 'y', 'x']);
      await sinks.settle([postponed(live, atUs + 5), dead(again)]);
      const due = await sinks.due({ sink: 'act', nowUs: atUs, limit: 9 });
      expect(due.map(({ productId }) => productId)).toEqual(['b', 'y', 'x']);
      // A dead letter blocks nothing.
      expect(due.at(-1)?.replayId).toBe(second);
      await sinks.settle([taken(live)]);
      expect(await dueProducts(store)).toEqual(['A', 'b', 'y', 'x']);
    });

    it('says when the next one that may be given is due', async () => {
      const { store } = await open();
      const { sinks } = store;
      expect(await sinks.nextDueAtUs('act')).toBeNull();
      const [first, , other] = await queued(store, ['a', 'a', 'b']);
      if (first === undefined || other === undefined) throw new Error('not queued');
      expect(await sinks.nextDueAtUs('act')).toBe(atUs);
      // The second of the product is due, but must wait for the first.
      await sinks.settle([postponed(first, atUs + 7), postponed(other, atUs + 9)]);
      expect(await sinks.nextDueAtUs('act')).toBe(atUs + 7);
      await sinks.settle([taken(first)]);
      expect(await sinks.nextDueAtUs('act')).toBe(atUs);
      expect(await sinks.nextDueAtUs('other')).toBeNull();
    });

    it('does not wait for a time that a clock ahead has set', async () => {
      const { store } = await open();
      await queued(store, ['a'], { atUs: atUs + sinkWaitMaxUs });
      expect(await dueProducts(store)).toEqual([]);
      expect(await dueProducts(store, { nowUs: atUs - 1 })).toEqual(['a']);
    });
  });
}
