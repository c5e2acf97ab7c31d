/** `/api/subscriptions`, `/api/alerts` and `/api/quarantine`: the operation of the receiver. */

import { z } from 'zod';
import { type AdministrationReader, historyActions, historyActors } from '../../admin/account.ts';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  flagParameter,
  limitParameter,
  nextField,
  pageOf,
  positionParameter,
} from '../../core/api/api-route.ts';
import { isAppError } from '../../core/terms/app-error.ts';
import { jsonSchemaOf, toJson } from '../../core/terms/json-rows.ts';
import type { Quarantine, QuarantineEntry } from '../../core/terms/ports.ts';
import {
  alertSchema,
  quarantineSchema,
  toAlertJson,
  toQuarantineEntryJson,
  toQuarantineJson,
} from '../../core/terms/read-models.ts';
import type { AlertReader } from '../alerts/terms.ts';
import { collect } from '../notifications/route.ts';
import { otherPathSchema, readOtherPaths, subscriptionSchema } from '../subscriptions/state.ts';
import type { Status } from './status.ts';

const historySchema = z.object({
  atUs: z.number(),
  subscriptionId: z.string().nullable(),
  action: z.enum(historyActions),
  actor: z.enum(historyActors).describe('Command that made the change.'),
  reason: z.string(),
});

/** Maximum history per subscription. */
const historyMax = 50;

const subscriptionsSchema = z.object({
  subscriptions: z.array(
    z.object({
      ...subscriptionSchema.shape,
      history: z
        .array(historySchema)
        .describe(`Changes of the subscription, the newest ${historyMax} first.`),
    }),
  ),
  otherPaths: z
    .array(otherPathSchema)
    .describe('Paths that received notifications, but belong to no registered subscription.'),
});

/** Returns the route. */
export function subscriptionsRoute({
  administration,
  status,
}: {
  administration: AdministrationReader;
  status: () => Promise<Status>;
}): ApiRoute {
  return apiRoute({
    path: '/api/subscriptions',
    operationId: 'listSubscriptions',
    summary: 'Subscriptions as the receiver knows them, with gaps and history',
    description:
      'Registered subscriptions, and paths that received notifications without a registration. The states are the last known ones: the request does not query the catalogue.',
    query: z.strictObject({}),
    answer: jsonSchemaOf(subscriptionsSchema),
    respond: async () => {
      const { subscriptions } = await status();
      const withHistory = subscriptions.map(async (one) => ({
        ...one,
        history: await administration.history({ subscription: one.name, limit: historyMax }),
      }));
      const found = {
        subscriptions: await Promise.all(withHistory),
        otherPaths: await readOtherPaths(administration),
      };
      return { body: toJson(subscriptionsSchema, found) };
    },
  });
}

const alertQuery = z.strictObject({
  all: flagParameter.describe('`true`: also resolved alerts.'),
  since: dateParameter
    .optional()
    .describe('Only alerts that were active at this time or later, ISO 8601.'),
  until: dateParameter.optional().describe('Only alerts raised before this time, ISO 8601.'),
  before: positionParameter.optional().describe('Only alerts with a lower id.'),
  limit: limitParameter,
});

/** Returns the route. */
export function alertsRoute(alerts: AlertReader): ApiRoute {
  return apiRoute({
    path: '/api/alerts',
    operationId: 'listAlerts',
    summary: 'Active and resolved alerts, with evidence and next step',
    description: 'Pages of alerts, the newest first; by default only active alerts.',
    query: alertQuery,
    answer: z.object({ alerts: z.array(jsonSchemaOf(alertSchema)), next: nextField }),
    respond: async ({ all, since, until, before, limit }, url) => {
      const bounds = { sinceUs: since, untilUs: until, beforeId: before };
      const rows = await alerts.alerts({ all: all === 'true', ...bounds, limit: limit + 1 });
      const { page, next } = pageOf(rows, { limit, url, parameter: 'before' }, ({ id }) => id);
      return { body: { alerts: page.map(toAlertJson), next } };
    },
  });
}

const quarantineFields = jsonSchemaOf(quarantineSchema).extend({
  headers: z
    .array(z.string())
    .optional()
    .describe('Names and values, alternating, without credentials. Only with the parameter `id`.'),
  bodyBase64: z
    .base64()
    .optional()
    .describe('The body as received, as Base64. Only with the parameter `id`.'),
});

const quarantineQuery = z.strictObject({
  id: positionParameter.optional().describe('Only this body, with its headers and content.'),
  released: flagParameter.describe('`true`: also released bodies.'),
  before: positionParameter.optional().describe('Only bodies with a lower id.'),
  limit: limitParameter,
});

type QuarantineReader = Pick<Quarantine, 'quarantined' | 'quarantineEntry'>;

/** Returns the route. */
export function quarantineRoute(quarantine: QuarantineReader): ApiRoute {
  return apiRoute({
    path: '/api/quarantine',
    operationId: 'listQuarantine',
    summary: 'Quarantined bodies with the reasons',
    description:
      'Pages of bodies that are not valid notifications, the newest first. The content of a body is not trustworthy: escape it in markup.',
    query: quarantineQuery,
    answer: z.object({ quarantine: z.array(quarantineFields), next: nextField }),
    respond: async ({ id, released, before: beforeId, limit }, url, signal) => {
      if (id !== undefined) {
        const entry = await entryOrNull(quarantine, id);
        return {
          body: { quarantine: entry === null ? [] : [toQuarantineEntryJson(entry)], next: null },
        };
      }
      const options = { released: released === 'true', beforeId, limit: limit + 1 };
      const rows = await collect(quarantine.quarantined(options), signal);
      const { page, next } = pageOf(rows, { limit, url, parameter: 'before' }, (row) => row.id);
      return { body: { quarantine: page.map(toQuarantineJson), next } };
    },
  });
}

async function entryOrNull(
  quarantine: QuarantineReader,
  id: number,
): Promise<QuarantineEntry | null> {
  try {
    return await quarantine.quarantineEntry(id);
  } catch (error) {
    if (isAppError(error, 'not_found')) return null;
    throw error;
  }
}
