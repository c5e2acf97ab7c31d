/** Streams a long answer as short reads. */

/** Rows of one read; what a page costs stays small against what a commit costs. */
const pageRowsMax = 1000;

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
