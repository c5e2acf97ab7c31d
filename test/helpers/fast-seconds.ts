/** Intervals whose time a test advances. */
import { onTestFinished, vi } from 'vitest';

/** Replaces `setInterval`; returns a function that ends this, which is also called after the test. */
export function fakeIntervals(): () => void {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const end = () => void vi.useRealTimers();
  onTestFinished(end);
  return end;
}

/**
 * Lets seconds of `setInterval` pass faster on the main thread than on others, such as the silence of a thread. Returns
 * a function that ends it, which is also called after the test.
 */
export function passSeconds(): () => void {
  const { setInterval: every, clearInterval: stop } = globalThis;
  const real = fakeIntervals();
  const timer = every(() => vi.advanceTimersByTime(1_000), 250);
  const end = () => {
    stop(timer);
    real();
  };
  onTestFinished(end);
  return end;
}
