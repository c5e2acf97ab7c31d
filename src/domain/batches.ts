/** The elements of a stream by the batch, for look-ups that answer many at once. */

/**
 * Arrays of `size` elements, the last one shorter, none empty; in their order. No more than one batch is read
 * ahead. Rejects as the stream does, and then keeps back what it had gathered.
 */
export async function* batches<Element>(
  stream: AsyncIterable<Element>,
  size: number,
): AsyncGenerator<Element[]> {
  let batch: Element[] = [];
  for await (const element of stream) {
    batch.push(element);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
