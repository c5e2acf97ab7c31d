/** The order of a sink's deliveries, their number at a time, the independence of sinks, and their end. */
import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRandom } from '../../../src/sandbox/clock.ts';
import { answering, type HookAnswer, startHook } from './hook-server.ts';
import { openHookContext } from './sink-context.ts';
import { definition, webhookTarget } from './sink-definition.ts';

const secondUs = 1_000_000;

/** Answers of a webhook that hangs, until the test acknowledges them. */
function createHanging() {
  const open: ServerResponse[] = [];
  const answer: HookAnswer = (_hooked, response) => {
    open.push(response);
    return 'hang';
  };
  const acknowledgeAll = () => {
    for (const response of open.splice(0)) response.writeHead(200).end();
  };
  return { open, answer, acknowledgeAll };
}

describe('a sink', () => {
  it('receives everything, in order within each product, from a service that fails at random', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer(),
        async (products, concurrency, seed) => {
          const random = createRandom(seed);
          const acknowledged: { productId: string; position: number }[] = [];
          const { accept, startSink, isDone } = await openHookContext(({ data }, response) => {
            if (random.chance(0.4)) response.writeHead(random.pick([500, 429, 400])).end();
            else acknowledged.push(data);
          });
          for (const product of products) await accept({ ProductId: `product-${product}` });
          const sinks = startSink({ concurrency, attemptsMax: 100 });
          await isDone();
          await sinks.stop();
          expect(acknowledged.length).toBe(products.length);
          for (const product of new Set(products)) {
            const own = acknowledged.filter(({ productId }) => productId === `product-${product}`);
            const positions = own.map(({ position }) => position);
            expect(positions).toEqual(positions.toSorted((a, b) => a - b));
          }
        },
      ),
      { numRuns: 4 },
    );
  });

  it('has as many deliveries in flight as its concurrency, and never more', async () => {
    const { open, answer, acknowledgeAll } = createHanging();
    const { accept, startSink, isDone, hook, time, pass } = await openHookContext(answer);
    for (let i = 0; i < 12; i += 1) await accept();
    startSink({ concurrency: 3 });
    for (let round = 1; round <= 4; round += 1) {
      await time.runUntil(() => open.length === 3);
      await pass();
      expect(hook.received.length).toBe(3 * round);
      acknowledgeAll();
    }
    await isDone();
  });

  it('that hangs for an hour does not delay the others, and receives the waiting items afterwards', async () => {
    const context = await openHookContext(() => 'hang');
    const { accept, start, hook: hanging, items, isDone, time } = context;
    const other = await startHook();
    start(
      definition(webhookTarget(hanging.url), { name: 'hanging', timeoutMs: 30_000 }),
      definition(webhookTarget(other.url), { name: 'other', timeoutMs: 600_000 }),
    );
    for (let minute = 0; minute < 60; minute += 1) {
      await accept({ ProductId: `product-${minute % 7}` });
      const endUs = time.nowUs() + 60 * secondUs;
      // Small steps: the real time of a busy machine must not count as minutes.
      await time.runUntil(() => other.received.length === minute + 1, { stepMs: 20 });
      expect(time.nowUs()).toBeLessThan(endUs);
      while (time.nowUs() < endUs) time.advance(10_000);
    }
    expect(other.positions()).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
    await time.runUntil(async () => (await items('waiting', 'hanging')).length === 60);
    expect(await items('dead', 'hanging')).toEqual([]);
    // One probe at a time: it is not flooded.
    expect(hanging.received.length).toBeLessThan(60);
    hanging.change(() => undefined);
    await isDone('hanging');
    expect(new Set(hanging.positions()).size).toBe(60);
  });

  it('delivers other products while one item is refused, and later items of its product after it is dead', async () => {
    const { accept, startSink, isDone, items, hook } = await openHookContext(
      ({ data }, response) => {
        if (data.position === 1) response.writeHead(422).end('not this one');
      },
    );
    for (const product of [1, 1, 2, 3, 2]) await accept({ ProductId: `product-${product}` });
    startSink({ attemptsMax: 2 });
    await isDone();
    expect(await items('dead')).toMatchObject([{ position: 1, attempts: 2 }]);
    const positions = hook.positions();
    expect(positions.toSorted()).toEqual([1, 1, 2, 3, 4, 5]);
    expect(positions.lastIndexOf(1)).toBeLessThan(positions.indexOf(2));
    expect(positions.indexOf(5)).toBeLessThan(positions.indexOf(2));
  });

  it('never has two items of one product in flight, even when a dead letter is retried', async () => {
    const { open, answer, acknowledgeAll } = createHanging();
    const { accept, startSink, isDone, items, hook, store, time, pass } = await openHookContext(
      answering(422),
    );
    await accept({ ProductId: 'A-product' });
    startSink({ concurrency: 2, attemptsMax: 1 });
    await time.runUntil(async () => (await items('dead')).length === 1);
    hook.change(answer);
    await accept({ ProductId: 'a-product' });
    await time.runUntil(() => open.length === 1);
    await store.sinks.retry({ sink: 'sink', nowUs: time.nowUs() });
    await accept({ ProductId: 'other' });
    // The other product uses the free slot.
    await time.runUntil(() => open.length === 2);
    await pass();
    expect(hook.positions()).toEqual([1, 2, 3]);
    acknowledgeAll();
    await time.runUntil(() => open.length === 1);
    expect(hook.positions()).toEqual([1, 2, 3, 1]);
    acknowledgeAll();
    await isDone();
  });
});

describe('a stop of the program', () => {
  /** A sink with one delivery in flight, and a function that stops it and returns the time until its end. */
  async function openStopping() {
    const { open, answer, acknowledgeAll } = createHanging();
    const context = await openHookContext(answer);
    const { accept, startSink, time } = context;
    await accept();
    const sinks = startSink();
    await time.runUntil(() => open.length === 1);
    const beginUs = time.nowUs();
    let stoppedAfterUs: number | null = null;
    const stopping = sinks.stop().then(() => {
      stoppedAfterUs = time.nowUs() - beginUs;
    });
    return { ...context, acknowledgeAll, stopping, stoppedAfterUs: () => stoppedAfterUs };
  }

  it('waits two seconds for an answer, which counts', async () => {
    const { time, acknowledgeAll, stopping, stoppedAfterUs, waiting } = await openStopping();
    const answerAtUs = time.nowUs() + 1.5 * secondUs;
    await time.runUntil(() => time.nowUs() >= answerAtUs);
    expect(stoppedAfterUs()).toBeNull();
    acknowledgeAll();
    await stopping;
    expect(stoppedAfterUs()).toBe(1.5 * secondUs);
    expect(await waiting()).toBe(0);
  });

  it('aborts a hanging delivery, which the next program repeats under its id', async () => {
    const { time, hook, startSink, stoppedAfterUs, items, isDone } = await openStopping();
    await time.runUntil(() => stoppedAfterUs() !== null);
    expect(stoppedAfterUs()).toBeGreaterThanOrEqual(2 * secondUs);
    expect(stoppedAfterUs()).toBeLessThan(5 * secondUs);
    expect(await items('waiting')).toMatchObject([{ attempts: 0, error: null }]);
    hook.change(() => undefined);
    startSink();
    await isDone();
    const [first, ...again] = hook.received.map(({ data }) => data.id);
    expect(again).toEqual([first]);
  });
});
