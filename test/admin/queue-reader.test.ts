/** Intake of a queue of the sandbox: what is stored, in which order, and what is acknowledged when. */

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { PullQueue } from '../../src/admin/pull-queue.ts';
import { openPullQueue } from '../../src/admin/queue-client.ts';
import { AppError } from '../../src/core/terms/app-error.ts';
import { openPullSetUp, wrapped } from './queue-set-up.ts';

/** A queue that the program never acknowledges, as if it was killed before. */
const cutOff = (queue: PullQueue) =>
  wrapped(queue, (call) => {
    if (call === 'acknowledge') throw new AppError('unavailable', 'The process was killed.');
  });

describe('reading a queue', () => {
  it('stores every entry once, in order, with its exact bytes, and then acknowledges its page', async () => {
    const { sandbox, queue, id, drain, rows, length, store, published } = await openPullSetUp();
    await sandbox.publishNow(45);
    const [first] = (await queue.read({ id, entriesMax: 1 })).entries;
    const stored: number[] = [];
    const watched = wrapped(queue, async (call) => {
      if (call === 'acknowledge') stored.push(await store.lastPosition());
    });
    await drain({ queue: watched });
    expect(stored).toEqual([20, 40, 45]);
    expect(length()).toBe(0);
    const all = await rows();
    expect(all.map(({ ackId }) => ackId)).toEqual(published());
    expect(all[0]).toMatchObject({ subscription: 'alps', source: 'pull', timesSeen: 1 });
    expect(Buffer.from(await store.body(1))).toEqual(Buffer.from(first?.bytes ?? []));
    expect(sandbox.totals()).toMatchObject({ published: 45, delivered: 45, lost: 0 });
  });

  it('acknowledges nothing when a notification cannot be stored', async () => {
    const { sandbox, store, runUntil, length, rows } = await openPullSetUp();
    await sandbox.publishNow(5);
    let calls = 0;
    const full = new AppError('unavailable', 'The disk is full.');
    const intake = {
      accept: (delivery: Parameters<typeof store.accept>[0]) => {
        calls += 1;
        return calls === 3 ? Promise.reject(full) : store.accept(delivery);
      },
    };
    const reader = await runUntil(() => true, { intake });
    expect(length()).toBe(5);
    expect(reader.state()).toMatchObject({ failure: 'The disk is full.', entries: 0 });
    await runUntil(() => length() === 0);
    expect((await rows()).map(({ timesSeen }) => timesSeen)).toHaveLength(5);
  });

  it('quarantines entries that are no notifications, and acknowledges them with the rest', async () => {
    const { sandbox, queue, store, runUntil, drain, rows, length } = await openPullSetUp();
    await sandbox.publishNow(2);
    sandbox.faults.change({ eventAbsent: 1 });
    await sandbox.publishNow(2);
    sandbox.faults.change({ eventAbsent: 0 });
    await sandbox.publishNow(2);
    // Stored again after a failure of the acknowledgement: one quarantine entry each.
    await runUntil(() => true, { queue: cutOff(queue) });
    await drain();
    expect(length()).toBe(0);
    expect(await rows()).toHaveLength(4);
    expect(await store.counts()).toMatchObject({ quarantined: 2 });
    const entry = await store.quarantineEntry(1);
    expect(entry).toMatchObject({ source: 'pull', subscription: 'alps', reason: 'event-missing' });
    expect(entry.headers).toContain('request-id');
  });

  it('stores a page only once if it was not acknowledged, also without the records after three days', async () => {
    const { sandbox, queue, runUntil, drain, rows, published, store } = await openPullSetUp();
    await sandbox.publishNow(20);
    await runUntil(() => true, { queue: cutOff(queue) });
    sandbox.clock.advance(4 * 86_400_000);
    await sandbox.publishNow(2);
    await drain();
    const stored = await rows();
    expect(stored.map(({ ackId }) => ackId)).toEqual(published());
    expect(stored.map(({ timesSeen }) => timesSeen)).toEqual([...Array(20).fill(2), 1, 1]);
    expect(stored.every(({ productName }) => productName !== null)).toBe(true);
    expect(await store.counts()).toMatchObject({ quarantined: 0 });
  });
});

