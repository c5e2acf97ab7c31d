/** Control port: inspects and controls the sandbox. Errors are problem JSON (RFC 9457). */
import { Hono, type HonoRequest } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { HTTPException } from 'hono/http-exception';
import { methodNotAllowed } from 'hono/method-not-allowed';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { z } from 'zod';
import {
  addedSubscriptionSchema,
  SubscriptionRefusal,
  type Subscriptions,
  viewOf,
} from './account.ts';
import type { SandboxClock } from './clock.ts';
import { type DeliveryRecord, deliveryOutcomes } from './delivery/delivery-record.ts';
import type { LiveFaults } from './delivery/faults.ts';
import { notificationEvents } from './delivery/notification.ts';
import { changeQueue, type Queues, queueChangeSchema, queueStates } from './delivery/queue.ts';
import type { InferenceRecord } from './inference/inference-app.ts';
import type { LiveInferenceSettings, LiveServiceSettings } from './live-settings.ts';
import { catalogueEvents, type EventLedger } from './publishing/events.ts';
import type { Holdings } from './publishing/holdings.ts';
import type { Publisher } from './publishing/publisher.ts';
import type { RequestLog } from './services/catalogue.ts';

export interface ControlOptions {
  /** Shown at `/`. Must not contain secrets. */
  readonly about: Readonly<Record<string, string | null>>;
  readonly record: DeliveryRecord;
  readonly holdings: Pick<Holdings, 'totals' | 'find'>;
  readonly ledger: EventLedger;
  readonly faults: LiveFaults;
  readonly clock: SandboxClock;
  readonly publisher: Publisher;
  readonly subscriptions: Subscriptions;
  readonly queues: Queues;
  readonly liveSettings: LiveServiceSettings;
  readonly requests: RequestLog;
  readonly inference: {
    readonly liveSettings: LiveInferenceSettings;
    readonly record: InferenceRecord;
  };
  /** Aborts long operations. */
  readonly signal: AbortSignal;
}

const bodyBytesMax = 64 * 1024;
const publishMax = 10_000;
// About ten years: every expiry of a subscription has happened by then.
const advanceMaxMs = 4_000 * 86_400_000;

/** Parses an integer of a query. */
const integerParameter = (digits: RegExp, min: number, max: number) =>
  z.string().regex(digits, 'expected an integer').transform(Number).pipe(z.int().min(min).max(max));
const eventNumber = integerParameter(/^\d{1,9}$/, 0, 999_999_999);
const schemas = {
  record: z.strictObject({
    outcome: z.enum(deliveryOutcomes).optional(),
    limit: integerParameter(/^\d+$/, 1, 1_000).default(100),
    after: integerParameter(/^\d+$/, 0, Number.MAX_SAFE_INTEGER).default(0),
  }),
  events: z.strictObject({
    event: z.enum(notificationEvents).optional(),
    filter: z.string().default(''),
    after: eventNumber.optional(),
    limit: eventNumber.default(10_000),
  }),
  clock: z.strictObject({ advanceMs: z.number().min(0).max(advanceMaxMs) }),
  publish: z.strictObject({
    count: z.int().min(1).max(publishMax),
    event: z.enum(notificationEvents).default('created'),
  }),
  pass: z.strictObject({
    durationMs: z.number().min(0).max(advanceMaxMs),
    products: z.int().min(0).max(publishMax),
    steps: z.int().min(1).max(publishMax).optional(),
  }),
};

/**
 * Adds an operation: method and path with the query parameters, such as `GET /record?limit=`; a description,
 * shown at `/`; and the answer, which is sent as JSON unless it is a response.
 */
type Add = (
  name: string,
  description: string,
  answer: (request: HonoRequest) => object | Promise<object>,
) => void;

/** Creates the app of the control port. Opens nothing. */
export function createControlApp(options: ControlOptions): Hono {
  const operations: Record<string, string> = {};
  const app = new Hono();
  const onMethodNotAllowed = ({ req }: { req: HonoRequest }, methods: readonly string[]) => {
    const detail = `${req.path} does not support ${req.method}; use ${methods.join(' or ')}. GET / lists the operations.`;
    return problem(405, 'Method not allowed', detail, { Allow: methods.join(', ') });
  };
  app.use(methodNotAllowed({ app, onMethodNotAllowed }));
  const tooLarge = `The body exceeds ${bodyBytesMax} bytes; send a shorter one.`;
  const onError = () => problem(413, 'Body too large', tooLarge);
  app.use(bodyLimit({ maxSize: bodyBytesMax, onError }));
  app.notFound(({ req }) => {
    const detail = `The control port has no ${req.path}; GET / lists the operations.`;
    return problem(404, 'Unknown path', detail);
  });
  app.onError(problemOf);
  app.get('/', (context) =>
    context.json({
      what: 'Control port of the earshot sandbox, which imitates the catalogue, its identity provider, and an inference service.',
      ...options.about,
      paused: options.publisher.paused(),
      operations,
    }),
  );
  const add: Add = (name, description, answer) => {
    operations[name] = description;
    const [method = '', path = ''] = name.split(/[ ?]/);
    app.on(method, path, async ({ req }) => {
      const result = await answer(req);
      return result instanceof Response ? result : Response.json(result);
    });
  };
  addReadOperations(add, options);
  addControlOperations(add, options);
  addServiceOperations(add, options);
  return app;
}

