/** Splits long reads and large changes into short steps, so that none delays intake. */

/** Maximum rows of one read: cheap compared with a commit. */
const pageRowsMax = 1000;

/** Maximum rows that one transaction changes, which takes about 20 ms. */
export const changedMax = 5_000;

/**
 * Reads page after page, each from the last row of the previous one, until a page is not full or the
 * limit is reached.
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

/** Repeats a change of at most `changedMax` rows until none is left. Resolves with the number of changed rows. */
export async function changeAll(changeSome: () => Promise<number>): Promise<number> {
  let changed = 0;
  for (;;) {
    const count = await changeSome();
    changed += count;
    if (count < changedMax) return changed;
  }
}
