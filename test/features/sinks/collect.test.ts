/**
 * The notifications that become items: the rules of a sink, also changed ones, its start, its limits,
 * and replays.
 */
import { describe, expect, it, vi } from 'vitest';
import { dayUs } from '../../../src/core/terms/dates.ts';
import type { SinkDefinition } from '../../../src/features/sinks/registry.ts';
import { startSinks } from '../../../src/features/sinks/run-sinks.ts';
import { sinkWaitingMax } from '../../../src/features/sinks/terms.ts';
import { delivery, notification } from '../../helpers/deliveries.ts';
import { openStore } from '../../helpers/store.ts';
import { answering, startHook } from './hook-server.ts';
import { openHookContext, openSinkContext } from './sink-context.ts';
import { definition, webhookTarget } from './sink-definition.ts';
import { queued } from './sink-items.ts';

const record = (name: string) => ({ Id: 'an-id', Name: name });
const [alps, nile] = [{ subscription: 'alps' }, { subscription: 'nile' }];
const filter = "startswith(Name,'S2')";

/** Starts sinks with these rules, by name, and returns the positions and names that each receives. */
async function received(
  rules: Record<string, Partial<SinkDefinition>>,
  { start, isDone }: Pick<Awaited<ReturnType<typeof openSinkContext>>, 'start' | 'isDone'>,
) {
  const hook = await startHook();
  const target = webhookTarget(hook.url);
  const names = Object.keys(rules);
  start(...names.map((name) => definition(target, { name, ...rules[name] })));
  for (const name of names) await expect.poll(() => isDone(name)).toBe(true);
  const documents = hook.received
    .map(({ data }) => data)
    .toSorted((one, other) => one.position - other.position);
  return Object.fromEntries(
    names.map((name) => [name, documents.filter(({ sink }) => sink === name)]),
  );
}

describe('a sink', () => {
  it('receives what its subscriptions, events and filter select', async () => {
    const context = await openSinkContext();
    const { accept } = context;
    await accept({ value: record('S2A_1') }, alps);
    await accept({ value: record('S2A_2'), SubscriptionEvent: 'deleted' }, alps);
    await accept({ value: record('S1A_3') }, alps);
    await accept({ value: record('S2A_4') }, nile);
    await accept({ value: null, Value: record('S2A_5') }, alps);
    await accept({ value: null, ProductName: 'S2A_6' }, alps);
    const got = await received(
      {
        subscriptions: { subscriptions: ['nile', 'other'] },
        events: { events: ['deleted', 'modified'] },
        filter: { subscriptions: ['alps'], events: ['created'], filter },
        every: {},
      },
      context,
    );
    const positions = Object.entries(got).map(([sink, all]) => [sink, all.map((d) => d.position)]);
    expect(Object.fromEntries(positions)).toEqual({
      ...{ subscriptions: [4], events: [2], filter: [1, 5], every: [1, 2, 3, 4, 5, 6] },
    });
  });

  it('receives the right record of each of several notifications of one product in one body', async () => {
    const context = await openSinkContext();
    const dates = ['2026-11-20T06:00:01Z', '2026-11-20T06:00:02Z', '2026-11-20T06:00:03Z'];
    const made = dates.map((NotificationDate, i) => {
      const { AckId: _, ...fields } = notification(1, { NotificationDate });
      return { ...fields, value: record(`S${1 + (i % 2)}A_${i}`) };
    });
    const changed = { ...made[2], SubscriptionId: 'another', value: record('S2A_3') };
    const undated = ['S1A_4', 'S2A_5'].map((Name) => {
      const { AckId: _, NotificationDate: __, ...fields } = notification(1);
      return { ...fields, value: record(Name) };
    });
    const other = notification(2, { value: record('S2A_6') });
    await context.store.accept(delivery([...made, changed, ...undated, other]));
    const got = await received({ every: {}, filter: { filter } }, context);
    const names = (sink: string) => got[sink]?.map((one) => `${one.position} ${one.value?.Name}`);
    const all = ['1 S1A_0', '2 S2A_1', '3 S1A_2', '4 S2A_3', '5 S1A_4', '6 S2A_5', '7 S2A_6'];
    expect(names('every')).toEqual(all);
    expect(names('filter')).toEqual(all.filter((one) => one.includes('S2')));
  });

  it('that is new starts with new notifications, and continues there after a restart', async () => {
    const { accept, startSink, isDone, hook } = await openHookContext();
    const [now, empty] = [{ startAt: 'now' }, { name: 'empty', startAt: 'now' }] as const;
    const first = startSink(empty);
    await isDone('empty');
    await first.stop();
    await accept();
    const second = startSink(now);
    await isDone();
    expect(hook.received).toEqual([]);
    await second.stop();
    await accept();
    for (const rules of [now, empty]) startSink(rules);
    await isDone();
    await isDone('empty');
    const got = hook.received.map(({ data }) => `${data.sink} ${data.position}`);
    expect(got.toSorted()).toEqual(['empty 1', 'empty 2', 'sink 2']);
  });

  it('does not run when another one cannot start', async () => {
    const { context, accept, pass, store, hook } = await openHookContext();
    const target = webhookTarget(hook.url);
    const definitions = [definition(target), definition(target, { name: 'odd', filter: 'Naem' })];
    expect(() => startSinks(definitions, context)).toThrow('One error in the filter');
    await accept();
    await pass();
    expect(await store.cursor('sink:sink')).toBeNull();
  });

  it('at rest continues at once after a change, also by another process', async () => {
    // Time does not pass between a change and the delivery.
    const { accept, startSink, pass, hook, dataDir } = await openHookContext();
    startSink();
    await pass();
    await accept();
    await expect.poll(() => hook.positions()).toEqual([1]);
    await pass();
    const other = await openStore({ dataDir });
    await other.accept(delivery(notification(2)));
    await expect.poll(() => hook.positions()).toEqual([1, 2]);
    await other.close();
  });

  it('that acknowledges nothing has a limited number of items, and the rest waits in the log', async () => {
    const context = await openHookContext(answering(500));
    const { acceptMany, startSink, waiting, store, time, pass, hook } = context;
    const all = sinkWaitingMax + 150;
    await acceptMany(all);
    startSink({ concurrency: 64 });
    await time.runUntil(async () => (await waiting()) === sinkWaitingMax);
    await pass();
    expect(await waiting()).toBe(sinkWaitingMax);
    expect(await store.cursor('sink:sink')).toBe(sinkWaitingMax);
    hook.change(() => undefined);
    await context.isDone();
    expect(new Set(hook.positions()).size).toBe(all);
  });
});