function addReadOperations(add: Add, options: ControlOptions): void {
  const { record, holdings, clock } = options;
  const recordTitle = 'Notifications and their attempts, in pages.';
  add('GET /record?outcome=&limit=&after=', recordTitle, (request) => {
    const selection = readQuery(request, schemas.record, '/record?outcome=lost&limit=100');
    const entries = record.page(selection);
    // After a full page there may be another one; `after` accepts this number.
    const isFull = entries.length === selection.limit;
    return { entries, next: isFull ? (entries.at(-1)?.sequence ?? null) : null };
  });
  add('GET /totals', 'Counts of all notifications to subscriptions.', record.totals);
  add('GET /holdings', 'Counts of products, deleted products and events.', holdings.totals);
  add('GET /clock', "The sandbox's time.", () => readClock(clock));
  const eventsTitle =
    "The catalogue's events as JSON lines, each with its deliveries to every subscription.";
  add('GET /events?event=&filter=&after=&limit=', eventsTitle, (request) => {
    const example = '/events?event=deleted&limit=100';
    const { event, ...selection } = readQuery(request, schemas.events, example);
    const events = event === undefined ? undefined : [event];
    const found = catalogueEvents(options, { events, ...selection });
    const lines = Array.from(found, (one) => `${JSON.stringify(one)}\n`);
    const headers = { 'Content-Type': 'application/x-ndjson' };
    return new Response(lines.join(''), { headers });
  });
}

function addControlOperations(add: Add, { clock, publisher, signal }: ControlOptions): void {
  const clockExample = '{"advanceMs":60000}';
  add('POST /clock', `Moves the time forward, e.g. ${clockExample}.`, async (request) => {
    const { advanceMs } = await readBody(request, schemas.clock, clockExample);
    clock.advance(advanceMs);
    return readClock(clock);
  });
  const publishExample = '{"count":10,"event":"created"}';
  add('POST /publish', `Publishes immediately, e.g. ${publishExample}.`, async (request) => {
    const { count, event } = await readBody(request, schemas.publish, publishExample);
    const published = await publisher.publishNow(count, event);
    if (published > 0) return { published };
    const detail =
      event === 'created'
        ? 'All records of the file are published; start the sandbox with more records, or without a file.'
        : `There is no published product that can be ${event}; first publish with "event":"created".`;
    return problem(409, 'No product to publish', detail);
  });
  const passExample = '{"products":60,"durationMs":3600000}';
  const passTitle = `Moves the time forward while publishing products, e.g. ${passExample}.`;
  add('POST /pass', passTitle, async (request) => {
    const period = await readBody(request, schemas.pass, passExample);
    const published = await publisher.pass(period, signal);
    return { published, ...readClock(clock) };
  });
  add(
    'POST /pause',
    'Stops automatic publishing; earlier notifications are still delivered.',
    () => {
      publisher.pause();
      return { paused: true };
    },
  );
  add('POST /resume', 'Resumes publishing.', () => {
    publisher.resume();
    return { paused: false };
  });
}

