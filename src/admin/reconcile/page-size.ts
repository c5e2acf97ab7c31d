/** How many records are asked for at once: fewer when the catalogue cannot manage, more again later. */

/** `$top` (facts, filters 1: 1,000 at most). At least two each: a page repeats a record of the last. */
export const pageSizes: readonly number[] = [1_000, 250, 50];

/** Failures in a row at one size until the next is tried. */
const failuresMax = 2;

/** Good pages in a row until the size before is tried again. */
const goodPagesMin = 5;

export interface PageSize {
  current(): number;
  failed(): void;
  succeeded(): void;
}

export function createPageSize(sizes: readonly number[]): PageSize {
  let index = 0;
  let failures = 0;
  let goodPages = 0;

  function change(by: 1 | -1) {
    index = Math.max(0, Math.min(sizes.length - 1, index + by));
    failures = 0;
    goodPages = 0;
  }

  return {
    current: () => sizes[index] ?? 1_000,
    failed: () => {
      goodPages = 0;
      failures += 1;
      if (failures >= failuresMax) change(1);
    },
    succeeded: () => {
      failures = 0;
      goodPages += 1;
      if (goodPages >= goodPagesMin) change(-1);
    },
  };
}
