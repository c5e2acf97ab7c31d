/** Threads of the store that end while nothing uses them, and reads that are not repeated. */

import { expect, it, onTestFinished, vi } from 'vitest';
import { moduleFile, remote } from '../../src/core/host/rpc.ts';
import { StoreThread } from '../../src/store/engine/thread.ts';
import type { Reads } from '../../src/store/query-thread.ts';
import { rememberingReads } from '../../src/store/store.ts';
import { delivery, notification } from '../helpers/deliveries.ts';
import { fakeIntervals } from '../helpers/fast-seconds.ts';
import { expectRefused } from '../helpers/refusals.ts';
import { useRealThreads } from '../helpers/threads-in-process.ts';
import { openFile, openSqliteStore } from './sqlite-store.ts';

useRealThreads();

function openThread(dataDir: string, idleSeconds?: number) {
  const thread = new StoreThread(
    moduleFile('./query-thread', new URL('../../src/store/store.ts', import.meta.url).href),
    {
      ...{ dataDir, callTimeoutSeconds: Number.POSITIVE_INFINITY },
      ...(idleSeconds === undefined ? {} : { idleSeconds }),
    },
  );
  onTestFinished(() => thread.close());
  return thread;
}

const untilEnded = (thread: StoreThread) =>
  vi.waitFor(() => expect(thread.isRunning).toBe(false), 5_000);

it('a thread ends when idle, closes its files, and starts with the next call', async () => {
  const { store, dataDir } = await openSqliteStore();
  const thread = openThread(dataDir, 1);
  const { log } = remote<Reads>(thread);
  expect(await log.lastPosition()).toBe(0);
  await untilEnded(thread);
  await store.accept(delivery(notification(1)));
  const answers = await Promise.all([log.lastPosition(), log.counts()]);
  expect(answers).toMatchObject([1, { notifications: 1 }]);
  await untilEnded(thread);
  await thread.close();
  await expectRefused(log.lastPosition(), 'unavailable');
});

it('a thread does not end during a call', async () => {
  fakeIntervals();
  const thread = new StoreThread(new URL('late-answer-child.ts', import.meta.url), {
    ...{ dataDir: '', callTimeoutSeconds: Number.POSITIVE_INFINITY, idleSeconds: 5 },
  });
  onTestFinished(() => thread.close());
  const answer = thread.call('wait', []);
  vi.advanceTimersByTime(60_000);
  expect(thread.isRunning).toBe(true);
  expect(await Promise.all([thread.call('release', []), answer])).toEqual(['release', 'release']);
  vi.advanceTimersByTime(4_000);
  expect(thread.isRunning).toBe(true);
  vi.advanceTimersByTime(2_000);
  expect(thread.isRunning).toBe(false);
});

it('a read is repeated only after a change by this process or by another program', async () => {
  const { store, dataDir } = await openSqliteStore();
  const thread = openThread(dataDir);
  const call = vi.fn(thread.call.bind(thread));
  const names = new Set(['log.lastPosition', 'log.cursor']);
  const { log } = remote<Reads>(rememberingReads({ call }, names, store.activity));
  const read = async () => [await log.lastPosition(), await log.cursor('one')];
  const untilRemembered = () =>
    vi.waitFor(async () => {
      call.mockClear();
      await read();
      expect(call).not.toHaveBeenCalled();
    });
  await untilRemembered();
  await store.accept(delivery(notification(1)));
  expect(await read()).toEqual([1, null]);
  await store.moveCursor('one', 1, 0);
  expect(await read()).toEqual([1, 1]);
  await untilRemembered();
  // Another connection stands for another program.
  openFile(dataDir).exec("UPDATE reader_cursor SET position = 7 WHERE reader = 'one'");
  await vi.waitFor(async () => expect(await read()).toEqual([1, 7]));
});
