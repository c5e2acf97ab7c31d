/** Returns unused memory of V8 to the system while a process is idle. V8 itself does so only when memory is short. */
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Growth of the heap since the last collection, above which another one is useful. */
const growthBytesMin = 2_000_000;

/** Returns a function that collects the garbage of this thread, in 10 to 80 ms, if there may be much, or if it must. */
export function createCollector(): (must?: boolean) => void {
  let usedBytes = 0;
  return (must = false) => {
    const { used_heap_size: nowBytes } = getHeapStatistics();
    if (!must && nowBytes - usedBytes < growthBytesMin) return;
    // Node has no function for this without a flag.
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    collect();
    usedBytes = getHeapStatistics().used_heap_size;
  };
}

/** Interval at which idleness is checked: garbage of background jobs, such as pages of the catalogue, is collected. */
const intervalMs = 5_000;
/** Number of intervals after which garbage is collected without growth: data may have been released. */
const roundsMax = 12;

/** Collects garbage when `note` was not called for an interval, until closed. */
export function startIdleCollection(closers: { add(close: () => void): void }): { note(): void } {
  const collect = createCollector();
  let isIdle = true;
  let rounds = 0;
  const timer = setInterval(() => {
    rounds += 1;
    if (isIdle) collect(rounds % roundsMax === 0);
    isIdle = true;
  }, intervalMs).unref();
  closers.add(() => clearInterval(timer));
  return {
    note: () => {
      isIdle = false;
    },
  };
}