describe('an answer that cannot be used', () => {
  it.each(['rateLimited', 'serverError', 'connectionCut', 'ackAnswerLost', 'doubleRead'] as const)(
    '%s: everything is stored once, in order',
    async (fault) => {
      const { sandbox, runUntil, rows, published, length, drain } = await openPullSetUp({
        retryAfterSeconds: 7,
      });
      await sandbox.publishNow(30);
      await drain();
      await sandbox.publishNow(30);
      sandbox.service.change({ nextQueueCalls: { [fault]: 3 } });
      await runUntil(() => length() === 0);
      expect((await rows()).map(({ ackId }) => ackId)).toEqual(published());
      expect(sandbox.service.current().nextQueueCalls[fault]).toBeLessThan(3);
    },
  );

  it('waits as Retry-After requests, and doubles its own delay otherwise', async () => {
    const { sandbox, runUntil, waits, length } = await openPullSetUp({
      retryAfterSeconds: 30,
    });
    await sandbox.publishNow(1);
    sandbox.service.change({ nextQueueCalls: { rateLimited: 1, serverError: 3 } });
    await runUntil(() => length() === 0);
    expect(waits.slice(0, 4)).toEqual([31_000, 3_000, 6_000, 12_000]);
  });

  it('reads smaller pages after repeated failures, and at once when one is too large', async () => {
    const { sandbox, queue, runUntil, length, waits } = await openPullSetUp();
    /** Returns the sizes of the pages while reads with these properties fail. */
    const sizesOf = async (fails: (entriesMax: number, read: number) => boolean, facts = {}) => {
      const sizes: number[] = [];
      const read: PullQueue['read'] = async (options) => {
        if (!fails(options.entriesMax, sizes.push(options.entriesMax))) return queue.read(options);
        throw new AppError('unavailable', 'The page is too slow or too large.', { facts });
      };
      await runUntil(() => length() === 0, { queue: { ...queue, read } });
      return sizes;
    };
    await sandbox.publishNow(2);
    const small = await sizesOf((max) => max > 1, { isTooLarge: true });
    expect(small.slice(0, 3)).toEqual([20, 5, 1]);
    expect(waits).toHaveLength(1);
    await sandbox.publishNow(60);
    const sizes = await sizesOf((_, read) => read <= 4);
    expect(sizes.slice(0, 5)).toEqual([20, 5, 1, 1, 1]);
    // Large ones are read again later.
    expect(sizes.at(-1)).toBe(20);
  });

  it('quarantines an entry over the limits of a push, and reads the next ones', async () => {
    const { sandbox, queue, drain, length, rows, store } = await openPullSetUp();
    await sandbox.publishNow(5);
    const mebibyte = 2 ** 20;
    const values = [
      ['"x"', 'too-large', 30 * mebibyte],
      [`"${'n'.repeat(2 * mebibyte)}"`, 'too-large', 0],
      [`${'['.repeat(200)}${']'.repeat(200)}`, 'too-deep', 0],
      ['{"":'.repeat(101).concat('1', '}'.repeat(101)), 'too-deep', 0],
    ] as const;
    const read: PullQueue['read'] = async (options) => {
      const { entries, headers } = await queue.read(options);
      const changed = entries.map((entry, i) => {
        const [value = '1', , spaces = 0] = values[i] ?? [];
        const text = Buffer.from(entry.bytes).toString().replace('{', `{"more":${value},`);
        return { ...entry, bytes: Buffer.concat([Buffer.from(text), Buffer.alloc(spaces, ' ')]) };
      });
      return { entries: changed, headers };
    };
    await drain({ queue: { ...queue, read } });
    expect(length()).toBe(0);
    expect(await rows()).toHaveLength(1);
    const entries = await Promise.all([1, 2, 3, 4].map((id) => store.quarantineEntry(id)));
    expect(entries.map(({ reason }) => reason)).toEqual(values.map(([, reason]) => reason));
  });

  it('gives up a drain after repeated failures, and at once when the subscription is unknown', async () => {
    const { sandbox, drain, waits, deps, reader, id } = await openPullSetUp();
    sandbox.service.change({ nextQueueCalls: { serverError: 1_000 } });
    await expect(drain()).rejects.toMatchObject({ code: 'unavailable' });
    expect(waits).toHaveLength(7);
    sandbox.service.change({ nextQueueCalls: { serverError: 0 } });
    const unknown = {
      ...deps.queue,
      read: () => deps.queue.read({ id: id.replaceAll(/\w/g, '0'), entriesMax: 1 }),
    };
    await expect(
      reader({ queue: unknown }).drain(new AbortController().signal),
    ).rejects.toMatchObject({ code: 'not_found' });
  });
});

