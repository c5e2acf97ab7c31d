/**
 * The notifications that become items: subscriptions, events, filters, the start of a sink, and
 * replays.
 */
import { describe, expect, it } from 'vitest';
import { sinkWaitingMax } from '../../../src/features/sinks/terms.ts';
import { delivery, notification } from '../../helpers/deliveries.ts';
import { startHook } from './hook-server.ts';
import { openSinkContext } from './sink-context.ts';
import { definition } from './sink-definition.ts';
import { createVirtualTime, type VirtualTime } from './virtual-time.ts';

const webhook = (url: string) => ({ kind: 'webhook', url, secret: null, ca: null }) as const;
const record = (name: string) => ({ Id: 'an-id', Name: name });

/** Lets the sinks poll the log several times, every 0.2 s, and do their work. */
async function poll(time: VirtualTime): Promise<void> {
  let steps = 0;
  await time.runUntil(() => steps++ === 100, { stepMs: 50 });
}

describe('a sink', () => {
  it('receives what its subscriptions, events and filter select', async () => {
    const hook = await startHook();
    const { accept, start, isDone, store } = await openSinkContext();
    await accept({ value: record('S2A_1') }, { subscription: 'alps' });
    await accept(
      { value: record('S2A_2'), SubscriptionEvent: 'deleted' },
      { subscription: 'alps' },
    );
    await accept({ value: record('S1A_3') }, { subscription: 'alps' });
    await accept({ value: record('S2A_4') }, { subscription: 'nile' });
    await accept({ value: null, Value: record('S2A_5') }, { subscription: 'alps' });
    await accept({ value: null, ProductName: 'S2A_6' }, { subscription: 'alps' });
    // In an array, each item has its own record, not the first one.
    const [seven, eight] = [
      notification(7, { value: record('S1A_7') }),
      notification(8, { value: record('S2A_8') }),
    ];
    await store.accept(delivery([seven, eight], { subscription: 'alps' }));
    const all = ['subscriptions', 'events', 'filter', 'every'];
    start(
      definition(webhook(hook.url), { name: 'subscriptions', subscriptions: ['nile', 'other'] }),
      definition(webhook(hook.url), { name: 'events', events: ['deleted', 'modified'] }),
      definition(webhook(hook.url), {
        name: 'filter',
        subscriptions: ['alps'],
        events: ['created'],
        filter: "startswith(Name,'S2')",
      }),
      definition(webhook(hook.url), { name: 'every' }),
    );
    for (const name of all) await expect.poll(() => isDone(name)).toBe(true);
    const got = (sink: string) =>
      hook.received
        .filter(({ data }) => data.sink === sink)
        .map(({ data }) => data.position)
        .toSorted((a, b) => a - b);
    expect(got('subscriptions')).toEqual([4]);
    expect(got('events')).toEqual([2]);
    expect(got('filter')).toEqual([1, 5, 8]);
    expect(got('every')).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const names = hook.received
      .filter(({ data }) => data.sink === 'every' && data.position > 4)
      .map(({ data }) => data.value?.Name ?? null);
    expect(names.toSorted()).toEqual([null, 'S1A_7', 'S2A_5', 'S2A_8'].toSorted());
  });

  it('receives the right record of each of several notifications of one product in one body', async () => {
    const hook = await startHook();
    const { start, isDone, store } = await openSinkContext();
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
    await store.accept(delivery([...made, changed, ...undated]));
    start(
      definition(webhook(hook.url), { name: 'every' }),
      definition(webhook(hook.url), { name: 'filter', filter: "startswith(Name,'S2')" }),
    );
    for (const name of ['every', 'filter']) await expect.poll(() => isDone(name)).toBe(true);
    const got = (sink: string) => {
      const own = hook.received.filter(({ data }) => data.sink === sink);
      return own.map(({ data }) => `${data.position} ${data.value?.Name}`).toSorted();
    };
    const all = ['1 S1A_0', '2 S2A_1', '3 S1A_2', '4 S2A_3', '5 S1A_4', '6 S2A_5'];
    expect(got('every')).toEqual(all);
    expect(got('filter')).toEqual(all.filter((one) => one.includes('S2')));
  });

  it('that is new starts with new notifications, and continues there after a restart', async () => {
    const hook = await startHook();
    const { accept, start, isDone } = await openSinkContext();
    const now = definition(webhook(hook.url), { startAt: 'now' });
    const empty = definition(webhook(hook.url), { name: 'empty', startAt: 'now' });
    const first = start(empty);
    await expect.poll(() => isDone('empty')).toBe(true);
    await first.stop();
    await accept();
    const second = start(now);
    await expect.poll(() => isDone()).toBe(true);
    expect(hook.received).toEqual([]);
    await second.stop();
    await accept();
    start(now, empty);
    await expect.poll(() => isDone()).toBe(true);
    await expect.poll(() => isDone('empty')).toBe(true);
    const got = hook.received.map(({ data }) => `${data.sink} ${data.position}`);
    expect(got.toSorted()).toEqual(['empty 1', 'empty 2', 'sink 2']);
  });

  it('that acknowledges nothing has a limited number of items, and the rest waits in the log', async () => {
    const time = createVirtualTime();
    const hook = await startHook({
      answer: (_hooked, response) => void response.writeHead(500).end(),
    });
    const { start, store, isDone } = await openSinkContext(time);
    const all = sinkWaitingMax + 150;
    for (let first = 1; first <= all; first += 50) {
      const made = Array.from({ length: 50 }, (_, i) => notification(first + i));
      await store.accept(delivery(made));
    }
    start(definition(webhook(hook.url), { concurrency: 64, timeoutMs: 3_600_000 }));
    const waiting = async () => (await store.sinks.counts())[0]?.waiting;
    await time.runUntil(async () => (await waiting()) === sinkWaitingMax);
    await poll(time);
    expect(await waiting()).toBe(sinkWaitingMax);
    expect(await store.cursor('sink:sink')).toBe(sinkWaitingMax);
    hook.change(() => undefined);
    await time.runUntil(() => isDone(), { stepMs: 1_000 });
    expect(new Set(hook.positions()).size).toBe(all);
  });
});

