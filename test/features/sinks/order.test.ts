/** The content and order of a sink's deliveries, and the independence of sinks. */
import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRandom } from '../../../src/sandbox/clock.ts';
import { startHook } from './hook-server.ts';
import { openSinkContext } from './sink-context.ts';
import { definition } from './sink-definition.ts';
import { createVirtualTime } from './virtual-time.ts';

const webhook = (url: string) => ({ kind: 'webhook', url, secret: null, ca: null }) as const;

it('a sink that is replaced during a delivery repeats it before later items', async () => {
  const time = createVirtualTime();
  const hook = await startHook({ answer: () => 'hang' });
  const { accept, start, isDone } = await openSinkContext(time);
  for (let i = 0; i < 3; i += 1) await accept({ ProductId: 'same' });
  const target = { kind: 'webhook', url: hook.url, secret: null, ca: null } as const;
  const sinks = start(definition(target, { timeoutMs: 3_600_000 }));
  await time.runUntil(() => hook.received.length === 1);
  let isChanged = false;
  const changing = sinks
    .change([definition(target, { timeoutMs: 3_500_000 })])
    .then(() => hook.change(() => undefined))
    .then(() => {
      isChanged = true;
    });
  await time.runUntil(() => isChanged);
  await changing;
  await time.runUntil(() => isDone());
  expect(hook.positions().slice(-3)).toEqual([1, 2, 3]);
});

describe('a sink', () => {
  it('receives everything, in order within each product, from a service that fails at random', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer(),
        async (products, concurrency, seed) => {
          const time = createVirtualTime();
          const random = createRandom(seed);
          const acknowledged: { productId: string; position: number }[] = [];
          const hook = await startHook({
            answer: ({ data }, response) => {
              if (random.chance(0.4)) response.writeHead(random.pick([500, 429, 400])).end();
              else acknowledged.push(data);
            },
          });
          const { accept, start, isDone } = await openSinkContext(time);
          for (const product of products) await accept({ ProductId: `product-${product}` });
          const sinks = start(
            definition(webhook(hook.url), { concurrency, attemptsMax: 100, timeoutMs: 3_600_000 }),
          );
          await time.runUntil(() => isDone(), { stepMs: 5_000 });
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
    const time = createVirtualTime();
    const open: ServerResponse[] = [];
    const hook = await startHook({
      answer: (_hooked, response) => {
        open.push(response);
        return 'hang';
      },
    });
    const { accept, start, isDone } = await openSinkContext(time);
    for (let i = 0; i < 12; i += 1) await accept();
    start(definition(webhook(hook.url), { concurrency: 3, timeoutMs: 3_600_000 }));
    for (let round = 1; round <= 4; round += 1) {
      await time.runUntil(() => open.length === 3);
      // Nothing else starts while these are open.
      let steps = 0;
      await time.runUntil(() => steps++ === 50);
      expect(hook.received.length).toBe(3 * round);
      for (const response of open.splice(0)) response.writeHead(200).end();
    }
    await time.runUntil(() => isDone());
  });

  it('that hangs for an hour does not delay the others, and receives the waiting items afterwards', async () => {
    const time = createVirtualTime();
    const [hanging, other] = [await startHook({ answer: () => 'hang' }), await startHook()];
    const { accept, start, isDone, items } = await openSinkContext(time);
    start(
      definition(webhook(hanging.url), { name: 'hanging', timeoutMs: 30_000 }),
      definition(webhook(other.url), { name: 'other', timeoutMs: 600_000 }),
    );
    for (let minute = 0; minute < 60; minute += 1) {
      await accept({ ProductId: `product-${minute % 7}` });
      const endUs = time.nowUs() + 60_000_000;
      // Small steps: the real time of a busy machine must not count as minutes.
      await time.runUntil(() => other.received.length === minute + 1, { stepMs: 20 });
      expect(time.nowUs()).toBeLessThan(endUs);
      while (time.nowUs() < endUs) time.advance(10_000);
    }
    expect(other.positions()).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
    await time.runUntil(() => isDone('other'));
    await time.runUntil(async () => (await items('waiting', 'hanging')).length === 60);
    expect(await items('dead', 'hanging')).toEqual([]);
    // One probe at a time: it is not flooded.
    expect(hanging.received.length).toBeLessThan(60);
    hanging.change(() => undefined);
    await time.runUntil(() => isDone('hanging'), { stepMs: 1_000 });
    expect(new Set(hanging.positions()).size).toBe(60);
  });

  it('delivers other products while one item is refused, and later items of its product after it is dead', async () => {
    const time = createVirtualTime();
    const hook = await startHook({
      answer: ({ data }, response) => {
        if (data.position === 1) response.writeHead(422).end('not this one');
      },
    });
    const { accept, start, items, isDone } = await openSinkContext(time);
    for (const product of [1, 1, 2, 3, 2]) await accept({ ProductId: `product-${product}` });
    start(definition(webhook(hook.url), { attemptsMax: 2, timeoutMs: 3_600_000 }));
    await time.runUntil(() => isDone());
    expect(await items('dead')).toMatchObject([{ position: 1, attempts: 2 }]);
    const positions = hook.positions();
    expect(positions.toSorted()).toEqual([1, 1, 2, 3, 4, 5]);
    expect(positions.lastIndexOf(1)).toBeLessThan(positions.indexOf(2));
    expect(positions.indexOf(5)).toBeLessThan(positions.indexOf(2));
  });

  it('never has two items of one product in flight, even when a dead letter is retried', async () => {
    const time = createVirtualTime();
    const open: ServerResponse[] = [];
    const hook = await startHook({
      answer: (_hooked, response) => void response.writeHead(422).end(),
    });
    const { accept, start, store, items, isDone } = await openSinkContext(time);
    await accept({ ProductId: 'A-product' });
    start(definition(webhook(hook.url), { concurrency: 2, attemptsMax: 1, timeoutMs: 3_600_000 }));
    await time.runUntil(async () => (await items('dead')).length === 1);
    hook.change((_hooked, response) => {
      open.push(response);
      return 'hang';
    });
    await accept({ ProductId: 'a-product' });
    await time.runUntil(() => open.length === 1);
    await store.sinks.retry({ sink: 'sink', ids: 'all', nowUs: time.nowUs() });
    await accept({ ProductId: 'other' });
    // The other product uses the free slot.
    await time.runUntil(() => open.length === 2);
    let steps = 0;
    await time.runUntil(() => steps++ === 50);
    expect(hook.positions()).toEqual([1, 2, 3]);
    for (const response of open.splice(0)) response.writeHead(200).end();
    await time.runUntil(() => open.length === 1);
    expect(hook.positions()).toEqual([1, 2, 3, 1]);
    for (const response of open.splice(0)) response.writeHead(200).end();
    await time.runUntil(() => isDone());
  });
});
