/** `/api/notifications`: the received notifications. */
import { z } from 'zod';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  limitParameter,
  maxAgeParameter,
  nextField,
  pageOf,
  positionParameter,
} from '../../core/api/api-route.ts';
import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { jsonSchemaOf } from '../../core/terms/json-rows.ts';
import {
  collect,
  type NotificationLog,
  namePatternMax,
  notificationSources,
} from '../../core/terms/ports.ts';
import { notificationSchema, toNotificationJson } from '../../core/terms/read-models.ts';
import { withMaxAge } from './output.ts';

const notificationJson = jsonSchemaOf(notificationSchema);

const query = z.strictObject({
  ackId: z.string().optional(),
  productId: z.string().optional(),
  name: z
    .string()
    .max(namePatternMax)
    .optional()
    .describe(
      `Product name. \`*\` matches any text, \`?\` matches one character. A name of more than ${namePatternMax} bytes matches no pattern.`,
    ),
  event: z
    .array(z.string().toLowerCase())
    .optional()
    .describe('Only notifications with one of these events.'),
  subscription: z.string().optional(),
  source: z.enum(notificationSources).optional(),
  time: z
    .enum(['received', 'notification'])
    .default('received')
    .describe(
      'Time that `since` and `until` refer to: time of receipt, or date of the notification.',
    ),
  since: dateParameter
    .optional()
    .describe('Start of the time range, inclusive, ISO 8601. UTC if the time has no time zone.'),
  until: dateParameter
    .optional()
    .describe('End of the time range, exclusive, ISO 8601. UTC if the time has no time zone.'),
  maxAge: maxAgeParameter,
  after: positionParameter.optional().describe('Only notifications with a higher position.'),
  before: positionParameter.optional().describe('Only notifications with a lower position.'),
  order: z.enum(['newest', 'oldest']).default('newest').describe('Sort order, by position.'),
  limit: limitParameter,
});

/** Returns the route. */
function notificationsRoute(log: NotificationLog): ApiRoute {
  return apiRoute({
    path: '/api/notifications',
    operationId: 'listNotifications',
    summary: 'Received notifications',
    description: 'Pages are sorted by position. New notifications do not change the next pages.',
    query,
    answer: z.object({ notifications: z.array(notificationJson), next: nextField }),
    respond: async (params, url, signal) => {
      const { event, since, until, maxAge, after, before, limit, ...same } = params;
      const found = withMaxAge(log, maxAge, signal).find({
        ...same,
        events: event,
        sinceUs: since,
        untilUs: until,
        afterPosition: after,
        beforePosition: before,
        limit: limit + 1,
      });
      const rows = await collect(found, signal);
      const parameter = params.order === 'oldest' ? 'after' : 'before';
      const { page, next } = pageOf(rows, { limit, url, parameter }, ({ position }) => position);
      return { body: { notifications: page.map(toNotificationJson), next } };
    },
  });
}

const oneQuery = z.strictObject({
  position: positionParameter
    .optional()
    .describe('Position in the log. The default is the newest notification.'),
});

/** Returns the route of one notification with its body. */
function notificationRoute(log: NotificationLog): ApiRoute {
  return apiRoute({
    path: '/api/notification',
    operationId: 'showNotification',
    summary: 'One notification with its body',
    description: 'The body is decoded text.',
    query: oneQuery,
    answer: notificationJson.extend({ body: z.string() }),
    respond: async ({ position }, _url, signal) => {
      const around =
        position === undefined ? {} : { afterPosition: position - 1, beforePosition: position + 1 };
      const [row] = await collect(log.find({ ...around, limit: 1 }), signal);
      if (row === undefined) {
        throw new AppError('not_found', 'There is no such notification. It may have been pruned.');
      }
      const body = new TextDecoder().decode(await log.body(row.position));
      return { body: { ...toNotificationJson(row), body } };
    },
  });
}

export const routes = ({ notifications }: ConsoleParts): ServedRoute[] => [
  { route: notificationsRoute(notifications), line: 'log' },
  { route: notificationRoute(notifications), line: 'log' },
];