describe('a replay', () => {
  it('delivers a part of the log again, marked, by its own filter and the sink’s', async () => {
    const hook = await startHook();
    const { accept, start, isDone, store, context } = await openSinkContext();
    for (const name of ['S2A_1', 'S2A_2', 'S1A_3', 'S2B_4', 'S2A_5']) {
      await accept({ value: record(name) });
    }
    start(definition(webhook(hook.url), { filter: "startswith(Name,'S2')" }));
    await expect.poll(() => isDone()).toBe(true);
    expect(hook.positions().toSorted()).toEqual([1, 2, 4, 5]);
    const before = new Map(hook.received.map(({ data }) => [data.position, data.id]));
    const replay = {
      sink: 'sink',
      filter: "contains(Name,'A_')",
      sinceUs: null,
      untilUs: null,
      afterPosition: 1,
      lastPosition: 5,
      requestedAtUs: context.nowUs(),
    };
    const { id } = await store.sinks.addReplay(replay);
    await expect.poll(() => store.sinks.replays({ all: false })).toEqual([]);
    await expect.poll(() => isDone()).toBe(true);
    const again = hook.received.slice(4).map(({ data }) => data);
    expect(again.map(({ position }) => position).toSorted()).toEqual([2, 5]);
    for (const data of again) {
      const notificationId = before.get(data.position);
      expect(data).toMatchObject({ replay: true, notificationId });
      expect(data.id).toBe(`${notificationId}_replay_${id}`);
    }
  });

  it('that is not acknowledged leaves half of the queue to new notifications', async () => {
    const time = createVirtualTime();
    const hook = await startHook({
      answer: (_hooked, response) => void response.writeHead(500).end(),
    });
    const { start, store } = await openSinkContext(time);
    const all = sinkWaitingMax / 2 + 100;
    for (let first = 1; first <= all; first += 50) {
      const made = Array.from({ length: 50 }, (_, i) => notification(first + i));
      await store.accept(delivery(made));
    }
    // The sink has already read the whole log.
    await store.sinks.enqueue({
      ...{ sink: 'sink', replayId: null, after: 0, upTo: all, items: [], atUs: time.nowUs() },
    });
    const bounds = { sinceUs: null, untilUs: null, afterPosition: 0, lastPosition: all };
    const asked = { sink: 'sink', filter: '', requestedAtUs: time.nowUs() };
    await store.sinks.addReplay({ ...asked, ...bounds });
    start(definition(webhook(hook.url), { timeoutMs: 3_600_000 }));
    const waiting = async () => (await store.sinks.counts())[0]?.waiting;
    await time.runUntil(async () => (await waiting()) === sinkWaitingMax / 2);
    await poll(time);
    expect(await waiting()).toBe(sinkWaitingMax / 2);
    await store.accept(delivery(notification(all + 1)));
    await time.runUntil(async () => (await waiting()) === sinkWaitingMax / 2 + 1);
  });

  it('with an invalid filter is skipped, and logged once', async () => {
    const time = createVirtualTime();
    const hook = await startHook();
    const { accept, start, isDone, store, lines } = await openSinkContext(time);
    await accept();
    const bounds = { sinceUs: null, untilUs: null, afterPosition: 0, lastPosition: 1 };
    const asked = { sink: 'sink', requestedAtUs: time.nowUs(), ...bounds };
    await store.sinks.addReplay({ ...asked, filter: 'nonsense' });
    await store.sinks.addReplay({ ...asked, filter: '' });
    start(definition(webhook(hook.url), { timeoutMs: 3_600_000 }));
    await time.runUntil(() => hook.received.length === 2);
    await time.runUntil(() => isDone(), { stepMs: 1_000 });
    expect(hook.received.map(({ data }) => data.replay).toSorted()).toEqual([false, true]);
    expect(lines.filter(({ level }) => level === 'error')).toMatchObject([
      { message: 'invalid filter of a replay' },
    ]);
  });
});
