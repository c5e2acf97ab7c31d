/** `/api/notifications`: what was received, notification by notification. */
import { z } from 'zod';
import { timeField, toNotificationJson } from '../domain/json-rows.ts';
import { type NotificationLog, namePatternMax } from '../domain/ports.ts';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  limitParameter,
  nextField,
  pageOf,
  positionParameter,
} from './api-route.ts';

/** The fields of the command line's JSON rows, in their order. */
const notificationFields = z.object({
  position: z.int().describe('Its place in the log; later ones have higher places.'),
  ackId: z.string().nullable(),
  productId: z.string(),
  productName: z.string().nullable(),
  event: z.string().describe('created, modified or deleted; in lower case.'),
  subscription: z.string().nullable().describe('The name in the path it came to.'),
  subscriptionId: z.string().nullable().describe('The id in the notification.'),
  notificationDate: timeField.nullable(),
  receivedAt: timeField,
  source: z.string().describe('push, or reconcile for what was found missing and fetched.'),
  timesSeen: z.int().describe('1 for a notification that came once.'),
});

const query = z.strictObject({
  ackId: z.string().optional(),
  productId: z.string().optional(),
  name: z
    .string()
    .max(namePatternMax)
    .optional()
    .describe(
      `The name of the product; \`*\` stands for any text, \`?\` for one character. A name of more than ${namePatternMax} bytes matches no pattern.`,
    ),
  event: z.array(z.string().toLowerCase()).optional().describe('Any of these events.'),
  subscription: z.string().optional(),
  source: z.enum(['push', 'reconcile']).optional(),
  time: z
    .enum(['received', 'notification'])
    .default('received')
    .describe('The time that `since` and `until` speak of.'),
  since: dateParameter.optional().describe('ISO 8601, included; UTC where it names no zone.'),
  until: dateParameter.optional().describe('ISO 8601, excluded; UTC where it names no zone.'),
  after: positionParameter.optional().describe('Only later ones than this position.'),
  before: positionParameter.optional().describe('Only earlier ones than this position.'),
  order: z.enum(['newest', 'oldest']).default('newest').describe('Which come first.'),
  limit: limitParameter,
});

/** Builds the row of the table. */
export function notificationsRoute(log: NotificationLog): ApiRoute {
  return apiRoute({
    path: '/api/notifications',
    operationId: 'listNotifications',
    summary: 'Notifications that were received',
    description:
      'By position, page by page. What arrives meanwhile neither shifts nor repeats what is to come.',
    query,
    answer: z.object({ notifications: z.array(notificationFields), next: nextField }),
    respond: async (asked, url, signal) => {
      const { event, since, until, after, before, limit, ...same } = asked;
      const found = log.find({
        ...same,
        events: event,
        sinceUs: since,
        untilUs: until,
        afterPosition: after,
        beforePosition: before,
        limit: limit + 1,
      });
      const rows = await collect(found, signal);
      const parameter = asked.order === 'oldest' ? 'after' : 'before';
      const { page, next } = pageOf(rows, { limit, url, parameter }, ({ position }) => position);
      return { body: { notifications: page.map(toNotificationJson), next } };
    },
  });
}

/** All of a stream, unless the signal ends it before. */
export async function collect<Row>(rows: AsyncIterable<Row>, signal: AbortSignal): Promise<Row[]> {
  const collected: Row[] = [];
  for await (const row of rows) {
    signal.throwIfAborted();
    collected.push(row);
  }
  return collected;
}
