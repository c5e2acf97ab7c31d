/** Streams of server-sent events: a limited number of readers, each at its own speed. */
import type { ApiClient } from '../../core/api/api-route.ts';
import type { ConsoleParts } from '../../core/api/listener-slot.ts';
import { pause } from '../../core/cli/io.ts';
import { AppError, errorText, isAppError } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';

export interface StreamLimits {
  readersMax: number;
  /** Minimum time between two readings of the source. */
  frameMs: number;
  /** Time after which a reader that does not read is disconnected. */
  unreadMs: number;
  /** Time without an event after which something is sent, so that proxies keep the connection open. */
  idleMs?: number;
}

/** Source of the events of one reader. */
export interface Events {
  /** Returns the text that is sent first, and after a time without an event. */
  idle(): string;
  /** Yields the texts of new events; null after work without an event. */
  read(signal: AbortSignal): AsyncIterable<string | null>;
}

export type StreamClient = Pick<ApiClient, 'disconnect'> & { gone: AbortSignal };

type StreamParts = Pick<ConsoleParts, 'closing' | 'log'>;

/**
 * Returns the function that answers with a stream; it throws `unavailable` when there are too many readers. The shutdown
 * ends all streams.
 */
export function createEventStreams(
  { closing, log }: StreamParts,
  limits: StreamLimits,
  { readers, advice }: { readers: string; advice: string },
): (client: StreamClient, events: Events) => Response {
  const { readersMax, unreadMs } = limits;
  const open = new Set<AbortController>();
  return ({ gone, disconnect }, events) => {
    gone.throwIfAborted();
    if (open.size >= readersMax || closing.aborted) {
      const message = `There are already ${readersMax} ${readers}, the maximum.`;
      throw new AppError('unavailable', message, { advice, facts: { readersMax } });
    }
    const left = new AbortController();
    const signal = AbortSignal.any([gone, closing, left.signal]);
    let unread: NodeJS.Timeout | undefined;
    open.add(left);
    signal.addEventListener('abort', () => {
      open.delete(left);
      clearTimeout(unread);
    });
    const texts = follow(events, { ...limits, signal, log });
    const encoder = new TextEncoder();
    // Pulled when the connection takes more, so nothing collects in memory.
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      clearTimeout(unread);
      const { done, value } = await texts.next();
      if (done) {
        left.abort();
        return controller.close();
      }
      controller.enqueue(encoder.encode(value));
      if (!signal.aborted) unread = setTimeout(disconnect, unreadMs);
    };
    const body = new ReadableStream({ pull, cancel: () => left.abort() }, { highWaterMark: 0 });
    return new Response(body, {
      headers: { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' },
    });
  };
}

/** Yields the texts of a stream. While the source cannot be read, the reader stays, and gets the events later. */
async function* follow(
  { idle, read }: Events,
  {
    frameMs,
    idleMs = 15_000,
    signal,
    log,
  }: Pick<StreamLimits, 'frameMs' | 'idleMs'> & { signal: AbortSignal; log: Logger },
): AsyncGenerator<string> {
  let sentAtMs = performance.now();
  const noted = (text: string) => {
    sentAtMs = performance.now();
    return text;
  };
  const isIdle = () => performance.now() - sentAtMs > idleMs;
  yield noted(idle());
  while (!signal.aborted) {
    try {
      for await (const text of read(signal)) {
        if (text !== null) yield noted(text);
        else if (isIdle()) yield noted(idle());
      }
    } catch (error) {
      if (!isAppError(error)) {
        log.error({ err: error }, 'a stream of events failed; its reader reconnects');
        return;
      }
      log.debug({ reason: errorText(error) }, 'failed to read for a stream of events');
    }
    if (isIdle()) yield noted(idle());
    await pause(frameMs, signal);
  }
}

/** Returns a function whose calls within a time share one result. */
export function sharedFor<Value>(ms: number, read: () => Promise<Value>): () => Promise<Value> {
  let current: Promise<Value> | null = null;
  return () => {
    if (current === null) {
      current = read();
      setTimeout(() => (current = null), ms).unref();
    }
    return current;
  };
}
