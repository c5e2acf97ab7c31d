import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { startIdleCollection } from '../../../src/core/host/serve-thread.ts';
import { fakeIntervals } from '../../helpers/fast-seconds.ts';

function openTimers() {
  fakeIntervals();
  const closers: (() => void)[] = [];
  return { closers, idle: startIdleCollection({ add: (close) => closers.push(close) }) };
}

it('garbage is collected after an interval without work, and not before', async () => {
  const { closers, idle } = openTimers();
  vi.advanceTimersByTime(5_000);
  const garbage = new WeakRef({ some: 'garbage' });
  const kept = Array.from({ length: 200_000 }, (_, i) => ({ i }));
  idle.note();
  // A weak reference keeps its object until the current turn ends.
  await nextTurn();
  vi.advanceTimersByTime(5_000);
  expect(garbage.deref()).toBeDefined();
  await nextTurn();
  vi.advanceTimersByTime(5_000);
  expect(garbage.deref()).toBeUndefined();
  expect(kept).toHaveLength(200_000);
  for (const close of closers) close();
  expect(vi.getTimerCount()).toBe(0);
});
