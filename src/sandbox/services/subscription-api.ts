/** The catalogue's subscription service: subscriptions, and Read and Ack of their queues. */
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
import type { Queues } from '../delivery/queue.ts';
import { type LiveServiceSettings, queryFaults, takeNext } from '../settings.ts';
import {
  type ErrorForm,
  formedError,
  InvalidInput,
  injectFault,
  type ServiceAnswer,
} from './service-answer.ts';

export interface SubscriptionServices {
  readonly subscriptions: Subscriptions;
  readonly queues: Queues;
  readonly liveSettings: LiveServiceSettings;
}

/** Answers a request; `cut` closes the connection instead. Throws InvalidInput and SubscriptionRefusal. */
type Operation = (body: string) => ServiceAnswer | 'cut';

/** Parameters of a request, and what answers it. */
interface Call extends SubscriptionServices, ErrorForm {
  readonly params: URLSearchParams;
}

/** Returns the operations of a path below `/odata/v1` by method; null for an unknown path. */
export function subscriptionOperations(path: string, call: Call): Record<string, Operation> | null {
  const { subscriptions } = call;
  const ok = (body: object) => ({ status: 200, body });
  if (path === '/Subscriptions') return { POST: (body) => create(body, call) };
  if (path === '/Subscriptions/Info') return { GET: () => ok(subscriptions.list().map(toJson)) };
  // Ids are unquoted in the path; a quoted id is an unknown path.
  const pattern = /^\/Subscriptions(?:\(|%28)([\da-z-]+)(?:\)|%29)(\/Read|\/Ack)?$/i;
  const [, id, operation] = pattern.exec(path) ?? [];
  if (id === undefined) return null;
  if (operation === '/Read') return { GET: () => answerRead(id, call) };
  if (operation === '/Ack') return { POST: () => answerAck(id, call) };
  const remove = () => {
    subscriptions.remove(id);
    return { status: 204, body: null };
  };
  return {
    GET: () => ok(toJson(subscriptions.find(id))),
    PATCH: (body) => {
      const changes = readChanges(body);
      if (changes === 'cancelled') return remove();
      return ok(toJson(subscriptions.edit(id, changes)));
    },
    DELETE: remove,
  };
}

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
  // Validated but ignored: the answers are always false and 1.
  StageOrder: z.boolean().nullish(),
  Priority: z.number().nullish(),
  ...changesSchema.shape,
});

function create(body: string, call: Call): ServiceAnswer | 'cut' {
  const counts = call.liveSettings.current();
  if (takeNext(['createsRefused503'], counts) !== undefined) return unavailable(call);
  const subscription = call.subscriptions.create(readCreation(body));
  if (takeNext(['createAnswersLost'], counts) !== undefined) return 'cut';
  return { status: 201, body: toJson(subscription) };
}

/** Returns the answer while the service is down. */
export function unavailable(form: ErrorForm): ServiceAnswer {
  return formedError(503, 'Service temporarily unavailable.', form);
}

function readCreation(bodyText: string): NewSubscription {
  const body = readBody(creationSchema, bodyText);
  if (body.Status === 'cancelled') refuse('A subscription cannot be created as cancelled.');
  const { SubscriptionType: type, NotificationEndpoint: endpoint } = body;
  if (type === 'push' && endpoint == null) {
    refuse('A push subscription needs a NotificationEndpoint.');
  }
  const { NotificationEpUsername: username = null, NotificationEpPassword: password = null } = body;
  return {
    status: body.Status ?? 'running',
    events: [...new Set(body.SubscriptionEvent)],
    filter: body.FilterParam ?? '',
    address: type === 'pull' || endpoint == null ? null : { endpoint, username, password },
  };
}

/** Returns 'cancelled' if the edit deletes the subscription. */
function readChanges(bodyText: string): SubscriptionChanges | 'cancelled' {
  const { Status, ...body } = readBody(changesSchema.loose(), bodyText);
  const fixed = Object.keys(body).find((field) => !(field in changesSchema.shape));
  if (fixed !== undefined) refuse(`${fixed} cannot be edited.`);
  if (Status === 'cancelled') return 'cancelled';
  const { NotificationEndpoint: endpoint } = body;
  const { NotificationEpUsername: username, NotificationEpPassword: password } = body;
  const address = {
    ...(endpoint == null ? {} : { endpoint }),
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
  };
  const isChanged = Object.keys(address).length > 0;
  return { status: Status ?? undefined, address: isChanged ? address : undefined };
}

