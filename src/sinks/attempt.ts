/** One attempt to hand over one item. */
import { isAppError } from '../domain/app-error.ts';
import type { NotificationRow } from '../domain/ports.ts';
import type { SinkDefinition, SinkItem } from '../domain/sinks.ts';
import { handOverOf } from './hand-over-document.ts';
import { recordOf } from './record-of.ts';
import type { SinkWorld } from './sink-world.ts';
import type { Target, TargetAnswer } from './target.ts';

/** What may come of an attempt; the last is the log's fault, and that of this item alone. */
export type AttemptAnswer = TargetAnswer | { kind: 'unreadable'; reason: string };

/**
 * Reads the notification and hands it over, within the time that the sink allows. Null when the log does not
 * have it. Rejects with `unavailable` when the log cannot be read at all.
 */
export async function attempt(
  item: SinkItem,
  { name, timeoutMs }: Pick<SinkDefinition, 'name' | 'timeoutMs'>,
  means: Pick<SinkWorld, 'log' | 'pause'> & { target: Target; signal: AbortSignal },
): Promise<AttemptAnswer | null> {
  const { target, pause, signal } = means;
  const row = await rowAt(item.position, means.log);
  if (row === null) return null;
  const body = await readBody(row, means.log);
  if (!(body instanceof Uint8Array)) return body;
  const { replayId } = item;
  const document = handOverOf({ row, record: recordOf(body, row), sink: name, replayId });
  const ending = new AbortController();
  const giveUp = () => ending.abort(signal.reason);
  signal.addEventListener('abort', giveUp);
  if (signal.aborted) giveUp();
  const answered = new AbortController();
  const timer = pause(timeoutMs, answered.signal).then(() => {
    if (!answered.signal.aborted) ending.abort(new DOMException('the time is up', 'TimeoutError'));
  });
  const answer = await target.handOver(document, ending.signal);
  answered.abort();
  await timer;
  signal.removeEventListener('abort', giveUp);
  return answer;
}

/** Where the row was read and the body is not, it is not the whole log that cannot be read. */
async function readBody(
  { position }: NotificationRow,
  log: SinkWorld['log'],
): Promise<Uint8Array | Extract<AttemptAnswer, { kind: 'unreadable' }>> {
  try {
    return await log.body(position);
  } catch (error) {
    const why = isAppError(error) ? error.message : String(error);
    return { kind: 'unreadable', reason: `its body cannot be read from the log: ${why}` };
  }
}

async function rowAt(position: number, log: SinkWorld['log']): Promise<NotificationRow | null> {
  const bounds = { afterPosition: position - 1, beforePosition: position + 1, limit: 1 };
  for await (const row of log.find(bounds)) return row;
  return null;
}
