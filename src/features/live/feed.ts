/** The live feed: the last positions of the log and of the product index as server-sent events. */
import { z } from 'zod';
import { type ApiRoute, apiRoute } from '../../core/api/api-route.ts';
import type { ConsoleParts } from '../../core/api/listener-slot.ts';
import { isAppError } from '../../core/terms/app-error.ts';
import {
  createEventStreams,
  type Events,
  type StreamLimits,
  sharedFor,
} from '../messages/event-stream.ts';

const defaultLimits: StreamLimits = { readersMax: 16, frameMs: 250, unreadMs: 30_000 };

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

/** Creates the events of viewers, who share a reading of the positions. */
function createPositionEvents(parts: FeedParts, { frameMs }: StreamLimits): () => Events {
  const read = sharedFor(frameMs, () => readPositions(parts));
  return () => {
    let sent = '';
    return {
      idle: () => ': connected\n\n',
      read: async function* () {
        const data = JSON.stringify(await read());
        if (data === sent) return;
        sent = data;
        yield `event: update\ndata: ${data}\n\n`;
      },
    };
  };
}

/** `/api/live`. */
export function liveRoute(parts: FeedParts, limits = defaultLimits): ApiRoute {
  const open = createEventStreams(parts, limits, {
    readers: 'live streams',
    advice: 'Close another page that shows live data.',
  });
  const newEvents = createPositionEvents(parts, limits);
  return apiRoute({
    path: '/api/live',
    operationId: 'followPositions',
    summary: 'Positions of log and index as server-sent events',
    description: `Event \`update\`: the current positions first, then each change, at most four a second; the schema describes its data. Read what is new from \`/api/notifications?after=…\`. At most ${limits.readersMax} streams are open at the same time; further requests get 503. A client that does not read is disconnected.`,
    query: z.strictObject({}),
    answer: positionsSchema,
    answerType: 'text/event-stream',
    respond: async (_query, _url, gone, { disconnect }) => open({ gone, disconnect }, newEvents()),
  });
}
