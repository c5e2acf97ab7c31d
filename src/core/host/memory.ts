/** Returns unused memory of V8 to the system while a process is idle. V8 itself does so only when memory is short. */
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Growth of the heap since the last collection, above which another one is useful. */
const growthBytesMin = 2_000_000;

/** Returns a function that collects the garbage of this thread, in 10 to 80 ms, if the heap has grown or if forced. */
export function createCollector(): (isForced?: boolean) => void {
  let usedBytes = 0;
  return (isForced = false) => {
    const { used_heap_size: nowBytes } = getHeapStatistics();
    if (!isForced && nowBytes - usedBytes < growthBytesMin) return;
    // Node has no function for this without a flag.
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    collect();
    usedBytes = getHeapStatistics().used_heap_size;
  };
}

/** Interval at which idleness is checked: garbage of background jobs, such as pages of the catalogue, is collected. */
const intervalMs = 5_000;
/** Number of idle intervals after which garbage is also collected without growth: data may have been released. */
const forcedAfter = 12;

/** Collects garbage when `note` was not called for an interval, until closed. */
export function startIdleCollection(closers: { add(close: () => void): void }): { note(): void } {
  const collect = createCollector();
  let isIdle = true;
  let idleIntervals = 0;
  const timer = setInterval(() => {
    if (isIdle) {
      idleIntervals += 1;
      collect(idleIntervals % forcedAfter === 0);
    }
    isIdle = true;
  }, intervalMs).unref();
  closers.add(() => clearInterval(timer));
  return {
    note: () => {
      isIdle = false;
    },
  };
}
