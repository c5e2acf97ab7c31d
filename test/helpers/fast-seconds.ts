/** Seconds of `setInterval` that pass faster on the main thread than on others, such as the silence of a thread. */
import { onTestFinished, vi } from 'vitest';

export function passSeconds(): void {
  const { setInterval: every, clearInterval: stop } = globalThis;
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const timer = every(() => vi.advanceTimersByTime(1_000), 250);
  onTestFinished(() => {
    stop(timer);
    vi.useRealTimers();
  });
}
