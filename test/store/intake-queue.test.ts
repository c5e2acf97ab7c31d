import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { IntakeQueue } from '../../src/store/log/intake-queue.ts';
import { delivery, notification } from '../helpers/deliveries.ts';
import { expectRefused } from '../helpers/refusals.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('answers within 30 s while no commit ends, and drops what no commit contains', async () => {
  let commits = 0;
  const queue = new IntakeQueue({
    thread: { isRunning: true, call: () => Promise.reject(new Error('not in its own commit')) },
    commit: () => {
      commits += 1;
      return new Promise(() => undefined);
    },
    check: () => Promise.resolve(),
    deliveriesMax: 1,
    commitsMax: 2,
    nextCommitMin: 1,
  });
  const answers = [1, 2, 3].map((i) =>
    expectRefused(queue.accept(delivery(notification(i))), 'unavailable'),
  );
  const { bytes } = queue.size();
  await vi.advanceTimersByTimeAsync(0);
  const changed = expectRefused(queue.change({ op: 'any', args: [] }), 'unavailable');
  await vi.advanceTimersByTimeAsync(30_000);
  await Promise.all([...answers, changed]);
  expect(commits).toBe(2);
  // Those of two commits in progress stay.
  expect(queue.size().bytes).toBe((bytes * 2) / 3);
});
