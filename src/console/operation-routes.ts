/** `/api/subscriptions`, `/api/alerts` and `/api/quarantine`: the operation of the receiver. */
import { z } from 'zod';
import { type AdministrationReader, historyActions, historyActors } from '../domain/account.ts';
import {
  type AlertReader,
  alertChannels,
  alertKinds,
  alertSeverities,
  toAlertJson,
} from '../domain/alerts.ts';
import { isAppError } from '../domain/app-error.ts';
import { timeField, toQuarantineJson } from '../domain/json-rows.ts';
import { faultCodes } from '../domain/notification.ts';
import { notificationSources, type Quarantine, type QuarantineEntry } from '../domain/ports.ts';
import type { Status } from '../domain/status.ts';
import { subscriptionTypes } from '../domain/subscription.ts';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  flagParameter,
  limitParameter,
  nextField,
  pageOf,
  positionParameter,
} from './api-route.ts';
import { collect } from './notifications-route.ts';
import {
  historyMax,
  readSubscriptionRows,
  subscriptionStates,
  toSubscriptionJson,
} from './subscription-rows.ts';

const historyFields = z.object({
  at: timeField,
  subscriptionId: z.string().nullable(),
  action: z.enum(historyActions),
  actor: z.enum(historyActors).describe('Command that made the change.'),
  reason: z.string(),
});

const queueFields = z.object({
  length: z.int().nullable().describe('Number of unread entries; null before the first answer.'),
  lengthMax: z.int().describe('With more entries, the catalogue drops the oldest ones.'),
  oldestAt: timeField.nullable().describe('NotificationDate of the oldest unread entry.'),
  emptiedAt: timeField.nullable().describe('Time when the queue was last read to its end.'),
  readAt: timeField.nullable().describe('Time of the last successful request.'),
  entriesPerHour: z.number().nullable().describe('Mean of the last 24 hours.'),
  failure: z.string().nullable().describe('Error of the last request.'),
  otherReaderAt: timeField
    .nullable()
    .describe('Last time that entries left the queue without earshot.'),
});

/** Fields with the meaning of `earshot subscriptions list --json`, and more. */
const subscriptionFields = z.object({
  name: z.string().nullable().describe('Null for the path `/notifications` without a name.'),
  id: z.string().nullable().describe('Id in the catalogue; null if none is known.'),
  state: z
    .enum(subscriptionStates)
    .nullable()
    .describe(
      'Last known state. `unfinished`: a change of the subscription is not complete. `absent`: not in the catalogue. `unregistered`: the path received notifications, but earshot has registered no such subscription. Null if the status could not be read.',
    ),
  type: z.enum(subscriptionTypes),
  events: z.array(z.string()).nullable().describe('Null for an unregistered subscription.'),
  filter: z
    .string()
    .nullable()
    .describe('Filter expression; empty for all products, null for an unregistered subscription.'),
  path: z
    .string()
    .nullable()
    .describe(
      'Path of the public listener to which the catalogue pushes; null for a pull subscription.',
    ),
  changedByPerson: z
    .boolean()
    .describe(
      'True if a person changed the status in the catalogue, which maintenance then keeps.',
    ),
  runningSeenAt: timeField
    .nullable()
    .describe('Last time it was seen running in the catalogue; null if never.'),
  pausedSeenAt: timeField
    .nullable()
    .describe('First time it was seen paused since it last ran; null while it runs.'),
  lastDeliveryAt: timeField.nullable().describe('Time of the last push.'),
  pausesAt: timeField
    .nullable()
    .describe(
      'Time at which the catalogue pauses the subscription, unless a notification arrives first.',
    ),
  cancelsAt: timeField
    .nullable()
    .describe(
      'Time at which the catalogue deletes the subscription, unless a notification arrives first.',
    ),
  queue: queueFields
    .nullable()
    .describe('Queue of a pull subscription, as last read; null for push.'),
  senders: z
    .array(z.object({ username: z.string(), lastAt: timeField }))
    .describe('User names that pushed to the path, with the time of the last push.'),
  gaps: z
    .array(z.object({ from: timeField, to: timeField.nullable(), reason: z.string() }))
    .describe(
      'Time spans in which events were not pushed, the newest first. `to` is null while a gap is open.',
    ),
  history: z
    .array(historyFields)
    .describe(`Changes of the subscription, the newest ${historyMax} first.`),
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
    answer: z.object({ subscriptions: z.array(subscriptionFields) }),
    respond: async () => {
      const rows = await readSubscriptionRows(administration, await status());
      return { body: { subscriptions: rows.map(toSubscriptionJson) } };
    },
  });
}

/** Fields of `earshot alerts --json`, in the same order. */
const alertFields = z.object({
  id: z.int(),
  kind: z.enum(alertKinds),
  subject: z
    .string()
    .describe('Affected subscription or sink; empty if there is only one, or all are affected.'),
  severity: z.enum(alertSeverities),
  cause: z.string(),
  evidence: z.array(z.string()).describe('Measurements, one sentence each.'),
  nextStep: z.string(),
  raisedAt: timeField,
  resolvedAt: timeField.nullable().describe('Null for an active alert.'),
  channels: z
    .array(z.enum(alertChannels))
    .describe('Channels through which the alert was or will be sent.'),
});

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
    answer: z.object({ alerts: z.array(alertFields), next: nextField }),
    respond: async ({ all, since, until, before, limit }, url) => {
      const bounds = { sinceUs: since, untilUs: until, beforeId: before };
      const rows = await alerts.alerts({ all: all === 'true', ...bounds, limit: limit + 1 });
      const { page, next } = pageOf(rows, { limit, url, parameter: 'before' }, ({ id }) => id);
      return { body: { alerts: page.map(toAlertJson), next } };
    },
  });
}

/** Fields of `earshot quarantine list --json`, in the same order. */
const quarantineFields = z.object({
  id: z.int(),
  receivedAt: timeField,
  subscription: z.string().nullable(),
  source: z.enum(notificationSources),
  reason: z.string().describe('Code of the first fault.'),
  faults: z
    .array(
      z.object({
        code: z.enum(faultCodes),
        index: z.int().nullable().describe('Index in the array; null for the whole body.'),
        message: z.string(),
      }),
    )
    .describe('Each problem of the body.'),
  bodyBytes: z.int(),
  releasedAt: timeField.nullable().describe('Null if the body is still quarantined.'),
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
        return { body: { quarantine: entry === null ? [] : [toEntryJson(entry)], next: null } };
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

function toEntryJson(entry: QuarantineEntry) {
  const bodyBase64 = Buffer.from(entry.body).toString('base64');
  return { ...toQuarantineJson(entry), headers: entry.headers, bodyBase64 };
}
