/** The live feed: the last positions of the log and of the product index as server-sent events. */
import { z } from 'zod';
import { type ApiClient, type ApiRoute, apiRoute } from '../../core/api/api-route.ts';
import type { ConsoleParts } from '../../core/api/listener-slot.ts';
import { pause } from '../../core/cli/io.ts';
import { AppError, errorText, isAppError } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';

interface LiveLimits {
  viewersMax: number;
  /** Minimum time between two events of a viewer, and between two readings of the positions. */
  frameMs: number;
  /** Time after which a viewer that does not read is disconnected. */
  unreadMs: number;
}

const defaultLimits: LiveLimits = { viewersMax: 16, frameMs: 250, unreadMs: 30_000 };

/** Time without an event after which a comment is sent, so that proxies keep the connection open. */
const keepAliveMs = 15_000;

const positionsSchema = z.object({
  lastPosition: z.int().describe('Last position of the log.'),
  indexedPosition: z
    .int()
    .nullable()
    .describe('Last position that the product index has read; null without an index.'),
});

type Positions = z.infer<typeof positionsSchema>;

type Sources = Pick<ConsoleParts, 'notifications' | 'products'>;

export async function readPositions({ notifications, products }: Sources): Promise<Positions> {
  const lastPosition = await notifications.lastPosition();
  const indexedPosition = await products.indexedPosition().catch(unlessUnavailable);
  return { lastPosition, indexedPosition };
}

export function unlessUnavailable(error: unknown): null {
  if (isAppError(error, 'unavailable')) return null;
  throw error;
}

type FeedParts = Sources & Pick<ConsoleParts, 'log' | 'closing'>;

type Open = (client: Pick<ApiClient, 'disconnect'> & { gone: AbortSignal }) => Response;

/**
 * Returns the function that answers with a stream; it throws `unavailable` when there are too many viewers. The shutdown
 * ends all streams. Nothing is read without viewers.
 */
function createLiveFeed(parts: FeedParts, { viewersMax, frameMs, unreadMs }: LiveLimits): Open {
  const { closing, log } = parts;
  const viewers = new Set<AbortController>();
  let current: Promise<Positions> | null = null;
  /** Returns the positions. Viewers share a reading. */
  const read = () => {
    if (current === null) {
      current = readPositions(parts);
      setTimeout(() => (current = null), frameMs).unref();
    }
    return current;
  };
  return ({ gone, disconnect }) => {
    if (viewers.size >= viewersMax || closing.aborted) {
      throw new AppError(
        'unavailable',
        `There are already ${viewersMax} live streams, the maximum.`,
        { advice: 'Close another page that shows live data.', facts: { viewersMax } },
      );
    }
    const left = new AbortController();
    const signal = AbortSignal.any([gone, closing, left.signal]);
    let unread: NodeJS.Timeout | undefined;
    viewers.add(left);
    signal.addEventListener('abort', () => {
      viewers.delete(left);
      clearTimeout(unread);
    });
    const texts = follow(read, { frameMs, signal, log });
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

/** Yields the texts of a stream. While store or index cannot be read, the viewer stays, and gets the positions later. */
async function* follow(
  read: () => Promise<Positions>,
  { frameMs, signal, log }: { frameMs: number; signal: AbortSignal; log: Logger },
): AsyncGenerator<string> {
  yield ': connected\n\n';
  let sent = '';
  let sentAtMs = performance.now();
  while (!signal.aborted) {
    try {
      const data = JSON.stringify(await read());
      const isNew = data !== sent;
      if (isNew || performance.now() - sentAtMs > keepAliveMs) {
        [sent, sentAtMs] = [data, performance.now()];
        yield isNew ? `event: update\ndata: ${data}\n\n` : ': still here\n\n';
      }
    } catch (error) {
      if (!isAppError(error)) {
        log.error({ err: error }, 'the live feed failed; viewers reconnect');
        return;
      }
      log.debug({ reason: errorText(error) }, 'failed to read for the live feed');
    }
    await pause(frameMs, signal);
  }
}

/** `/api/live`. */
export function liveRoute(parts: FeedParts, limits = defaultLimits): ApiRoute {
  const open = createLiveFeed(parts, limits);
  return apiRoute({
    path: '/api/live',
    operationId: 'followPositions',
    summary: 'Positions of log and index as server-sent events',
    description: `Event \`update\`: the current positions first, then each change, at most four a second; the schema describes its data. Read what is new from \`/api/notifications?after=…\`. At most ${limits.viewersMax} streams are open at the same time; further requests get 503. A client that does not read is disconnected.`,
    query: z.strictObject({}),
    answer: positionsSchema,
    answerType: 'text/event-stream',
    respond: async (_query, _url, gone, { disconnect }) => open({ gone, disconnect }),
  });
}