it('a refused login is repeated after ten minutes at the earliest', async () => {
  const { account, sandbox, deps, dataDir, nowUs, runUntil, waits } = await openPullSetUp();
  const { catalogueUrl } = sandbox;
  const wrong = { ...account, password: 'wrong' };
  const queue = openPullQueue(
    { account: wrong, dataDir: join(dataDir, 'other'), catalogueUrl, pullRequestsPerMinute: 1e9 },
    { nowUs, random: deps.random, fetch },
  );
  const logins = () => sandbox.requests().filter(({ path }) => path.endsWith('/token')).length;
  const beganMs = sandbox.clock.now();
  const reader = await runUntil(() => waits.length === 15, { queue });
  const minutes = (sandbox.clock.now() - beganMs) / 60_000;
  expect(reader.state().failure).toMatch(/password/i);
  expect(minutes).toBeGreaterThan(5);
  expect(logins()).toBeGreaterThan(0);
  expect(logins()).toBeLessThanOrEqual(1 + minutes / 10);
  // The readers of an account share the pause.
  const before = logins();
  await runUntil(() => waits.length === 16, { queue });
  expect(logins()).toBe(before);
});

it('an acknowledgement without effect is a failure with longer and longer delays', async () => {
  const { sandbox, queue, runUntil, drain, waits, rows } = await openPullSetUp();
  await sandbox.publishNow(40);
  const answered = { length: 20, lengthMax: 100_000 };
  const without: PullQueue = { read: queue.read, acknowledge: async () => answered };
  const reader = await runUntil(() => waits.length === 6, { queue: without });
  expect(reader.state().failure).toContain('again after they were acknowledged');
  expect(waits.at(-1)).toBeGreaterThan(20_000);
  await expect(drain({ queue: without })).rejects.toThrow('again after they were acknowledged');
  expect(sandbox.queues()[0]).toMatchObject({ length: 40 });
  expect(await rows()).toHaveLength(20);
});

it('entries without an AckId are stored once, and block the queue only when they fill a page', async () => {
  const { sandbox, queue, runUntil, drain, waits, rows } = await openPullSetUp();
  const read: PullQueue['read'] = async (options) => {
    const page = await queue.read(options);
    return { ...page, entries: page.entries.map((entry) => ({ ...entry, ackId: null })) };
  };
  const blocked = { queue: { ...queue, read } };
  await sandbox.publishNow(3);
  const open = await runUntil(() => waits.length === 4, blocked);
  expect(open.state()).toMatchObject({ failure: null, length: 0 });
  expect((await rows()).map(({ timesSeen }) => timesSeen)).toEqual([1, 1, 1]);
  await sandbox.publishNow(30);
  const reader = await runUntil(() => waits.length === 8, blocked);
  expect(reader.state().failure).toContain('cannot be acknowledged, and later entries');
  expect(await rows()).toHaveLength(20);
  // Nothing more can be read, so that the subscription can be replaced.
  await drain(blocked);
});