/** A record of a product that was published this many days after the end of sensing. */
const aged = (days: number, name = 'S2A_1') => ({
  ...record(name),
  ContentDate: { Start: '2025-12-31T23:00:00Z', End: '2026-01-01T00:00:00Z' },
  PublicationDate: new Date(Date.UTC(2026, 0, 1 + days)).toISOString(),
});

describe('the maximum age of a sink', () => {
  const maxAgeUs = 30 * dayUs;

  it('leaves out older products, counts those that match, also after a restart, but not again in a replay', async () => {
    const { accept, startSink, isDone, store, hook, replay, isReplayed } = await openHookContext();
    const tooOld = async () => (await store.sinks.counts())[0]?.tooOld;
    const { PublicationDate: _, ...undated } = aged(31, 'S2A_5');
    for (const value of [aged(1), aged(31), aged(30), aged(400), undated, aged(31, 'S1A_6')])
      await accept({ value });
    await accept({ value: null });
    const rules = { maxAgeUs, filter: "not startswith(Name,'S1')" };
    const first = startSink({ ...rules, filter: '' });
    await isDone();
    expect(hook.positions().toSorted()).toEqual([1, 3, 5, 7]);
    expect(await tooOld()).toBe(3);
    await first.stop();
    hook.received.splice(0);
    for (const value of [aged(31), aged(2), aged(31, 'S1A_10')]) await accept({ value });
    startSink(rules);
    await isDone();
    expect(hook.positions()).toEqual([9]);
    expect(await tooOld()).toBe(4);
    hook.received.splice(0);
    await replay({ lastPosition: 6 });
    await isReplayed();
    await isDone();
    expect(hook.positions().toSorted()).toEqual([1, 3, 5]);
    expect(await tooOld()).toBe(4);
  });
});

/** Four notifications that wait for a sink that was down and has stopped. */
async function openWaiting() {
  const context = await openHookContext(answering(500));
  const { accept, startSink, waiting, time, hook } = context;
  await accept({ value: { Name: 'S1A_1' } }, alps);
  await accept({ value: { Name: 'S2A_2' }, SubscriptionEvent: 'deleted' }, nile);
  await accept({ value: aged(31, 'S2A_3') }, nile);
  await accept({ value: null, ProductName: 'S2A_4' }, nile);
  const first = startSink();
  await time.runUntil(async () => (await waiting()) === 4);
  await first.stop();
  hook.received.splice(0);
  hook.change(() => undefined);
  return context;
}

