/** Reading the log in order, shared by all its readers. */
import type { NotificationLog, NotificationQuery, NotificationRow } from './ports.ts';

/**
 * Streams the rows after a position, oldest first, and continues as new ones arrive. Calls `wait` at the end of the
 * log; it resolves when the log should be read again. Ends when the signal is aborted. Skips no row: positions become
 * visible in order.
 */
export async function* followLog(options: {
  log: Pick<NotificationLog, 'find' | 'lastPosition'>;
  query?: Omit<NotificationQuery, 'order' | 'limit' | 'afterPosition' | 'beforePosition'>;
  afterPosition: number;
  wait: (signal: AbortSignal) => Promise<void>;
  signal: AbortSignal;
}): AsyncGenerator<NotificationRow> {
  const { log, query, signal } = options;
  let { afterPosition } = options;
  while (!signal.aborted) {
    // The end is fixed before each round, so that rows that do not match are read only once.
    const lastPosition = await log.lastPosition();
    if (lastPosition > afterPosition) {
      const bounds = { afterPosition, beforePosition: lastPosition + 1 };
      for await (const row of log.find({ ...query, ...bounds, order: 'oldest' })) {
        if (signal.aborted) return;
        yield row;
      }
      afterPosition = lastPosition;
    }
    await options.wait(signal);
  }
}

/**
 * Groups a stream into arrays of `size` elements, in order. The last one may be shorter; none is empty. Reads at most
 * one batch ahead. Rejects when the stream does, and drops the incomplete batch.
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

/** Returns the notification at a position; null when the log does not contain it. */
export function notificationAt(log: Pick<NotificationLog, 'find'>, position: number) {
  return firstOf(log, { afterPosition: position - 1, beforePosition: position + 1 });
}

/** Returns the oldest matching notification; null when there is none. */
export async function firstOf(
  { find }: Pick<NotificationLog, 'find'>,
  query: Omit<NotificationQuery, 'order' | 'limit'>,
): Promise<NotificationRow | null> {
  for await (const row of find({ ...query, order: 'oldest', limit: 1 })) return row;
  return null;
}

/** Collects a stream; rejects when the signal is aborted. */
export async function collect<Row>(rows: AsyncIterable<Row>, signal: AbortSignal): Promise<Row[]> {
  const collected: Row[] = [];
  for await (const row of rows) {
    signal.throwIfAborted();
    collected.push(row);
  }
  return collected;
}
