/** The one small reader of the log that everything shares that works through it in order. */
import type { NotificationLog, NotificationQuery, NotificationRow } from './ports.ts';

/**
 * Streams the rows after a position, oldest first, and goes on as new ones arrive. `wait` is called
 * when the end is reached and resolves when it is worth looking again; the stream ends when the
 * signal is aborted. No row is left out: positions become visible in their order.
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
    // The end is fixed before each round: rows that do not match are passed once, not in each round.
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

/** The notification at a position; null when the log does not have it. */
export function notificationAt(log: Pick<NotificationLog, 'find'>, position: number) {
  return firstOf(log, { afterPosition: position - 1, beforePosition: position + 1 });
}

/** The oldest notification that matches; null when there is none. */
export async function firstOf(
  { find }: Pick<NotificationLog, 'find'>,
  query: Omit<NotificationQuery, 'order' | 'limit'>,
): Promise<NotificationRow | null> {
  for await (const row of find({ ...query, order: 'oldest', limit: 1 })) return row;
  return null;
}
