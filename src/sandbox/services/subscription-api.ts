/** The catalogue's subscription service: requests, answers, and errors of invalid bodies. */
import { z } from 'zod';
import {
  isPush,
  type NewSubscription,
  refuse,
  type Subscription,
  type SubscriptionChanges,
  type Subscriptions,
  subscriptionStatuses,
  toIso,
} from '../account.ts';
import { notificationEvents } from '../delivery/notification.ts';
import type { LiveServiceSettings, ServiceSettings } from '../live-settings.ts';
import { formedError, InvalidBody, type ServiceAnswer } from './service-answer.ts';

const text = z.string().nullish();
const changesSchema = z.object({
  Status: z.enum(subscriptionStatuses).nullish(),
  NotificationEndpoint: text,
  NotificationEpUsername: text,
  NotificationEpPassword: text,
});
const creationSchema = z.object({
  SubscriptionType: z.enum(['push', 'pull']),
  // One known client sends a comma-separated string.
  SubscriptionEvent: z.preprocess(
    (events) => (typeof events === 'string' ? events.split(/\s*,\s*/) : (events ?? ['created'])),
    z.array(z.enum(notificationEvents)).min(1),
  ),
  FilterParam: text,
  StageOrder: z.boolean().nullish(),
  // Validated but ignored: the answer is always 1.
  Priority: z.number().nullish(),
  ...changesSchema.shape,
});

/** Answers a request; `cut` closes the connection instead. Throws InvalidBody and SubscriptionRefusal. */
export type Operation = (body: string) => ServiceAnswer | 'cut';

/** Returns the operations of a path below `/odata/v1` by method; null for an unknown path. */
export function subscriptionOperations(
  path: string,
  {
    subscriptions,
    liveSettings,
  }: { subscriptions: Subscriptions; liveSettings: LiveServiceSettings },
  requestId: string,
): Record<string, Operation> | null {
  const settings = liveSettings.current();
  const ok = (body: object) => ({ status: 200, body });
  if (path === '/Subscriptions') {
    return { POST: (body) => create(body, subscriptions, liveSettings, requestId) };
  }
  if (path === '/Subscriptions/Info') {
    return { GET: () => ok(subscriptions.list().map((one) => toJson(one, settings))) };
  }
  // Ids are unquoted in the path; a quoted id is an unknown path.
  const [, id] = /^\/Subscriptions(?:\(|%28)([\da-z-]+)(?:\)|%29)$/i.exec(path) ?? [];
  if (id === undefined) return null;
  const remove = () => {
    subscriptions.remove(id);
    return { status: 204, body: null };
  };
  return {
    ...(settings.getById && { GET: () => ok(toJson(subscriptions.find(id), settings)) }),
    PATCH: (body) => {
      const changes = readChanges(body);
      if (changes === 'cancelled') return remove();
      return ok(toJson(subscriptions.edit(id, changes), settings));
    },
    DELETE: remove,
  };
}

function create(
  body: string,
  subscriptions: Subscriptions,
  liveSettings: LiveServiceSettings,
  requestId: string,
): ServiceAnswer | 'cut' {
  const settings = liveSettings.current();
  const { createsRefused503, createAnswersLost } = settings;
  if (createsRefused503 > 0) {
    liveSettings.change({ createsRefused503: createsRefused503 - 1 });
    return unavailable(settings, requestId);
  }
  const subscription = subscriptions.create(readCreation(body));
  if (createAnswersLost > 0) {
    liveSettings.change({ createAnswersLost: createAnswersLost - 1 });
    return 'cut';
  }
  return { status: 201, body: toJson(subscription, settings) };
}

/** Returns the answer while the service is down. */
export function unavailable(settings: ServiceSettings, requestId: string): ServiceAnswer {
  return formedError(503, 'Service temporarily unavailable.', settings, requestId);
}

function readCreation(bodyText: string): NewSubscription {
  const body = check(creationSchema, parseJson(bodyText));
  if (body.Status === 'cancelled') refuse('A subscription cannot be created as cancelled.');
  const { NotificationEpUsername: username, NotificationEpPassword: password } = body;
  const { SubscriptionType: type, NotificationEndpoint: endpoint } = body;
  if (type === 'push' && endpoint == null) {
    refuse('A push subscription needs a NotificationEndpoint.');
  }
  return {
    status: body.Status ?? 'running',
    events: body.SubscriptionEvent,
    filter: body.FilterParam ?? '',
    stageOrder: body.StageOrder ?? false,
    address:
      type === 'pull' || endpoint == null
        ? null
        : { endpoint, username: username ?? null, password: password ?? null },
  };
}

