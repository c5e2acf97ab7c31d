/** Number of records or entries of a page: fewer after failures, and for pages that are too large. */

/** Values of `$top` (facts, filters 1: maximum 1,000). */
export const pageSizes: readonly number[] = [1_000, 250, 50];

/** Smaller values, only for pages that are too large. Minimum 2: a page repeats a record of the one before. */
export const largeRecordSizes: readonly number[] = [10, 2];

/** Consecutive failures at one size before the next size is used. */
const failuresMax = 2;

/** Consecutive successes before the previous size is used again. */
const goodPagesMin = 5;

export type PageSize = ReturnType<typeof createPageSize>;

/** `sizes`, largest first, are used after failures; `smallSizes` after pages that are too large. */
export function createPageSize(sizes: readonly number[], smallSizes: readonly number[] = []) {
  const all = [...sizes, ...smallSizes.filter((size) => size < Math.min(...sizes))];
  let index = 0;
  let failures = 0;
  let goodPages = 0;

  function change(to: number) {
    index = to;
    failures = 0;
    goodPages = 0;
  }
  const isSmallest = () => index >= all.length - 1;

  return {
    current: () => all[index] ?? 1_000,
    isSmallest,
    failed: () => {
      goodPages = 0;
      failures += 1;
      if (failures >= failuresMax) change(Math.max(index, Math.min(sizes.length - 1, index + 1)));
    },
    /** Selects the next size at once; returns false if there is none. */
    shrink: (): boolean => {
      if (isSmallest()) return false;
      change(index + 1);
      return true;
    },
    succeeded: () => {
      failures = 0;
      goodPages += 1;
      if (goodPages >= goodPagesMin) change(Math.max(0, index - 1));
    },
  };
}