/** Parses a body. Throws InvalidInput without the values, which may be secrets. */
function readBody<Schema extends z.ZodType>(schema: Schema, bodyText: string): z.output<Schema> {
  let json: unknown;
  try {
    json = JSON.parse(bodyText);
  } catch {
    throw new InvalidInput([{ type: 'json_invalid', loc: ['body', 0], msg: 'JSON decode error' }]);
  }
  const { data, error } = schema.safeParse(json);
  if (error === undefined) return data;
  throw new InvalidInput(
    error.issues.map(({ code, path, message }) => {
      return { type: code, loc: ['body', ...path.map(String)], msg: message, input: null };
    }),
  );
}

/** Formats a subscription as in the documented examples, without credentials. */
function toJson(subscription: Subscription): object {
  const { id, filter, status, address, events, submittedMs, lastNotificationMs } = subscription;
  return {
    Id: id,
    SubscriptionType: isPush(subscription) ? 'push' : 'pull',
    FilterParam: filter,
    StageOrder: false,
    Priority: 1,
    Status: status,
    ...(address && { NotificationEndpoint: address.endpoint }),
    ...(lastNotificationMs !== null && { LastNotificationDate: toIso(lastNotificationMs) }),
    SubscriptionEvent: events,
    SubmissionDate: toIso(submittedMs),
    '@odata.context': '$metadata#OData.CSC.Subscription',
  };
}

const topMax = 20;

function answerRead(id: string, call: Call): ServiceAnswer {
  const { params, settings } = call;
  const top = readTop(params.get('$top') ?? '1');
  const { subscription, queue } = queueOf(id, call);
  if (subscription.status === 'paused' && settings.readOfPaused === 'refuse') {
    refuse(`Subscription with id ${id} is paused.`);
  }
  const ownFaults = queue.isLastReadOutdated() ? (['doubleRead'] as const) : [];
  const fault = takeNext([...queryFaults, ...ownFaults], settings.nextQueueCalls);
  const read = () => (fault === 'doubleRead' ? queue.readAgain() : queue.read(top));
  return injectFault(fault, () => ({ status: 200, body: read() }), call);
}

function answerAck(id: string, call: Call): ServiceAnswer | 'cut' {
  const { params, settings } = call;
  const ackId = params.get('$ackid');
  if (ackId === null) {
    const loc = ['query', '$ackid'];
    throw new InvalidInput([{ type: 'missing', loc, msg: 'Field required', input: null }]);
  }
  const { subscription, queue } = queueOf(id, call);
  const fault = takeNext([...queryFaults, 'ackAnswerLost'], settings.nextQueueCalls);
  if (fault === 'connectionCut') return 'cut';
  const acknowledge = (): ServiceAnswer => {
    const acknowledged = queue.acknowledge(ackId);
    // An Ack without effect does not change LastNotificationDate.
    if (acknowledged > 0) call.subscriptions.delivered(subscription);
    const body = {
      '@odata.context': '$metadata#Notification/$entity',
      AckMessagesNum: acknowledged,
      CurrentQueueLength: queue.state().length,
      MaxQueueLength: settings.queueMax,
    };
    return { status: 200, body };
  };
  const answer = injectFault(fault, acknowledge, call);
  return fault === 'ackAnswerLost' ? 'cut' : answer;
}

function queueOf(id: string, { subscriptions, queues }: SubscriptionServices) {
  const subscription = subscriptions.find(id);
  // The real service's behaviour is not known.
  if (isPush(subscription)) refuse(`Subscription with id ${id} is not a pull subscription.`);
  return { subscription, queue: queues.of(subscription) };
}

/** Reads `$top`. Throws InvalidInput with the recorded errors of `$top` in product queries. */
function readTop(input: string): number {
  const fail = (type: string, msg: string): never => {
    throw new InvalidInput([{ type, loc: ['query', '$top'], msg, input }]);
  };
  if (!/^\s*[+-]?\d+\s*$/.test(input)) {
    fail('int_parsing', 'Input should be a valid integer, unable to parse string as an integer');
  }
  const top = Number(input);
  if (top < 1) fail('greater_than_equal', 'Input should be greater than or equal to 1');
  if (top > topMax) fail('less_than_equal', `Input should be less than or equal to ${topMax}`);
  return top;
}
