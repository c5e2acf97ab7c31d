/** Returns unused memory of V8 to the system while a process is idle. V8 itself does so only when memory is short. */
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Returns a function that collects the garbage of this thread, in 10 to 80 ms, unless the heap has grown by less since
 * the last time.
 */
export function createCollector(growthBytesMin = 1_500_000): () => void {
  let usedBytes = 0;
  return () => {
    const { used_heap_size: nowBytes } = getHeapStatistics();
    if (nowBytes - usedBytes < growthBytesMin) return;
    // Node has no function for this without a flag.
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    collect();
    usedBytes = getHeapStatistics().used_heap_size;
  };
}

/** Interval at which idleness is checked. */
const intervalMs = 60_000;

/** Collects garbage when `note` was not called for an interval, until closed. */
export function startIdleCollection(closers: { add(close: () => void): void }): { note(): void } {
  // Without growth too: data may have been released.
  const collect = createCollector(0);
  let isIdle = true;
  const timer = setInterval(() => {
    if (isIdle) collect();
    isIdle = true;
  }, intervalMs).unref();
  closers.add(() => clearInterval(timer));
  return {
    note: () => {
      isIdle = false;
    },
  };
}
