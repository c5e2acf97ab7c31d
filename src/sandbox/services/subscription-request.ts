/** Reads the bodies of the subscription service; what is odd in them is told as its framework does. */
import { z } from 'zod';
import { subscriptionStatuses } from '../account/subscription.ts';
import { SubscriptionRefusal } from '../account/subscription-refusal.ts';
import type { NewSubscription, SubscriptionChanges } from '../account/subscriptions.ts';
import { notificationEvents } from '../delivery/notification.ts';

/** One fault of a body, as in the recorded 422 answers. */
export interface BodyFault {
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly input: unknown;
  readonly ctx?: object;
}

/** Thrown for a body that is not of the right shape; answered 422 with the list. */
export class InvalidBody extends Error {
  override readonly name = 'InvalidBody';
  readonly faults: readonly BodyFault[];

  constructor(faults: readonly BodyFault[]) {
    super('The body is not of the right shape.');
    this.faults = faults;
  }
}

const status = z.enum(subscriptionStatuses).nullish();
const address = {
  NotificationEndpoint: z.string().nullish(),
  NotificationEpUsername: z.string().nullish(),
  NotificationEpPassword: z.string().nullish(),
};

const creationSchema = z.object({
  SubscriptionType: z.enum(['push', 'pull']),
  // One client posts a text with commas.
  SubscriptionEvent: z.preprocess(
    (events) => (typeof events === 'string' ? events.split(/\s*,\s*/) : (events ?? ['created'])),
    z.array(z.enum(notificationEvents)).min(1),
  ),
  FilterParam: z.string().nullish(),
  StageOrder: z.boolean().nullish(),
  // Checked and forgotten: it is always 1.
  Priority: z.number().nullish(),
  Status: status,
  ...address,
});
const changesSchema = z.object({ Status: status, ...address });

const editableFields = Object.keys(changesSchema.shape);

/** Reads the body of a creation. Throws InvalidBody, and SubscriptionRefusal for a request that makes no sense. */
export function readCreation(text: string): NewSubscription {
  const body = check(creationSchema, parseJson(text));
  if (body.Status === 'cancelled') refuse('A subscription cannot be created as cancelled.');
  return {
    status: body.Status ?? 'running',
    events: body.SubscriptionEvent,
    filter: body.FilterParam ?? '',
    stageOrder: body.StageOrder ?? false,
    address: body.SubscriptionType === 'pull' ? null : readAddress(body),
  };
}

/** Reads the body of an edit; 'cancelled' when it deletes the subscription. Throws as `readCreation` does. */
export function readChanges(text: string): SubscriptionChanges | 'cancelled' {
  const json = parseJson(text);
  const body = check(changesSchema, json);
  const fixed = Object.keys(Object(json)).find((field) => !editableFields.includes(field));
  if (fixed !== undefined) refuse(`${fixed} cannot be edited.`);
  if (body.Status === 'cancelled') return 'cancelled';
  const { NotificationEndpoint: endpoint } = body;
  const changes = {
    ...(endpoint == null ? {} : { endpoint }),
    ...('NotificationEpUsername' in body ? { username: body.NotificationEpUsername ?? null } : {}),
    ...('NotificationEpPassword' in body ? { password: body.NotificationEpPassword ?? null } : {}),
  };
  return {
    status: body.Status ?? undefined,
    address: Object.keys(changes).length === 0 ? undefined : changes,
  };
}

function readAddress(body: z.output<typeof creationSchema>) {
  const { NotificationEndpoint: endpoint } = body;
  const { NotificationEpUsername: username, NotificationEpPassword: password } = body;
  if (endpoint == null) return refuse('A push subscription needs a NotificationEndpoint.');
  return { endpoint, username: username ?? null, password: password ?? null };
}

function refuse(message: string): never {
  throw new SubscriptionRefusal('request', message);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const ctx = { error: 'Expecting value' };
    const type = 'json_invalid';
    throw new InvalidBody([{ type, loc: ['body', 0], msg: 'JSON decode error', input: {}, ctx }]);
  }
}

function check<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = schema.safeParse(body, { reportInput: true });
  if (result.success) return result.data;
  throw new InvalidBody(result.error.issues.map(toFault));
}

const expectations: Record<string, [type: string, what: string]> = {
  string: ['string_type', 'string'],
  boolean: ['bool_type', 'boolean'],
  number: ['int_type', 'integer'],
  array: ['list_type', 'list'],
  object: ['model_attributes_type', 'dictionary or object to extract fields from'],
};

function toFault(issue: z.core.$ZodIssue): BodyFault {
  const path = issue.path.filter((step) => typeof step !== 'symbol');
  const loc = ['body', ...path];
  const input = shownInput(path, issue.input);
  if (issue.input === undefined) {
    return { type: 'missing', loc, msg: 'Field required', input: null };
  }
  if (issue.code === 'invalid_value') {
    const expected = listed(issue.values.map((value) => `'${String(value)}'`));
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

/** The framework repeats what was sent; whatever may hold a secret is left out here. */
function shownInput([field]: readonly (string | number)[], input: unknown): unknown {
  const isSecret = field === undefined || String(field).startsWith('NotificationEp');
  return isSecret || typeof input === 'object' ? null : input;
}

function listed(values: readonly string[]): string {
  return `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
}
