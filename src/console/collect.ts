/** Reads a stream of rows into a list. */

/** All of a stream, unless the signal ends it before. */
export async function collect<Row>(rows: AsyncIterable<Row>, signal: AbortSignal): Promise<Row[]> {
  const collected: Row[] = [];
  for await (const row of rows) {
    signal.throwIfAborted();
    collected.push(row);
  }
  return collected;
}
