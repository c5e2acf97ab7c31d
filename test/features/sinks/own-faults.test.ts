/**
 * Problems on our side: an unreadable body, a clock that is set back, many dead letters at once.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/terms/app-error.ts';
import { sinkWaitingMax } from '../../../src/features/sinks/terms.ts';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import { replaceBody } from '../../helpers/replace-body.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { startHook } from './hook-server.ts';
import { openSinkContext } from './sink-context.ts';
import { definition } from './sink-definition.ts';
import { createVirtualTime } from './virtual-time.ts';

const webhook = (url: string) => ({ kind: 'webhook', url, secret: null, ca: null }) as const;

describe('a notification with an unreadable body', () => {
  it.each([
    ['a sink without a filter', ''],
    ['a sink with a filter', "startswith(Name,'S2')"],
  ])(
    'is a dead letter of %s after some attempts, and the others are delivered',
    async (_what, filter) => {
      const time = createVirtualTime();
      const hook = await startHook();
      const { accept, start, items, context, store } = await openSinkContext(time);
      for (let i = 0; i < 3; i += 1) await accept({ value: { Name: 'S2A_1' } });
      context.log = {
        find: (query) => store.find(query),
        lastPosition: () => store.lastPosition(),
        cursor: (reader) => store.cursor(reader),
        body: (position) => {
          if (position !== 2) return store.body(position);
          throw new AppError('unavailable', 'the disk is broken here');
        },
      };
      start(definition(webhook(hook.url), { filter, attemptsMax: 3, timeoutMs: 3_600_000 }));
      await time.runUntil(async () => (await items('dead')).length === 1, { stepMs: 500 });
      expect(await items('dead')).toMatchObject([
        { position: 2, attempts: 3, error: expect.stringContaining('the disk is broken here') },
      ]);
      expect(hook.positions().toSorted()).toEqual([1, 3]);
    },
  );
});

it('a body that the store temporarily cannot read uses no attempt', async () => {
  const time = createVirtualTime();
  const hook = await startHook();
  const { accept, start, items, isDone, context, store } = await openSinkContext(time);
  await accept();
  let failures = 3;
  context.log = {
    find: (query) => store.find(query),
    lastPosition: () => store.lastPosition(),
    cursor: (reader) => store.cursor(reader),
    body: async (position) => {
      failures -= 1;
      if (failures < 0) return store.body(position);
      throw new AppError('unavailable', 'The store did not answer in time.');
    },
  };
  start(definition(webhook(hook.url), { attemptsMax: 1, timeoutMs: 3_600_000 }));
  await time.runUntil(() => isDone(), { stepMs: 500 });
  expect(await items('dead')).toEqual([]);
  expect(hook.positions()).toEqual([1]);
});

describe('records that cannot be written as JSON again', () => {
  const deep = 20_000;
  const targets = {
    webhook: async () => {
      const hook = await startHook();
      return { target: webhook(hook.url), positions: hook.positions };
    },
    command: async () => {
      const file = join(temporaryDirectory(), 'got');
      const command = ['sh', '-c', `cat >> ${file}`];
      const lines = () => readFileSync(file, 'utf8').trimEnd().split('\n');
      const positions = () => lines().map((line): number => JSON.parse(line).position);
      return { target: { kind: 'command', command } as const, positions };
    },
  };

  it.each(['webhook', 'command'] as const)(
    'are dead letters of a %s after their attempts, with the reason; the others are delivered',
    async (kind) => {
      const time = createVirtualTime();
      const { accept, start, items, isDone, dataDir, store } = await openSinkContext(time);
      const { target, positions } = await targets[kind]();
      for (let i = 0; i < 10; i += 1) await accept();
      for (const row of (await collect(store.find({ order: 'oldest' }))).slice(0, 8)) {
        const record = `{"Id":"${row.productId}","Checksum":${'['.repeat(deep)}${']'.repeat(deep)}}`;
        const fields = `"ProductId":"${row.productId}","SubscriptionEvent":"created"`;
        replaceBody(dataDir, row.position, Buffer.from(`{${fields},"value":${record}}`));
      }
      start(definition(target, { attemptsMax: 2, concurrency: 2, timeoutMs: 3_600_000 }));
      await time.runUntil(() => isDone(), { stepMs: 500 });
      expect(positions().toSorted((a, b) => a - b)).toEqual([9, 10]);
      const dead = await items('dead');
      expect(dead.map(({ position }) => position).toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      for (const one of dead) {
        expect(one).toMatchObject({ attempts: 2, error: expect.stringMatching(/call stack/) });
      }
    },
  );
});

it('a filter that meets a body that is not JSON blocks nothing', async () => {
  const time = createVirtualTime();
  const hook = await startHook();
  const { accept, start, dataDir } = await openSinkContext(time);
  for (let i = 0; i < 3; i += 1) await accept({ value: { Name: 'S2A_1' } });
  replaceBody(dataDir, 1, Buffer.from('not json'));
  const fields = { filter: "startswith(Name,'S2')", timeoutMs: 3_600_000 };
  const beginUs = time.nowUs();
  start(definition(webhook(hook.url), fields));
  await time.runUntil(() => hook.received.length === 2);
  expect(time.nowUs() - beginUs).toBeLessThan(200_000_000);
});

describe('a clock that is set back by hours', () => {
  it.each([
    ['403', 403, {}],
    ['429 with Retry-After', 429, { 'retry-after': '3000' }],
    ['400', 400, {}],
  ])('delays neither a replay nor an item postponed after %s', async (_what, status, headers) => {
    const time = createVirtualTime();
    let aheadUs = 5 * 3_600_000_000;
    const nowUs = () => time.nowUs() + aheadUs;
    const hook = await startHook({
      answer: (_hooked, response) => void response.writeHead(status, headers).end(),
    });
    const { accept, start, items, isDone, store } = await openSinkContext({ ...time, nowUs });
    await accept({ ProductId: 'one' });
    start(definition(webhook(hook.url), { timeoutMs: 3_600_000, attemptsMax: 50 }));
    await time.runUntil(async () => (await items('waiting'))[0]?.error != null);
    aheadUs = 0;
    const beginUs = time.nowUs();
    hook.change(() => undefined);
    await accept({ ProductId: 'two' });
    await time.runUntil(() => isDone());
    const bounds = { sinceUs: null, untilUs: null, afterPosition: 1, lastPosition: 2 };
    await store.sinks.addReplay({ sink: 'sink', filter: '', requestedAtUs: nowUs(), ...bounds });
    await time.runUntil(() => hook.received.some(({ data }) => data.replay));
    expect(time.nowUs() - beginUs).toBeLessThan(600_000_000);
  });
});

describe('retried dead letters', () => {
  it('do not prevent reading new notifications, however many they are', async () => {
    const hook = await startHook({
      answer: (_hooked, response) => void response.writeHead(500).end(),
    });
    const { start, store, context } = await openSinkContext();
    const all = sinkWaitingMax + 100;
    for (let first = 1; first <= all; first += 100) {
      const made = Array.from({ length: 100 }, (_, i) => notification(first + i));
      await store.accept(delivery(made));
    }
    const positions = Array.from({ length: all }, (_, i) => i + 1);
    const rows = positions.map((position) => ({ position, productId: `product-${position}` }));
    const read = { sink: 'sink', replayId: null, after: 0, upTo: all, atUs: context.nowUs() };
    await store.sinks.enqueue({ ...read, items: rows });
    const due = await store.sinks.due({ sink: 'sink', nowUs: context.nowUs(), limit: all });
    await store.sinks.settle(due.map(({ id }) => ({ id, outcome: 'dead', error: 'no' })));
    start(definition(webhook(hook.url)));
    await store.accept(delivery(notification(all + 1)));
    await expect.poll(() => store.cursor('sink:sink')).toBe(all + 1);
    await store.sinks.retry({ sink: 'sink', ids: 'all', nowUs: context.nowUs() });
    await store.accept(delivery(notification(all + 2)));
    await expect.poll(() => store.cursor('sink:sink')).toBe(all + 2);
    expect((await store.sinks.counts())[0]).toMatchObject({ waiting: all + 2, dead: 0 });
  });
});
