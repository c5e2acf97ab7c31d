/** Long reads and large changes in many short steps, so that none holds intake up. */

/** Rows of one read; what a page costs stays small against what a commit costs. */
const pageRowsMax = 1000;

/** Rows that one transaction changes at the most, some 20 ms; more than these wait for the next one. */
export const changedMax = 5_000;

/**
 * Asks for page after page, each from where the one before ended, until a page is not full or the
 * limit is reached. Stopping early asks for nothing more.
 */
export async function* pages<Row>(
  limit: number | undefined,
  read: (rowsMax: number, last: Row | undefined) => Promise<Row[]>,
): AsyncGenerator<Row> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  let last: Row | undefined;
  while (left > 0) {
    const rowsMax = Math.min(left, pageRowsMax);
    const page = await read(rowsMax, last);
    yield* page;
    if (page.length < rowsMax) return;
    last = page.at(-1);
    left -= page.length;
  }
}

/** Repeats a change of at most `changedMax` rows until none is left. Resolves with how many they were. */
export async function changeAll(changeSome: () => Promise<number>): Promise<number> {
  let changed = 0;
  for (;;) {
    const count = await changeSome();
    changed += count;
    if (count < changedMax) return changed;
  }
}
