/** One attempt to deliver one item. */
import { errorText, isAppError } from '../domain/app-error.ts';
import type { NotificationRow } from '../domain/ports.ts';
import type { SinkDefinition, SinkItem } from '../domain/sinks.ts';
import { type HandOver, handOverOf } from './hand-over-document.ts';
import { recordOf } from './record-of.ts';
import type { SinkWorld } from './sink-world.ts';
import type { Target, TargetAnswer } from './target.ts';

/** Result of an attempt. `failed`: the delivery could not be built or attempted, which counts against its item alone. */
export type AttemptAnswer = TargetAnswer | { kind: 'failed'; reason: string };

/**
 * Reads the notification and delivers it, within the time that the sink allows. Null when the log does not have it.
 * Nothing that a record holds makes it throw: it rejects only with `unavailable`, when the log cannot be read now.
 */
export async function attempt(
  item: SinkItem,
  definition: Pick<SinkDefinition, 'name' | 'timeoutMs'>,
  means: Pick<SinkWorld, 'log' | 'pause' | 'logger'> & {
    target: Target;
    signal: AbortSignal;
    readBody: ReadBody;
  },
): Promise<AttemptAnswer | null> {
  const row = await rowAt(item.position, means.log);
  if (row === null) return null;
  const body = await means.readBody(row);
  if (!(body instanceof Uint8Array)) return body;
  try {
    const { name: sink } = definition;
    const { replayId } = item;
    const document = handOverOf({ row, record: recordOf(body, row), sink, replayId });
    return await attemptOnce(document, definition, means);
  } catch (err) {
    const { id, position } = item;
    means.logger.error({ sink: definition.name, item: id, position, err }, 'a delivery failed');
    const why = err instanceof Error ? err.message : String(err);
    return { kind: 'failed', reason: `the delivery failed within earshot: ${why}` };
  }
}

/** What `earshot sinks test` sends: a document like any other, with an id that no delivery has. */
export function testDocument(row: NotificationRow, body: Uint8Array, sink: string, testId: string) {
  const document = handOverOf({ row, record: recordOf(body, row), sink, replayId: null });
  const id = `test_${testId}`;
  return { ...document, id, notificationId: id, test: true as const };
}

/** Sends one document, outside of the sink's queue. Never rejects for what the target does. */
export async function attemptOnce(
  document: HandOver,
  { timeoutMs }: Pick<SinkDefinition, 'timeoutMs'>,
  means: Pick<SinkWorld, 'pause'> & { target: Target; signal: AbortSignal },
): Promise<TargetAnswer> {
  return withinTime(timeoutMs, means, (signal) => means.target.handOver(document, signal));
}

/** Aborts the signal of `work` when the time is up, or when the sink's own signal is aborted. */
async function withinTime<Result>(
  timeoutMs: number,
  { pause, signal }: Pick<SinkWorld, 'pause'> & { signal: AbortSignal },
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const ending = new AbortController();
  const giveUp = () => ending.abort(signal.reason);
  signal.addEventListener('abort', giveUp);
  if (signal.aborted) giveUp();
  const answered = new AbortController();
  const timer = pause(timeoutMs, answered.signal).then(() => {
    if (!answered.signal.aborted) ending.abort(new DOMException('the time is up', 'TimeoutError'));
  });
  try {
    return await work(ending.signal);
  } finally {
    answered.abort();
    await timer;
    signal.removeEventListener('abort', giveUp);
  }
}

export type ReadBody = (
  row: NotificationRow,
) => Promise<Uint8Array | Extract<AttemptAnswer, { kind: 'failed' }>>;

/** A store that cannot read for a moment must not use up attempts; with 10 s between them, a minute. */
const unavailableReadsMax = 6;

/**
 * Makes the reader of bodies of one sink. It rejects with `unavailable` while the store may recover. When the row can be
 * read and its body again and again cannot, the body is damaged: a fault of one item, not of the log.
 */
export function createReadBody(log: SinkWorld['log']): ReadBody {
  const unavailableReads = new Map<number, number>();
  return async ({ position }) => {
    try {
      const body = await log.body(position);
      unavailableReads.delete(position);
      return body;
    } catch (error) {
      const reads = (unavailableReads.get(position) ?? 0) + 1;
      unavailableReads.set(position, reads);
      if (isAppError(error, 'unavailable') && reads < unavailableReadsMax) throw error;
      const why = isAppError(error) ? errorText(error) : String(error);
      return { kind: 'failed', reason: `its body cannot be read from the log: ${why}` };
    }
  };
}

async function rowAt(position: number, log: SinkWorld['log']): Promise<NotificationRow | null> {
  const bounds = { afterPosition: position - 1, beforePosition: position + 1, limit: 1 };
  for await (const row of log.find(bounds)) return row;
  return null;
}