/** Returns 'cancelled' if the edit deletes the subscription. */
function readChanges(bodyText: string): SubscriptionChanges | 'cancelled' {
  const json = parseJson(bodyText);
  const body = check(changesSchema, json);
  const fixed = Object.keys(Object(json)).find((field) => !(field in changesSchema.shape));
  if (fixed !== undefined) refuse(`${fixed} cannot be edited.`);
  if (body.Status === 'cancelled') return 'cancelled';
  const { NotificationEndpoint: endpoint } = body;
  const address = {
    ...(endpoint == null ? {} : { endpoint }),
    ...('NotificationEpUsername' in body ? { username: body.NotificationEpUsername ?? null } : {}),
    ...('NotificationEpPassword' in body ? { password: body.NotificationEpPassword ?? null } : {}),
  };
  return {
    status: body.Status ?? undefined,
    address: Object.keys(address).length === 0 ? undefined : address,
  };
}

function parseJson(bodyText: string): unknown {
  try {
    return JSON.parse(bodyText);
  } catch {
    const ctx = { error: 'Expecting value' };
    const type = 'json_invalid';
    throw new InvalidBody([{ type, loc: ['body', 0], msg: 'JSON decode error', input: {}, ctx }]);
  }
}

function check<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = schema.safeParse(body, { reportInput: true });
  if (result.success) return result.data;
  throw new InvalidBody(result.error.issues.map(toFieldError));
}

const expectations: Record<string, [type: string, what: string]> = {
  string: ['string_type', 'string'],
  boolean: ['bool_type', 'boolean'],
  number: ['int_type', 'integer'],
  array: ['list_type', 'list'],
  object: ['model_attributes_type', 'dictionary or object to extract fields from'],
};

/** Describes a validation error like the framework of the real service. */
function toFieldError(issue: z.core.$ZodIssue): object {
  const path = issue.path.filter((step) => typeof step !== 'symbol');
  const loc = ['body', ...path];
  const input = shownInput(path, issue.input);
  if (issue.input === undefined) {
    return { type: 'missing', loc, msg: 'Field required', input: null };
  }
  if (issue.code === 'invalid_value') {
    const values = issue.values.map((value) => `'${String(value)}'`);
    const expected = `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
    return { type: 'enum', loc, msg: `Input should be ${expected}`, input, ctx: { expected } };
  }
  if (issue.code === 'too_small') {
    const msg = 'List should have at least 1 item after validation, not 0';
    return { type: 'too_short', loc, msg, input };
  }
  const expected = issue.code === 'invalid_type' ? issue.expected : 'object';
  const [type, what] = expectations[expected] ?? ['value_error', expected];
  return { type, loc, msg: `Input should be a valid ${what}`, input };
}

/** Returns the input as the framework does, but null for anything that may contain a secret. */
function shownInput([field]: readonly (string | number)[], input: unknown): unknown {
  const isSecret = field === undefined || String(field).startsWith('NotificationEp');
  return isSecret || typeof input === 'object' ? null : input;
}

/** Formats a subscription as in the documented examples, without credentials. */
function toJson(subscription: Subscription, settings: ServiceSettings): object {
  const { id, filter, stageOrder, status, address, events, lastNotificationMs } = subscription;
  const { eventsAs, stageOrderReturned, lastNotificationDateShown } = settings;
  const submissionDate = toIso(subscription.submittedMs);
  return {
    Id: id,
    SubscriptionType: isPush(subscription) ? 'push' : 'pull',
    FilterParam: filter,
    StageOrder: stageOrderReturned && stageOrder,
    Priority: 1,
    Status: status,
    ...(address && { NotificationEndpoint: address.endpoint }),
    ...(lastNotificationMs !== null &&
      lastNotificationDateShown && { LastNotificationDate: toIso(lastNotificationMs) }),
    SubscriptionEvent: eventsAs === 'array' ? events : events.join(', '),
    // An example of 2024 has four digits and no zone, but is UTC.
    SubmissionDate:
      settings.submissionDateForm === 'withoutZone'
        ? submissionDate.replace('Z', '0')
        : submissionDate,
    '@odata.context': '$metadata#OData.CSC.Subscription',
  };
}
