/**
 * The live feed: new notifications as server-sent events. One follower reads the log and the product index for all
 * viewers, and only while there are viewers.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { type ApiClient, type ApiRoute, apiRoute } from '../../core/api/api-route.ts';
import { AppError, errorText, isAppError } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { requireFilter } from '../../filter/check.ts';
import { sharedPlaces } from '../products/places/places.ts';
import {
  type Cursor,
  cursorText,
  type FrameLimits,
  frameSchema,
  type LiveFrame,
  type LiveQuery,
  type LiveSources,
  readFrame,
  unlessUnavailable,
} from './rows.ts';

export interface LiveLimits extends FrameLimits {
  viewersMax: number;
  /** Time between two frames of a viewer. */
  frameMs: number;
  /** Unread bytes after which a viewer is disconnected, in addition to the buffers of the connection. */
  unreadBytesMax: number;
  /** After more notifications than this, a resumed viewer loads its list again. */
  gapMax: number;
  /** Time without a frame after which a comment is sent, so that proxies keep the connection open. */
  keepAliveMs: number;
}

/** A frame has about 60 kB of rows, and 60 kB of products. */
const liveLimits: LiveLimits = {
  viewersMax: 16,
  frameMs: 250,
  rowsMax: 100,
  rowBytesMax: 128 * 1024,
  productsMax: 400,
  unreadBytesMax: 512 * 1024,
  gapMax: 1_000,
  keepAliveMs: 15_000,
};

interface Viewer {
  query: LiveQuery;
  /** Null until the first frame. */
  cursor: Cursor | null;
  sentAtMs: number;
  send(text: string): void;
  end(): void;
}

type FeedParts = LiveSources & { log: Logger };

type FeedClient = Pick<ApiClient, 'disconnect'> & { gone: AbortSignal };

export interface LiveFeed {
  /** Answers with a stream. Throws `unavailable` when there are too many viewers. */
  open(query: LiveQuery, client: FeedClient): Response;
}

/** `closing` ends all streams. */
export function createLiveFeed(
  parts: FeedParts,
  closing: AbortSignal,
  tuning: Partial<LiveLimits> = {},
): LiveFeed {
  const limits = { ...liveLimits, ...tuning };
  const viewers = new Set<Viewer>();
  let isRunning = false;
  const follow = async () => {
    while (viewers.size > 0 && !closing.aborted) {
      await sendFrames(parts, viewers, limits);
      // After the frames, so that two frames of a viewer are never closer.
      await delay(limits.frameMs, undefined, { signal: closing }).catch(() => undefined);
    }
  };
  const start = () => {
    if (isRunning) return;
    isRunning = true;
    void follow()
      .catch((err: unknown) => {
        parts.log.error({ err }, 'the live feed failed; viewers reconnect');
        for (const viewer of viewers) viewer.end();
      })
      .finally(() => {
        isRunning = false;
        if (viewers.size > 0 && !closing.aborted) start();
      });
  };
  closing.addEventListener('abort', () => {
    for (const viewer of viewers) viewer.end();
  });
  return {
    open: (query, client) => {
      const { viewersMax } = limits;
      if (viewers.size >= viewersMax || closing.aborted) {
        throw new AppError(
          'unavailable',
          `There are already ${viewersMax} live streams, the maximum.`,
          { advice: 'Close another page that shows live data.', facts: { viewersMax } },
        );
      }
      // Loads the data here, so that they do not delay the first notification.
      if (query.rows > 0) sharedPlaces();
      const answer = openViewer(query, client, limits, viewers);
      start();
      return answer;
    },
  };
}

function openViewer(
  query: LiveQuery,
  { gone, disconnect }: FeedClient,
  { unreadBytesMax }: LiveLimits,
  viewers: Set<Viewer>,
): Response {
  const encoder = new TextEncoder();
  const size = new ByteLengthQueuingStrategy({ highWaterMark: unreadBytesMax });
  let viewer: Viewer | undefined;
  const remove = () => viewer !== undefined && viewers.delete(viewer);
  const body = new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        const own: Viewer = {
          query,
          cursor: query.after,
          sentAtMs: performance.now(),
          send: (text) => {
            if (!viewers.has(own)) return;
            if ((controller.desiredSize ?? 0) > 0) {
              own.sentAtMs = performance.now();
              controller.enqueue(encoder.encode(text));
              return;
            }
            // A viewer that does not read is disconnected; it resumes after the last frame it has read.
            remove();
            disconnect();
          },
          end: () => {
            if (remove()) controller.close();
          },
        };
        viewer = own;
        viewers.add(own);
        gone.addEventListener('abort', own.end, { once: true });
        own.send(': connected\n\n');
      },
      cancel: () => void remove(),
    },
    size,
  );
  return new Response(body, {
    headers: { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' },
  });
}

