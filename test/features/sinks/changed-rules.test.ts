/** Sinks whose rules in the configuration changed while items waited. */
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/terms/app-error.ts';
import type { SinkDefinition } from '../../../src/features/sinks/registry.ts';
import { startHook } from './hook-server.ts';
import { openSinkContext } from './sink-context.ts';
import { definition } from './sink-definition.ts';
import { createVirtualTime } from './virtual-time.ts';

const webhook = (url: string) => ({ kind: 'webhook', url, secret: null, ca: null }) as const;

/**
 * Four notifications that wait for a sink that was down, and a function that restarts it with other
 * rules.
 */
async function openWaiting() {
  const time = createVirtualTime();
  const hook = await startHook({
    answer: (_hooked, response) => void response.writeHead(500).end(),
  });
  const context = await openSinkContext(time);
  const { accept, start, items } = context;
  await accept({ value: { Name: 'S1A_1' } }, { subscription: 'alps' });
  await accept(
    { value: { Name: 'S2A_2' }, SubscriptionEvent: 'deleted' },
    { subscription: 'nile' },
  );
  await accept({ value: { Name: 'S2A_3' } }, { subscription: 'nile' });
  await accept({ value: null, ProductName: 'S2A_4' }, { subscription: 'nile' });
  const first = start(definition(webhook(hook.url), { timeoutMs: 3_600_000 }));
  await time.runUntil(async () => (await items('waiting')).length === 4);
  await first.stop();
  hook.received.splice(0);
  hook.change(() => undefined);
  const startAgain = (rules: Partial<SinkDefinition>) =>
    start(definition(webhook(hook.url), { timeoutMs: 3_600_000, ...rules }));
  return { ...context, time, hook, startAgain };
}

describe('an item that waited while the rules of its sink changed', () => {
  it.each<[string, Partial<SinkDefinition>, number[]]>([
    ['subscriptions', { subscriptions: ['nile'] }, [2, 3, 4]],
    ['events', { events: ['created'] }, [1, 3, 4]],
    ['filter', { filter: "startswith(Name,'S2')" }, [2, 3]],
  ])('is checked by the new %s before its delivery', async (_what, rules, positions) => {
    const { time, hook, startAgain, isDone, items, lines } = await openWaiting();
    startAgain(rules);
    await time.runUntil(() => isDone(), { stepMs: 1_000 });
    expect([...new Set(hook.positions())].toSorted()).toEqual(positions);
    expect(await items('dead')).toEqual([]);
    const dropped = lines.filter(({ message }) => message.includes('no longer matches'));
    expect(dropped).toHaveLength(4 - positions.length);
  });

  it('is delivered nevertheless when a replay has queued it', async () => {
    const { time, hook, startAgain, isDone, store } = await openWaiting();
    const bounds = { sinceUs: null, untilUs: null, afterPosition: 0, lastPosition: 1 };
    const asked = { sink: 'sink', filter: '', requestedAtUs: time.nowUs() };
    const { id } = await store.sinks.addReplay({ ...asked, ...bounds });
    await store.sinks.enqueue({
      ...{ sink: 'sink', replayId: id, after: 0, upTo: 1, atUs: time.nowUs() },
      items: [{ position: 1, productId: 'product-1' }],
    });
    startAgain({ subscriptions: ['nile'] });
    await time.runUntil(() => isDone(), { stepMs: 1_000 });
    const got = hook.received.map(({ data }) => `${data.position} ${data.replay}`);
    expect(got.toSorted()).toEqual(['1 true', '2 false', '3 false', '4 false']);
  });

  it('is also checked when it is a retried dead letter', async () => {
    const { time, hook, startAgain, isDone, store, items } = await openWaiting();
    const [newest] = await items('waiting');
    if (newest === undefined) throw new Error('nothing waits');
    await store.sinks.settle([{ id: newest.id, outcome: 'dead', error: 'no' }]);
    startAgain({ subscriptions: ['alps'] });
    await time.runUntil(() => isDone(), { stepMs: 1_000 });
    await store.sinks.retry({ sink: 'sink', ids: 'all', nowUs: time.nowUs() });
    await time.runUntil(() => isDone(), { stepMs: 1_000 });
    expect(new Set(hook.positions())).toEqual(new Set([1]));
  });

  it('is a dead letter, not dropped, when its body cannot be read', async () => {
    const { time, startAgain, items, context, store } = await openWaiting();
    context.log = {
      find: (query) => store.find(query),
      lastPosition: () => store.lastPosition(),
      cursor: (reader) => store.cursor(reader),
      body: (position) => {
        if (position !== 1) return store.body(position);
        throw new AppError('unavailable', 'the disk is broken here');
      },
    };
    startAgain({ filter: "startswith(Name,'S2')", attemptsMax: 2 });
    await time.runUntil(async () => (await items('dead')).length === 1, { stepMs: 1_000 });
    expect(await items('dead')).toMatchObject([{ position: 1 }]);
  });
});
