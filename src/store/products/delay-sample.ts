/** Gathers delays, and tells their percentiles. */
import type { DelayPercentiles } from '../../domain/products.ts';

export interface DelaySample {
  add(delayUs: number): void;
  /** Null while nothing was added. */
  percentiles(): DelayPercentiles | null;
}

const firstRoom = 1_024;

/** Eight bytes for each delay, and at most as many again of room. */
export function createDelaySample(): DelaySample {
  let delaysUs = new Float64Array(firstRoom);
  let count = 0;
  return {
    add: (delayUs) => {
      if (count === delaysUs.length) {
        const larger = new Float64Array(2 * count);
        larger.set(delaysUs);
        delaysUs = larger;
      }
      delaysUs[count] = delayUs;
      count += 1;
    },
    percentiles: () => percentilesOf(delaysUs.subarray(0, count).sort()),
  };
}

/** By the nearest rank: the smallest delay that so many percent of all do not exceed. */
function percentilesOf(sortedUs: Float64Array): DelayPercentiles | null {
  const count = sortedUs.length;
  const atMs = (percent: number) => {
    const rank = Math.ceil((percent * count) / 100);
    return (sortedUs[rank - 1] ?? Number.NaN) / 1000;
  };
  if (count === 0) return null;
  return { count, p50Ms: atMs(50), p90Ms: atMs(90), p99Ms: atMs(99), maxMs: atMs(100) };
}
