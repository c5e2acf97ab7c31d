/** `/api/feed`: whole notifications as server-sent events, from any position. */
import { z } from 'zod';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  maxAgeParameter,
  positionParameter,
} from '../../core/api/api-route.ts';
import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import { inTurn } from '../../core/api/query-line.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { firstOf, type NotificationLog } from '../../core/terms/ports.ts';
import { subscriptionEvents } from '../../core/terms/subscription.ts';
import type { NotificationDocument } from './document.ts';
import { createEventStreams, type StreamLimits } from './event-stream.ts';
import { createFeedEvents, type FeedParts } from './feed.ts';
import { formatNames, stacIds } from './formats.ts';

const defaultLimits: StreamLimits = { readersMax: 64, frameMs: 250, unreadMs: 30_000 };

const query = z.strictObject({
  after: positionParameter
    .optional()
    .describe('Position after which to start; 0 for the start of the log. By default, now.'),
  since: dateParameter
    .optional()
    .describe('Time of receipt at which to start, ISO 8601. UTC if the time has no time zone.'),
  filter: z.string().default('').describe('`$filter` of `Products` that the record must match.'),
  event: z
    .array(z.enum(subscriptionEvents))
    .default([])
    .describe('Only notifications with one of these events.'),
  subscription: z.string().optional().describe('Only notifications of this subscription.'),
  maxAge: maxAgeParameter,
  format: z
    .enum(formatNames)
    .default('document')
    .describe('Format of the messages, as those of sinks.'),
  stacIds: z
    .enum(stacIds)
    .default('earshot')
    .describe('Ids of STAC items and collections: of earshot, or of the catalogue.'),
});

const text = z.string().nullable();

const answer: z.ZodType<NotificationDocument> = z.object({
  ...{ id: z.string(), notificationId: z.string(), replay: z.literal(false) },
  ...{ sink: z.literal('feed'), position: z.int(), subscription: text, event: z.string() },
  ...{ productId: z.string(), productName: text, subscriptionId: text, ackId: text },
  ...{ notificationDate: text, receivedAt: z.string(), source: z.string() },
  value: z.looseObject({}).nullable().describe('Record of the product, as sent by the catalogue.'),
});

/** Returns the route. */
export function feedRoute(
  parts: FeedParts & Pick<ConsoleParts, 'closing' | 'log'>,
  limits = defaultLimits,
): ApiRoute {
  const open = createEventStreams(parts, limits, {
    readers: 'readers of the feed',
    advice: 'Close one of them.',
  });
  const eventsAfter = createFeedEvents(parts, limits);
  return apiRoute({
    path: '/api/feed',
    operationId: 'followNotifications',
    summary: 'Notifications as server-sent events, the past first',
    description: `One event per notification: its position as \`id\`, and as \`data\` the message on one line; the schema describes the format \`document\`. The header \`Last-Event-ID\` wins over \`after\` and \`since\`. Every 15 s without an event, only an \`id\` is sent: the position up to which no other notification is selected. At most ${limits.readersMax} readers are connected at the same time; further requests get 503. A reader that does not read for ${limits.unreadMs / 1_000} s is disconnected.`,
    query,
    answer,
    answerType: 'text/event-stream',
    respond: async (asked, _url, gone, { disconnect, headers }) => {
      const { event: events, subscription, maxAge = null, ...message } = asked;
      const subscriptions = subscription === undefined ? [] : [subscription];
      const request = { ...message, events, subscriptions, maxAgeUs: maxAge };
      const start = await startOf(asked, headers.get('last-event-id'), parts.notifications);
      const stream = await inTurn(() => eventsAfter(request, start));
      return open({ gone, disconnect }, stream);
    },
  });
}

/** Returns the position after which the events start. */
async function startOf(
  { after, since }: z.output<typeof query>,
  lastEventId: string | null,
  log: NotificationLog,
): Promise<number> {
  if (after !== undefined && since !== undefined) {
    throw new AppError('invalid', 'Use after or since, not both.');
  }
  if (lastEventId !== null) {
    const { success, data } = positionParameter.safeParse(lastEventId);
    if (success && /^\d+$/.test(lastEventId)) return data;
    throw new AppError('invalid', 'Last-Event-ID must be a position, such as 17.');
  }
  if (after !== undefined) return after;
  // Read before the search, so that nothing that arrives meanwhile is skipped.
  const last = await log.lastPosition();
  const first = since === undefined ? null : await firstOf(log, { sinceUs: since });
  return first === null ? last : first.position - 1;
}

export const routes = (parts: ConsoleParts): ServedRoute[] => [
  { route: feedRoute(parts), line: 'none' },
];
