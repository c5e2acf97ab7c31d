import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sinkReader } from '../../../src/features/sinks/terms.ts';
import { collect } from '../../helpers/deliveries.ts';
import { openLocalStore } from '../../store/local-store.ts';
import { atUs, newest, replayOf, type SinkStore } from './sink-items.ts';
import { SinkModel } from './sink-model.ts';

const pick = fc.nat(20);
const ids = fc.oneof(fc.constant('all' as const), fc.array(pick, { maxLength: 3 }));

const result = fc.record({
  pick,
  outcome: fc.constantFrom('acknowledged', 'acknowledged', 'postponed', 'dead'),
  waitUs: fc.integer({ min: 0, max: 5 }),
  counts: fc.boolean(),
});

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('enqueue' as const),
      stream: fc.nat(2),
      products: fc.array(fc.constantFrom('a', 'A', 'b', 'c'), { maxLength: 4 }),
      isStale: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.constant(true)),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      results: fc.array(result, { maxLength: 4 }),
    }),
  },
  fc.record({ kind: fc.constant('retry' as const), ids }),
  fc.record({
    kind: fc.constant('drop' as const),
    state: fc.constantFrom('waiting', 'dead', 'dead'),
    ids,
  }),
  fc.record({ kind: fc.constant('replay' as const), length: fc.nat(6) }),
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

/** A sink in the store, and its model. */
interface Context {
  store: SinkStore;
  sink: string;
  model: SinkModel;
  /** Ids of all items ever queued. */
  known: number[];
}

/** Applies a step to both. */
async function take(
  { store, sink, model, known }: Context,
  one: Step,
  nowUs: number,
): Promise<void> {
  const { sinks } = store;
  const idOf = (n: number) => known[n % Math.max(known.length, 1)] ?? 0;
  const idsOf = (picks: readonly number[] | 'all') => (picks === 'all' ? picks : picks.map(idOf));
  switch (one.kind) {
    case 'enqueue': {
      const replayId = model.replays[one.stream - 1]?.id ?? null;
      const after = model.positionOf(replayId) + Number(one.isStale);
      const items = one.products.map((productId, i) => ({ productId, position: after + i + 1 }));
      const read = { sink, replayId, after, upTo: after + items.length + 1, items, atUs: nowUs };
      const isQueued = model.move(read);
      expect(await sinks.enqueue(read)).toBe(isQueued);
      if (!isQueued) return;
      const added = await newest(sinks, sink, items.length);
      const fresh = { sink, replayId, state: 'waiting', attempts: 0, error: null };
      const times = { dueAtUs: nowUs, queuedAtUs: nowUs };
      expect(added).toMatchObject(items.map((item) => ({ ...item, ...fresh, ...times })));
      // An id is never used again, not even that of the last item.
      expect(added.filter(({ id }) => known.includes(id))).toEqual([]);
      model.items.push(...added);
      known.push(...added.map(({ id }) => id));
      return;
    }
    case 'settle': {
      const results = one.results.map(({ pick, outcome, waitUs, counts }, i) => {
        const id = idOf(pick);
        const error = `${nowUs} ${i}`;
        if (outcome === 'acknowledged') return { id, outcome } as const;
        if (outcome === 'dead') return { id, outcome, error } as const;
        return {
          id,
          outcome: 'postponed',
          error,
          nextAttemptAtUs: nowUs + waitUs,
          counts,
        } as const;
      });
      await sinks.settle(results);
      for (const each of results) model.settle(each);
      return;
    }
    case 'retry': {
      const asked = idsOf(one.ids);
      expect(await sinks.retry({ sink, ids: asked, nowUs })).toBe(model.retry(asked, nowUs));
      return;
    }
    case 'drop': {
      const state = one.state === 'dead' ? 'dead' : 'waiting';
      const asked = idsOf(one.ids);
      const dropped = await sinks.drop({ sink, state, ids: asked, nowUs });
      expect(dropped).toBe(model.drop(state, asked, nowUs));
      return;
    }
    case 'replay': {
      // A unique filter, since equal replays are refused.
      const filter = `${model.replays.length}`;
      const asked = { ...replayOf(one.length, { sink, filter }), requestedAtUs: nowUs };
      model.replays.push(await sinks.addReplay(asked));
    }
  }
}

async function compare({ store, sink, model }: Context, nowUs: number): Promise<void> {
  const { sinks } = store;
  const [due, nextUs, waiting, dead, counts, replays, cursor] = await Promise.all([
    sinks.due({ sink, nowUs, limit: 3 }),
    sinks.nextDueAtUs(sink),
    collect(sinks.items({ sink, state: 'waiting' })),
    collect(sinks.items({ sink, state: 'dead' })),
    sinks.counts(),
    sinks.replays({ sink, all: true }),
    store.cursor(sinkReader(sink)),
  ]);
  expect(due).toEqual(model.due(nowUs).slice(0, 3));
  expect(nextUs).toBe(model.nextDueAtUs());
  const newestFirst = model.items.toReversed();
  expect(waiting).toEqual(newestFirst.filter(({ state }) => state === 'waiting'));
  expect(dead).toEqual(newestFirst.filter(({ state }) => state === 'dead'));
  expect(counts.find((one) => one.sink === sink) ?? null).toEqual(model.counts());
  expect(replays).toEqual(model.replays.toReversed());
  expect(cursor).toBe(model.cursor);
}

it('after any changes to two sinks, the store agrees with a model of plain lists', async () => {
  const { store } = await openLocalStore();
  let runs = 0;
  const changes = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 3 }), step), {
    minLength: 8,
    maxLength: 24,
  });
  await fc.assert(
    fc.asyncProperty(changes, async (steps) => {
      runs += 1;
      const begin = (sink: string): Context => ({
        store,
        sink,
        model: new SinkModel(sink),
        known: [],
      });
      const contexts = [begin(`one-${runs}`), begin(`two-${runs}`)] as const;
      let nowUs = atUs;
      for (const [isSecond, passedUs, one] of steps) {
        nowUs += passedUs;
        const context = contexts[Number(isSecond)];
        if (context === undefined) throw new Error('no such sink');
        await take(context, one, nowUs);
        await compare(context, nowUs);
      }
      for (const context of contexts) await compare(context, nowUs);
    }),
    { numRuns: 40 },
  );
});
