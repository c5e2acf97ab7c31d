/**
 * The live feed: new notifications as server-sent events. One follower reads the log and the product index for all
 * viewers, and only while there are viewers.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { AppError, errorText, isAppError } from '../domain/app-error.ts';
import type { Logger } from '../domain/ports.ts';
import { requireFilter } from '../filter/check.ts';
import { type ApiRoute, apiRoute } from './api-route.ts';
import {
  type Cursor,
  frameSchema,
  type LiveFrame,
  type LiveQuery,
  type LiveSources,
  readFrame,
  unlessUnavailable,
} from './live-rows.ts';

export const liveLimits = {
  viewersMax: 16,
  /** Time between two frames of a viewer. */
  frameMs: 250,
  /** Rows of a frame, about 60 kB. Further notifications are only counted. */
  rowsMax: 100,
  /** Unread bytes after which a viewer is disconnected, in addition to the buffers of the connection. */
  unreadBytesMax: 512 * 1024,
  /** After more notifications than this, a resumed viewer loads its list again. */
  gapMax: 1_000,
  /** Time without a frame after which a comment is sent, so that proxies keep the connection open. */
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

export interface LiveFeed {
  /** Answers with a stream. Throws `unavailable` when there are too many viewers. */
  open(query: LiveQuery, gone: AbortSignal): Response;
}

/** `closing` ends all streams. */
export function createLiveFeed(
  parts: FeedParts,
  closing: AbortSignal,
  limits = liveLimits,
): LiveFeed {
  const viewers = new Set<Viewer>();
  let isRunning = false;
  const follow = async () => {
    while (viewers.size > 0 && !closing.aborted) {
      const beganMs = performance.now();
      try {
        await sendFrames(parts, viewers, limits);
      } catch (error) {
        // The store cannot be read now: viewers stay connected, and get the rows later.
        if (!isAppError(error)) throw error;
        parts.log.debug({ reason: errorText(error) }, 'failed to read for the live feed');
      }
      const restMs = limits.frameMs - (performance.now() - beganMs);
      await delay(Math.max(restMs, limits.frameMs / 5), undefined, { signal: closing }).catch(
        () => undefined,
      );
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
    open: (query, gone) => {
      if (viewers.size >= limits.viewersMax || closing.aborted) {
        throw new AppError('unavailable', `There are already ${limits.viewersMax} live streams.`);
      }
      const answer = openViewer(query, gone, limits, viewers);
      start();
      return answer;
    },
  };
}

function openViewer(
  query: LiveQuery,
  gone: AbortSignal,
  { unreadBytesMax }: typeof liveLimits,
  viewers: Set<Viewer>,
): Response {
  const encoder = new TextEncoder();
  const size = new ByteLengthQueuingStrategy({ highWaterMark: unreadBytesMax });
  let viewer: Viewer | undefined;
  const body = new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        const end = () => {
          if (viewer !== undefined && viewers.delete(viewer)) controller.close();
        };
        const own: Viewer = {
          query,
          cursor: query.after,
          sentAtMs: performance.now(),
          send: (text) => {
            // A viewer that does not read is disconnected; it resumes after the last frame it has read.
            if ((controller.desiredSize ?? 0) <= 0) return end();
            own.sentAtMs = performance.now();
            controller.enqueue(encoder.encode(text));
          },
          end,
        };
        viewer = own;
        viewers.add(own);
        gone.addEventListener('abort', end, { once: true });
        own.send(': connected\n\n');
      },
      cancel: () => {
        if (viewer !== undefined) viewers.delete(viewer);
      },
    },
    size,
  );
  return new Response(body, {
    headers: { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' },
  });
}

/** Sends a frame to each viewer with news. Viewers with the same cursor and query share the reads. */
async function sendFrames(
  parts: FeedParts,
  viewers: ReadonlySet<Viewer>,
  limits: typeof liveLimits,
) {
  const { products, notifications } = parts;
  const lastPosition = await notifications.lastPosition();
  const indexed = await products.indexedPosition().catch(unlessUnavailable);
  const end: Cursor = { position: lastPosition, indexed: indexed ?? 0 };
  const reads = new Map<string, ReturnType<typeof readFrame>>();
  for (const viewer of [...viewers]) {
    const { query } = viewer;
    const cursor = viewer.cursor ?? end;
    const isNew = viewer.cursor === null;
    const missed = lastPosition - cursor.position;
    // A negative number: the log was replaced by an older one.
    if (!isNew && viewer.cursor === query.after && (missed > limits.gapMax || missed < 0)) {
      viewer.send(eventText('gap', { from: cursor.position, to: lastPosition }, end));
      viewer.cursor = end;
      continue;
    }
    if (isNew || cursor.position < end.position || cursor.indexed < end.indexed) {
      const key = JSON.stringify([cursor, query]);
      const read =
        reads.get(key) ?? readFrame(parts, query, { from: cursor, to: end }, limits.rowsMax);
      reads.set(key, read);
      const frame = { ...(await read), lastPosition, indexedPosition: indexed };
      viewer.cursor = end;
      if (isNew || frame.count + frame.omitted + frame.products.length > 0) {
        viewer.send(eventText('update', frame satisfies LiveFrame, end));
        continue;
      }
    }
    if (performance.now() - viewer.sentAtMs > limits.keepAliveMs) viewer.send(': still here\n\n');
  }
}

function eventText(name: 'update' | 'gap', data: object, { position, indexed }: Cursor): string {
  return `id: ${position}.${indexed}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
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
    .describe('Maximum number of rows per frame. With 0, notifications are only counted.'),
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
    respond: async ({ subscription, event: events, filter, rows, after }, _url, gone, headers) => {
      const last = headers.get('last-event-id') ?? after;
      const tree = requireFilter(filter, 'Products');
      return feed.open({ subscription, events, filter: tree, rows, after: cursorOf(last) }, gone);
    },
  });
}

function cursorOf(text: string | undefined): Cursor | null {
  const [, position, indexed] = /^(\d{1,15})\.(\d{1,15})$/.exec(text ?? '') ?? [];
  return position === undefined ? null : { position: Number(position), indexed: Number(indexed) };
}
