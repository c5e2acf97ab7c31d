/** What every store must do with what came of items, and with what people want of them. */
import { describe, expect, it } from 'vitest';
import { sinkReader } from '../../src/domain/sinks.ts';
import { collect } from '../helpers/deliveries.ts';
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

interface Reopenable {
  store: SinkStore;
  /** Closes the store and opens the same one again. */
  reopen(): Promise<SinkStore>;
}

type Open = () => Promise<Reopenable>;

const reader = sinkReader('act');
const read = { sink: 'act', replayId: null, after: 0, upTo: 9, atUs };

export function describeSinkOutcomes(name: string, open: Open): void {
  describe(`${name} as keeper of what came of items`, () => {
    it('forgets what was taken, and keeps why the rest was not', async () => {
      const { store, reopen } = await open();
      const [a, b, c, d] = await queued(store, ['a', 'b', 'c', 'd']);
      if (!a || !b || !c || !d) throw new Error('not queued');
      await store.sinks.settle([
        taken(a),
        postponed(b, atUs + 5),
        postponed(c, atUs + 6, { counts: false, error: 'It is down.' }),
        dead(d),
        taken({ id: 999 }),
        postponed({ id: 999 }, atUs),
      ]);
      const { sinks } = await reopen();
      const waiting = await collect(sinks.items({ sink: 'act', state: 'waiting' }));
      expect(waiting).toEqual([
        { ...c, dueAtUs: atUs + 6, error: 'It is down.' },
        { ...b, dueAtUs: atUs + 5, error: 'It answered 500.', attempts: 1 },
      ]);
      const refused = { ...d, state: 'dead', error: 'It answered 400.', attempts: 1 };
      expect(await collect(sinks.items({ state: 'dead' }))).toEqual([refused]);
      // Told once more, or late.
      await sinks.settle([taken(a), dead(d, 'Again.'), postponed(d, atUs)]);
      expect(await collect(sinks.items({ state: 'dead' }))).toEqual([refused]);
      await sinks.settle([taken(d)]);
      expect(await collect(sinks.items({ state: 'dead' }))).toEqual([]);
    });

    it('leaves nothing of outcomes of which one cannot be kept', async () => {
      const { store } = await open();
      const [a, b] = await queued(store, ['a', 'b']);
      if (!a || !b) throw new Error('not queued');
      const unkeepable = store.sinks.settle([taken(a), dead(b, {} as unknown as string)]);
      await expect(unkeepable).rejects.toMatchObject({ code: 'internal' });
      expect(await dueProducts(store)).toEqual(['a', 'b']);
    });

    it('counts each sink, by name, with the reason that came last', async () => {
      const { store } = await open();
      const { sinks } = store;
      await sinks.enqueue({ ...read, sink: 'new', upTo: 0, items: [] });
      await sinks.addReplay(replayOf(9, { sink: 'a-replay' }));
      await store.moveCursor('summaries', 5, atUs);
      const [a, b, c] = await queued(store, ['a', 'b', 'c'], { atUs: atUs + 1 });
      await queued(store, ['d'], { atUs: atUs - 1 });
      if (!a || !b || !c) throw new Error('not queued');
      const never = { oldestQueuedAtUs: null, oldestLiveQueuedAtUs: null };
      const none = { waiting: 0, dead: 0, ...never, error: null };
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
      await sinks.settle([taken(a)]);
      expect(await ofAct()).toMatchObject({ waiting: 2, error: 'Second.' });
      await sinks.settle([postponed(c, atUs, { error: 'Fourth.' })]);
      expect(await ofAct()).toMatchObject({ error: 'Fourth.' });
      await sinks.settle([taken(c)]);
      expect(await ofAct()).toMatchObject({ waiting: 1, error: 'First.' });
    });

    it('tries dead letters again: those named, or all, of one sink', async () => {
      const { store } = await open();
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

    it('forgets dead letters or all that waits, with the replays that go on', async () => {
      const { store } = await open();
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
}
