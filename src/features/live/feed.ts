/** The live feed: new notifications as server-sent events. */
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
  frameSchema,
  type LiveFrame,
  type LiveQuery,
  type LiveSources,
  readFrame,
  rowsMax,
  unlessUnavailable,
} from './rows.ts';

export interface LiveLimits {
  viewersMax: number;
  /** Minimum time between two frames of a viewer. */
  frameMs: number;
  /** Time after which a viewer that does not read is disconnected; it resumes after the last frame it has read. */
  unreadMs: number;
}

const defaultLimits: LiveLimits = { viewersMax: 16, frameMs: 250, unreadMs: 30_000 };

/** After more notifications than this, a resumed viewer loads its list again. */
const gapMax = 1_000;

/** Time without a frame after which a comment is sent, so that proxies keep the connection open. */
const keepAliveMs = 15_000;

type FeedParts = LiveSources & { log: Logger };

/** The end of log and index, and the frames up to there, by cursor and query. */
interface Round {
  last: number;
  indexed: number | null;
  frames: Map<string, Promise<LiveFrame>>;
}

export interface LiveFeed {
  /** Answers with a stream. Throws `unavailable` when there are too many viewers. */
  open(query: LiveQuery, client: Pick<ApiClient, 'disconnect'> & { gone: AbortSignal }): Response;
}

/** `closing` ends all streams. Reads nothing without viewers. */
export function createLiveFeed(
  parts: FeedParts,
  closing: AbortSignal,
  limits: Partial<LiveLimits> = {},
): LiveFeed {
  const { viewersMax, frameMs, unreadMs } = { ...defaultLimits, ...limits };
  const viewers = new Set<AbortController>();
  let current: Promise<Round> | null = null;
  /** Viewers share a round, so that equal questions are read once. */
  const takeRound = () => {
    if (current === null) {
      current = readRound(parts);
      setTimeout(() => (current = null), frameMs).unref();
    }
    return current;
  };
  return {
    open: (query, { gone, disconnect }) => {
      if (viewers.size >= viewersMax || closing.aborted) {
        throw new AppError(
          'unavailable',
          `There are already ${viewersMax} live streams, the maximum.`,
          { advice: 'Close another page that shows live data.', facts: { viewersMax } },
        );
      }
      // Loads the data here, so that they do not delay the first notification.
      if (query.rows > 0) sharedPlaces();
      const left = new AbortController();
      const signal = AbortSignal.any([gone, closing, left.signal]);
      let unread: NodeJS.Timeout | undefined;
      viewers.add(left);
      signal.addEventListener('abort', () => {
        viewers.delete(left);
        clearTimeout(unread);
      });
      const texts = follow({ parts, query, takeRound, frameMs, signal });
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
    },
  };
}

async function readRound({ notifications, products }: FeedParts): Promise<Round> {
  const last = await notifications.lastPosition();
  const indexed = await products.indexedPosition().catch(unlessUnavailable);
  return { last, indexed, frames: new Map() };
}

interface Following {
  parts: FeedParts;
  query: LiveQuery;
  takeRound: () => Promise<Round>;
  frameMs: number;
  signal: AbortSignal;
}

/** Yields the texts of a stream. While store or index cannot be read, the viewer stays, and gets the rows later. */
async function* follow(following: Following): AsyncGenerator<string> {
  const { parts, query, takeRound, frameMs, signal } = following;
  yield ': connected\n\n';
  let cursor = query.after;
  let sentAtMs = performance.now();
  while (!signal.aborted) {
    try {
      const shared = await takeRound();
      // A viewer may have read further than the shared round.
      const isOld = cursor !== null && cursor.position > shared.last;
      const round = isOld ? await readRound(parts) : shared;
      const { text, to } = await nextFrame(parts, query, cursor, round);
      cursor = to;
      const isSilent = performance.now() - sentAtMs > keepAliveMs;
      if (text !== null || isSilent) {
        sentAtMs = performance.now();
        yield text ?? ': still here\n\n';
      }
    } catch (error) {
      if (!isAppError(error)) {
        parts.log.error({ err: error }, 'the live feed failed; viewers reconnect');
        return;
      }
      parts.log.debug({ reason: errorText(error) }, 'failed to read for the live feed');
    }
    await delay(frameMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Returns the cursor after a round, and the text of its frame; null if nothing is new. */
async function nextFrame(
  parts: FeedParts,
  query: LiveQuery,
  cursor: Cursor | null,
  { last, indexed, frames }: Round,
): Promise<{ text: string | null; to: Cursor }> {
  const end = { position: last, indexed: indexed ?? last };
  const from = cursor ?? end;
  const missed = last - from.position;
  // A negative number: the log was replaced by an older one.
  if (missed < 0 || (cursor !== null && cursor === query.after && missed > gapMax)) {
    return { text: eventText('gap', { from: from.position, to: last }, end), to: end };
  }
  // A rebuilt index reads old notifications again: they are not new.
  const to = { position: last, indexed: Math.max(Math.min(from.indexed, last), indexed ?? 0) };
  if (cursor !== null && missed === 0 && from.indexed >= to.indexed)
    return { text: null, to: from };
  const key = JSON.stringify([from, { ...query, after: undefined }]);
  const shared =
    frames.get(key) ??
    readFrame(parts, query, { from, to }).then((frame) => {
      return { ...frame, lastPosition: last, indexedPosition: indexed };
    });
  frames.set(key, shared);
  const frame = await shared;
  // A viewer without rows shows a page that depends on the index, too.
  const isShown = cursor === null || query.rows === 0;
  const hasRows = frame.count + frame.omitted + frame.products.length > 0;
  return { text: isShown || hasRows ? eventText('update', frame, to) : null, to };
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
    .max(rowsMax)
    .default(rowsMax)
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
    description: `Event \`update\`: new notifications, at most four times a second; the schema describes its data. Event \`gap\`: too many notifications since the last id; load the list again. At most ${defaultLimits.viewersMax} streams are open at the same time; further requests get 503. A client that does not read is disconnected, and can resume with Last-Event-ID.`,
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