it('the interval of reads is none while the queue has entries, then longer up to a minute, and short again after an entry', async () => {
  const { sandbox, runUntil, waits } = await openPullSetUp();
  await sandbox.publishNow(100);
  let published = false;
  await runUntil(() => {
    if (waits.length === 12 && !published) void sandbox.publishNow(1);
    published = waits.length >= 12;
    return waits.length === 15;
  });
  expect(sandbox.queues()[0]).toMatchObject({ acknowledged: 101 });
  const before = waits.slice(0, 12);
  expect(before).toEqual(before.toSorted((a, b) => a - b));
  expect([before[0], before.at(-1), waits[12]]).toEqual([2_000, 60_000, 2_000]);
});

it('two readers of the same queue exclude each other: their pages alternate', async () => {
  const { sandbox, queue, drain, rows, published } = await openPullSetUp();
  await sandbox.publishNow(600);
  const pages: string[] = [];
  let isOpen = false;
  const exclusive = (reader: string) =>
    wrapped(queue, async (call) => {
      // A page of one reader must not begin within a page of the other.
      if (call === 'read' && isOpen) throw new Error('Two readers at once.');
      isOpen = call === 'read';
      if (call === 'acknowledge') pages.push(reader);
      // The latency of a catalogue: a waiting program asks for the lock every tenth of a second.
      if (call === 'read') await delay(40);
    });
  const drains = ['a', 'b'].map((reader) => drain({ queue: exclusive(reader) }));
  await Promise.all(drains).catch((error: unknown) => {
    // The last read of each finds nothing to acknowledge.
    if (sandbox.queues()[0]?.length !== 0) throw error;
  });
  expect((await rows()).map(({ ackId }) => ackId)).toEqual(published());
  // Neither has many pages in a row while both read.
  expect(pages).toHaveLength(30);
  const whileBoth = pages.join('').replaceAll(/^(a+|b+)|(a+|b+)$/g, '');
  expect(whileBoth.length).toBeGreaterThan(8);
  expect(whileBoth).not.toMatch(/aaaa|bbbb/);
});

it('the state of a queue has the length and the age of the oldest entry while it is read', async () => {
  const { sandbox, reader, nowUs } = await openPullSetUp();
  for (let hour = 0; hour < 4; hour += 1) {
    await sandbox.publishNow(30);
    sandbox.clock.advance(3_600_000);
  }
  const states: object[] = [];
  await reader().drain(new AbortController().signal, (state) => states.push(state));
  expect(states[0]).toMatchObject({ length: 100, lengthMax: 100_000 });
  // The date of an entry has up to six digits.
  const oldestUs = nowUs() - 4 * 3_600_000_000;
  expect(states[0]).toHaveProperty('oldestAtUs', expect.closeTo(oldestUs, -4));
  expect(states.at(-1)).toMatchObject({ length: 0, oldestAtUs: null, emptiedAtUs: nowUs() });
});

it('a queue that begins with an entry without an AckId is drained to its end after smaller pages', async () => {
  const { drain } = await openPullSetUp();
  const ackIds = [null, ...Array.from({ length: 30 }, (_, i) => `ack-${i}`)];
  const left = ackIds.map((ackId) => ({ bytes: Buffer.from('{}'), ackId, notificationUs: null }));
  let failures = 2;
  const queue: PullQueue = {
    read: async ({ entriesMax }) => {
      failures -= 1;
      if (failures >= 0) throw new AppError('unavailable', 'No answer.');
      return { entries: left.slice(0, entriesMax), headers: [] };
    },
    acknowledge: async ({ ackId }) => {
      left.splice(0, left.findIndex((one) => one.ackId === ackId) + 1);
      return { length: left.length, lengthMax: null };
    },
  };
  await drain({ queue });
  expect(left).toEqual([]);
});