function addServiceOperations(add: Add, options: ControlOptions): void {
  const { faults, subscriptions, liveSettings, requests, inference } = options;
  add('GET /faults', 'The fault rates, 0 to 1.', faults.current);
  const rates = '{"duplicate":0.5}';
  const ratesTitle = `Changes fault rates for later notifications, e.g. ${rates}.`;
  add('PATCH /faults', ratesTitle, (request) => applyChanges(request, faults, rates));
  const listTitle = "The account's subscriptions, without credentials.";
  add('GET /subscriptions', listTitle, () => ({ subscriptions: subscriptions.list().map(viewOf) }));
  const pull = '{"type":"pull"}';
  const addTitle = `Adds a subscription as another client would, e.g. ${pull}; push requires an endpoint.`;
  add('POST /subscriptions', addTitle, async (request) => {
    const added = await readBody(request, addedSubscriptionSchema, pull);
    return Response.json(viewOf(subscriptions.create(added)), { status: 201 });
  });
  const queuesTitle = 'Lengths and totals of the queues of pull subscriptions.';
  add('GET /queues', queuesTitle, () => ({ queues: queueStates(options) }));
  const change = '{"subscriptionId":"…","drop":10}';
  const changeTitle = `Drops the oldest entries of a queue, e.g. ${change}, or acknowledges them as another reader ("acknowledge":10).`;
  add('POST /queues', changeTitle, async (request) =>
    changeQueue(options, await readBody(request, queueChangeSchema, change)),
  );
  /** Replaces the secret in the settings by totpSecretSet. */
  const redactedSettings = () => {
    const { totpSecret, ...settings } = liveSettings.current();
    return { ...settings, totpSecretSet: totpSecret !== null };
  };
  add('GET /service', 'Settings of the catalogue and the identity provider.', redactedSettings);
  const patchTitle = 'Changes settings, e.g. {"runningMax":1,"unavailable":true}.';
  add('PATCH /service', patchTitle, async (request) => {
    await applyChanges(request, liveSettings, '{"runningMax":1}');
    return redactedSettings();
  });
  add('GET /requests', 'The last requests to the catalogue and the identity provider.', () => ({
    requests: requests.entries(),
  }));
  add('GET /inference', 'Settings of the inference service.', inference.liveSettings.current);
  const inferenceTitle = 'Changes settings, e.g. {"faults":{"rateLimited":0.1},"next":{"hang":1}}.';
  add('PATCH /inference', inferenceTitle, (request) =>
    applyChanges(request, inference.liveSettings, '{"next":{"rateLimited":2}}'),
  );
  const requestsTitle =
    'Total counts, and the last requests to the inference service without keys and texts.';
  add('GET /inference/requests', requestsTitle, () => ({
    totals: inference.record.totals(),
    requests: inference.record.requests(),
  }));
}

async function applyChanges<Settings extends object>(
  request: HonoRequest,
  liveSettings: { changedSchema(): z.ZodType<Settings>; change(changes: Settings): Settings },
  example: string,
): Promise<Settings> {
  return liveSettings.change(await readBody(request, liveSettings.changedSchema(), example));
}

function readClock(clock: SandboxClock) {
  return { now: new Date(clock.now()).toISOString(), offsetMs: clock.offsetMs() };
}

/** Returns an error response; `detail` states what happened, why, and what to do. */
function problem(
  status: ContentfulStatusCode,
  title: string,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
  errors?: readonly object[],
): Response {
  return new Response(JSON.stringify({ type: 'about:blank', title, status, detail, errors }), {
    status,
    headers: { 'Content-Type': 'application/problem+json', ...headers },
  });
}

function problemOf(error: Error): Response {
  if (error instanceof HTTPException) return error.getResponse();
  if (error instanceof SubscriptionRefusal) {
    const statuses = { limit: 409, 'unknown-id': 404, filter: 400, request: 400 } as const;
    const status = statuses[error.kind];
    return problem(status, 'Subscription refused', error.message);
  }
  // Only testers use this port, so the cause is shown.
  const detail = `Internal error: ${error.message}. Restart the sandbox and report the request.`;
  return problem(500, 'Internal error', detail);
}

/** Parses a JSON body with a schema. Throws a 400 response listing every problem. */
async function readBody<Schema extends z.ZodType>(
  request: HonoRequest,
  schema: Schema,
  example: string,
): Promise<z.output<Schema>> {
  const value: unknown = await request.json().catch(() => {
    const detail = `The body is not valid JSON; send something like ${example}.`;
    throw new HTTPException(400, { res: problem(400, 'Invalid JSON', detail) });
  });
  return validate(value, schema, `send something like ${example}`);
}

/** Parses the query with a schema. Throws a 400 response listing every problem. */
function readQuery<Schema extends z.ZodType>(
  request: HonoRequest,
  schema: Schema,
  example: string,
): z.output<Schema> {
  return validate(request.query(), schema, `use something like ${example}`);
}

function validate<Schema extends z.ZodType>(value: unknown, schema: Schema, advice: string) {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const fields = result.error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({
          field: [...issue.path, key].join('.'),
          message: 'unknown name',
        }))
      : [{ field: issue.path.join('.'), message: issue.message }],
  );
  const problems = fields.map(({ field, message }) => (field ? `${field}: ${message}` : message));
  const detail = `Nothing was changed. ${problems.join('; ')}. Correct the request; ${advice}.`;
  throw new HTTPException(400, { res: problem(400, 'Invalid request', detail, {}, fields) });
}