/** Sends a frame to each viewer with news. Viewers with the same cursor and query share a frame. */
async function sendFrames(parts: FeedParts, viewers: ReadonlySet<Viewer>, limits: LiveLimits) {
  const { products, notifications, log } = parts;
  const news: News = { frames: new Map(), last: 0, indexed: null };
  try {
    news.last = await notifications.lastPosition();
    news.indexed = await products.indexedPosition().catch(unlessUnavailable);
  } catch (error) {
    return noteFailure(error, log);
  }
  await Promise.all(
    [...viewers].map((viewer) =>
      sendFrame(parts, viewer, news, limits).catch((error: unknown) => noteFailure(error, log)),
    ),
  );
}

/** The store or the index cannot be read now: viewers stay connected, and get the rows later. */
function noteFailure(error: unknown, log: Logger): void {
  if (!isAppError(error)) throw error;
  log.debug({ reason: errorText(error) }, 'failed to read for the live feed');
}

interface News {
  /** Frames of this round, by cursor and query. */
  frames: Map<string, Promise<{ text: string; hasRows: boolean }>>;
  last: number;
  indexed: number | null;
}

async function sendFrame(
  parts: FeedParts,
  viewer: Viewer,
  { frames, last, indexed }: News,
  limits: LiveLimits,
): Promise<void> {
  const { query } = viewer;
  const from = viewer.cursor ?? { position: last, indexed: indexed ?? last };
  // A rebuilt index reads old notifications again: they are not new.
  const to = { position: last, indexed: Math.max(Math.min(from.indexed, last), indexed ?? 0) };
  const isNew = viewer.cursor === null;
  const missed = last - from.position;
  // A negative number: the log was replaced by an older one.
  if (missed < 0 || (viewer.cursor === query.after && missed > limits.gapMax)) {
    const end = { position: last, indexed: indexed ?? last };
    viewer.cursor = end;
    viewer.send(eventText('gap', { from: from.position, to: last }, end));
    return;
  }
  if (isNew || missed > 0 || from.indexed < to.indexed) {
    const key = JSON.stringify([from, { ...query, after: undefined }]);
    const shared =
      frames.get(key) ??
      readFrame(parts, query, { from, to }, limits).then((frame) => {
        const data: LiveFrame = { ...frame, lastPosition: last, indexedPosition: indexed };
        const hasRows = frame.count + frame.omitted + frame.products.length > 0;
        return { text: eventText('update', data, to), hasRows };
      });
    frames.set(key, shared);
    const { text, hasRows } = await shared;
    viewer.cursor = to;
    // A viewer without rows shows a page that depends on the index, too.
    if (isNew || hasRows || query.rows === 0) return viewer.send(text);
  }
  if (performance.now() - viewer.sentAtMs > limits.keepAliveMs) viewer.send(': still here\n\n');
}

function eventText(name: 'update' | 'gap', data: object, cursor: Cursor): string {
  return `id: ${cursorText(cursor)}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

const query = z.strictObject({
  subscription: z.string().optional(),
  event: z
    .array(z.string().toLowerCase())
    .optional()
    .describe('Only notifications with one of these events.'),
  filter: z
    .string()
    .default('')
    .describe(
      'Only notifications about products that match. The rows then follow the product index.',
    ),
  rows: z.coerce
    .number()
    .int()
    .min(0)
    .max(liveLimits.rowsMax)
    .default(liveLimits.rowsMax)
    .describe(
      'Maximum number of rows per frame. With 0, all notifications are only counted, and there is also an event when the product index has read more.',
    ),
  after: z
    .string()
    .regex(/^\d{1,15}\.\d{1,15}$/)
    .optional()
    .describe('Id of the last event received, as an alternative to the header Last-Event-ID.'),
});

/** `/api/live`. */
export function liveRoute(feed: LiveFeed): ApiRoute {
  return apiRoute({
    path: '/api/live',
    operationId: 'followNotifications',
    summary: 'New notifications as server-sent events',
    description: `Event \`update\`: new notifications, at most four times a second; the schema describes its data. Event \`gap\`: too many notifications since the last id; load the list again. At most ${liveLimits.viewersMax} streams are open at the same time; further requests get 503. A client that does not read is disconnected, and can resume with Last-Event-ID.`,
    query,
    answer: frameSchema,
    answerType: 'text/event-stream',
    respond: async ({ subscription, event: events, filter, rows, after }, _url, gone, client) => {
      const last = client.headers.get('last-event-id') ?? after;
      const tree = requireFilter(filter, 'Products');
      const question = { subscription, events, filter: tree, rows, after: cursorOf(last) };
      return feed.open(question, { gone, disconnect: client.disconnect });
    },
  });
}

function cursorOf(text: string | undefined): Cursor | null {
  const [, position, indexed] = /^(\d{1,15})\.(\d{1,15})$/.exec(text ?? '') ?? [];
  return position === undefined ? null : { position: Number(position), indexed: Number(indexed) };
}
