/** Seconds of `setInterval` that pass faster on the main thread than on others, such as the silence of a thread. */
import { onTestFinished, vi } from 'vitest';

/** Returns a function that ends it, which is also called after the test. */
export function passSeconds(): () => void {
  const { setInterval: every, clearInterval: stop } = globalThis;
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const timer = every(() => vi.advanceTimersByTime(1_000), 250);
  const end = () => {
    stop(timer);
    vi.useRealTimers();
  };
  onTestFinished(end);
  return end;
}