describe('an item that waited while the rules of its sink changed', () => {
  it('is checked by the new rules before its delivery', async () => {
    const { hook, startSink, isDone, items } = await openWaiting();
    startSink({ filter, subscriptions: ['nile'] });
    await isDone();
    expect([...new Set(hook.positions())].toSorted()).toEqual([2, 3]);
    expect(await items('dead')).toEqual([]);
  });

  it('is counted if it is too old by the new rules', async () => {
    const { hook, startSink, isDone, store } = await openWaiting();
    startSink({ maxAgeUs: dayUs, events: ['created'] });
    await isDone();
    expect([...new Set(hook.positions())].toSorted()).toEqual([1, 4]);
    expect(await store.sinks.counts()).toMatchObject([{ tooOld: 1 }]);
  });

  it('is delivered nevertheless when a replay has queued it', async () => {
    const { hook, startSink, isDone, replay, store } = await openWaiting();
    const { id: replayId } = await replay({ lastPosition: 1 });
    await queued(store, ['product-1'], { sink: 'sink', replayId });
    startSink({ subscriptions: ['nile'] });
    await isDone();
    const got = hook.received.map(({ data }) => `${data.position} ${data.replay}`);
    expect(got.toSorted()).toEqual(['1 true', '2 false', '3 false', '4 false']);
  });
});

describe('a replay', () => {
  it('delivers a part of the log again, marked, by its own filter and the sink’s', async () => {
    const { accept, startSink, isDone, replay, isReplayed, time, hook } = await openHookContext();
    const receivedAtUs: number[] = [];
    for (const name of ['S2A_1', 'S2A_2', 'S1A_3', 'S2B_4', 'S2A_5', 'S2A_6', 'S2A_7']) {
      receivedAtUs.push(time.nowUs());
      await accept({ value: record(name) });
      time.advance(1_000);
    }
    startSink({ filter });
    await isDone();
    expect(hook.positions().toSorted()).toEqual([1, 2, 4, 5, 6, 7]);
    const before = new Map(hook.received.map(({ data }) => [data.position, data.id]));
    const [, sinceUs = null, , , , untilUs = null] = receivedAtUs;
    const { id } = await replay({ filter: "contains(Name,'A_')", sinceUs, untilUs });
    await isReplayed();
    await isDone();
    const again = hook.received.slice(6).map(({ data }) => data);
    expect(again.map(({ position }) => position).toSorted()).toEqual([2, 5]);
    for (const data of again) {
      const notificationId = before.get(data.position);
      expect(data).toMatchObject({ replay: true, notificationId });
      expect(data.id).toBe(`${notificationId}_replay_${id}`);
    }
  });

  it('is queued in few transactions, none of them while many items wait', async () => {
    const context = await openHookContext(answering(500));
    const { acceptMany, startSink, replay, isReplayed, store, waiting, pass, hook } = context;
    await acceptMany(200);
    const products = Array.from({ length: 40 }, (_, i) => `product-${i + 1}`);
    await queued(store, products, { sink: 'sink', upTo: 200 });
    const enqueue = vi.spyOn(store.sinks, 'enqueue');
    await replay({ filter: "Name eq 'none'" });
    startSink();
    await pass();
    expect(await waiting()).toBe(40);
    expect(enqueue).not.toHaveBeenCalled();
    hook.change(() => undefined);
    await isReplayed();
    // One for 200 rows without a match, and one for the end.
    expect(enqueue.mock.calls.length).toBeLessThanOrEqual(2);
  });

  it('queues a few items at a time, so that a new notification does not wait', async () => {
    const context = await openHookContext(answering(500));
    const { acceptMany, accept, startSink, time, waiting, pass, hook, isDone } = context;
    await acceptMany(200);
    // The sink has already read the whole log.
    await queued(context.store, [], { sink: 'sink', upTo: 200 });
    await context.replay();
    startSink();
    await time.runUntil(async () => (await waiting()) === 50);
    await pass();
    expect(await waiting()).toBe(50);
    await accept();
    await time.runUntil(async () => (await waiting()) === 51);
    hook.change(() => undefined);
    await isDone();
    await context.isReplayed();
    await isDone();
    expect(hook.received.length).toBeGreaterThanOrEqual(201);
    const delivered = new Set(hook.positions());
    expect(delivered.size).toBe(201);
  });
});
