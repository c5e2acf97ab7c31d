/** The control port: shows and steers the sandbox, apart from what it imitates. Faults are problem JSON (RFC 9457). */
import { type Context, Hono, type HonoRequest } from 'hono';
import { bodyLimit } from 'hono/body-limit';
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
import { type FaultSettings, faultsSchema } from './delivery/faults.ts';
import { notificationEvents } from './delivery/notification.ts';
import type { InferenceRecord } from './inference/inference-app.ts';
import type { InferenceKnobs } from './inference/inference-settings.ts';
import { catalogueEvents, type EventLedger } from './publishing/events.ts';
import type { Holdings } from './publishing/holdings.ts';
import type { Publisher } from './publishing/publisher.ts';
import type { RequestLog } from './services/catalogue.ts';
import type { ServiceKnobs, ServiceSettings } from './services/service-settings.ts';

export interface ControlOptions {
  /** Shown at `/`; without secrets. */
  readonly about: Readonly<Record<string, string | null>>;
  readonly record: DeliveryRecord;
  readonly holdings: Pick<Holdings, 'totals' | 'find'>;
  readonly ledger: EventLedger;
  readonly faults: FaultSettings;
  readonly clock: SandboxClock;
  readonly publisher: Publisher;
  readonly subscriptions: Subscriptions;
  readonly knobs: ServiceKnobs;
  readonly requests: RequestLog;
  readonly inference: { readonly knobs: InferenceKnobs; readonly record: InferenceRecord };
  /** Ends what would take long. */
  readonly signal: AbortSignal;
}

/** The operations, for whoever asks the port. */
const operations = {
  'GET /record?outcome=&limit=&after=': 'Notifications and their attempts, a page at a time.',
  'GET /totals': 'Counts of all notifications that were owed to a subscription.',
  'GET /holdings': 'Counts of products, deleted products and events, owed or not.',
  'GET /faults': 'The fault rates, 0 to 1.',
  'PATCH /faults':
    'Changes rates, e.g. {"duplicate":0.5}; holds for what is published from now on.',
  'GET /clock': "The sandbox's time.",
  'POST /clock': 'Moves the time forward, e.g. {"advanceMs":60000}.',
  'POST /publish': 'Publishes now, e.g. {"count":10,"event":"created"}.',
  'POST /pass':
    'Moves the time while products are published, e.g. {"products":60,"durationMs":3600000}.',
  'POST /pause': 'Stops publishing by rate; what is published is still delivered.',
  'POST /resume': 'Goes on publishing.',
  'GET /events?event=&filter=&after=&limit=':
    "The catalogue's events as JSON lines, each with what became of it for every subscription.",
  'GET /subscriptions': "The account's subscriptions, without credentials.",
  'POST /subscriptions':
    'Adds one as a stranger would, e.g. {"type":"pull"}; a push one needs an endpoint.',
  'GET /service': 'The knobs of the subscription service and the identity provider.',
  'PATCH /service': 'Turns knobs, e.g. {"runningMax":1,"unavailable":true}.',
  'GET /requests': 'The last requests that the services were sent.',
  'GET /inference': 'The knobs of the inference service.',
  'PATCH /inference': 'Turns knobs, e.g. {"faults":{"rateLimited":0.1},"next":{"hang":1}}.',
  'GET /inference/requests': 'Its last requests and counts of all, without keys and texts.',
};

const bodyBytesMax = 64 * 1024;
const publishMax = 10_000;
// Some ten years: whatever time does to a subscription, it has done by then.
const advanceMaxMs = 4_000 * 86_400_000;

/** Reads a whole number of a query. */
const wholeNumber = (digits: RegExp, min: number, max: number) =>
  z
    .string()
    .regex(digits, 'expected a whole number')
    .transform(Number)
    .pipe(z.int().min(min).max(max));
const eventNumber = wholeNumber(/^\d{1,9}$/, 0, 999_999_999);
const schemas = {
  record: z.strictObject({
    outcome: z.enum(deliveryOutcomes).optional(),
    limit: wholeNumber(/^\d+$/, 1, 1_000).default(100),
    after: wholeNumber(/^\d+$/, 0, Number.MAX_SAFE_INTEGER).default(0),
  }),
  events: z.strictObject({
    event: z.enum(notificationEvents).optional(),
    filter: z.string().default(''),
    after: eventNumber.optional(),
    limit: eventNumber.default(10_000),
  }),
  rates: z.strictObject(
    // Without the defaults, or naming one rate would set all the others to 0.
    Object.fromEntries(
      Object.entries(faultsSchema.shape).map(([name, rate]) => [name, rate.unwrap().optional()]),
    ),
  ),
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

/** Creates the app of the control port; it opens nothing. */
export function createControlApp(options: ControlOptions): Hono {
  const { publisher, about } = options;
  const app = new Hono();
  app.use(methodNotAllowed({ app, onMethodNotAllowed: refuseMethod }));
  app.use(bodyLimit({ maxSize: bodyBytesMax, onError: refuseSize }));
  app.notFound((context) => {
    const detail = `The control port has no ${context.req.path}; GET / lists what it has.`;
    return answerProblem(context, new ControlProblem(404, 'There is nothing here', detail));
  });
  app.onError((error, context) => answerProblem(context, toProblem(error)));
  app.get('/', (context) =>
    context.json({
      what: 'Control port of the earshot sandbox, which imitates the catalogue, its identity provider, and an inference service.',
      ...about,
      paused: publisher.paused(),
      operations,
    }),
  );
  addReading(app, options);
  addSteering(app, options);
  addServices(app, options);
  return app;
}

function addReading(app: Hono, options: ControlOptions): void {
  const { record, holdings, faults, clock } = options;
  app.get('/record', (context) => {
    const selection = readQuery(context.req, schemas.record, '/record?outcome=lost&limit=100');
    const entries = record.page(selection);
    // A full page may have more behind it; `after` takes this number.
    const isFull = entries.length === selection.limit;
    return context.json({ entries, next: isFull ? (entries.at(-1)?.sequence ?? null) : null });
  });
  app.get('/totals', (context) => context.json(record.totals()));
  app.get('/holdings', (context) => context.json(holdings.totals()));
  app.get('/faults', (context) => context.json(faults.current()));
  app.get('/clock', (context) => context.json(readClock(clock)));
  app.get('/events', (context) => {
    const example = '/events?event=deleted&limit=100';
    const { event, ...selection } = readQuery(context.req, schemas.events, example);
    const events = event === undefined ? undefined : [event];
    const found = catalogueEvents(options, { events, ...selection });
    const lines = Array.from(found, (one) => `${JSON.stringify(one)}\n`);
    return context.body(lines.join(''), 200, { 'Content-Type': 'application/x-ndjson' });
  });
}

function addSteering(app: Hono, { faults, clock, publisher, signal }: ControlOptions): void {
  app.patch('/faults', async (context) => {
    const rates = await readBody(context.req, schemas.rates, '{"duplicate":0.5}');
    return context.json(faults.change(rates));
  });
  app.post('/clock', async (context) => {
    const { advanceMs } = await readBody(context.req, schemas.clock, '{"advanceMs":60000}');
    clock.advance(advanceMs);
    return context.json(readClock(clock));
  });
  app.post('/publish', async (context) => {
    const example = '{"count":10,"event":"created"}';
    const { count, event } = await readBody(context.req, schemas.publish, example);
    const published = await publisher.publishNow(count, event);
    if (published > 0) return context.json({ published });
    const detail =
      event === 'created'
        ? 'Nothing was published, because the file of records has run out; start the sandbox with more records, or without any.'
        : `Nothing was published, because no product is there to be ${event}; publish created ones first.`;
    throw new ControlProblem(409, 'There is no product to publish', detail);
  });
  app.post('/pass', async (context) => {
    const example = '{"products":60,"durationMs":3600000}';
    const passage = await readBody(context.req, schemas.pass, example);
    const published = await publisher.pass(passage, signal);
    return context.json({ published, ...readClock(clock) });
  });
  app.post('/pause', (context) => {
    publisher.pause();
    return context.json({ paused: true });
  });
  app.post('/resume', (context) => {
    publisher.resume();
    return context.json({ paused: false });
  });
}

function addServices(app: Hono, options: ControlOptions): void {
  const { subscriptions, knobs, requests, inference } = options;
  app.get('/subscriptions', (context) =>
    context.json({ subscriptions: subscriptions.list().map(viewOf) }),
  );
  app.post('/subscriptions', async (context) => {
    const added = await readBody(context.req, addedSubscriptionSchema, '{"type":"pull"}');
    return context.json(viewOf(subscriptions.create(added)), 201);
  });
  app.get('/service', (context) => context.json(shown(knobs.current())));
  app.patch('/service', async (context) => {
    const settings = await readBody(context.req, knobs.changedSchema(), '{"runningMax":1}');
    return context.json(shown(knobs.change(settings)));
  });
  app.get('/requests', (context) => context.json({ requests: requests.entries() }));
  app.get('/inference', (context) => context.json(inference.knobs.current()));
  app.patch('/inference', async (context) => {
    const schema = inference.knobs.changedSchema();
    const settings = await readBody(context.req, schema, '{"next":{"rateLimited":2}}');
    return context.json(inference.knobs.change(settings));
  });
  app.get('/inference/requests', (context) => {
    const { record } = inference;
    return context.json({ totals: record.totals(), requests: record.requests() });
  });
}

function readClock(clock: SandboxClock) {
  return { now: new Date(clock.now()).toISOString(), offsetMs: clock.offsetMs() };
}

/** Returns the settings without the secret: only whether it is set. */
function shown({ totpSecret, ...settings }: ServiceSettings) {
  return { ...settings, totpSecretSet: totpSecret !== null };
}

/** One fault of a request: where (a key, or empty for the whole) and what. */
interface FaultyField {
  readonly field: string;
  readonly message: string;
}

/** Thrown by a handler to end a request with a problem; the message says what happened, why, and what to do. */
class ControlProblem extends Error {
  override readonly name = 'ControlProblem';
  readonly status: ContentfulStatusCode;
  readonly title: string;
  readonly errors: readonly FaultyField[] | undefined;

  constructor(
    status: ContentfulStatusCode,
    title: string,
    detail: string,
    errors?: readonly FaultyField[],
  ) {
    super(detail);
    this.status = status;
    this.title = title;
    this.errors = errors;
  }
}

/** Answers with `application/problem+json`; `errors` is there when single fields are at fault. */
function answerProblem(context: Context, problem: ControlProblem, headers = {}): Response {
  const { status, title, message, errors } = problem;
  const body = { type: 'about:blank', title, status, detail: message, errors };
  return context.body(JSON.stringify(body), status, {
    'Content-Type': 'application/problem+json',
    ...headers,
  });
}

function refuseMethod(context: Context, methods: readonly string[]): Response {
  const { method, path } = context.req;
  const detail = `${path} does not take ${method}; use ${methods.join(' or ')}. GET / lists what there is.`;
  const problem = new ControlProblem(405, 'The method is not allowed', detail);
  return answerProblem(context, problem, { Allow: methods.join(', ') });
}

function refuseSize(context: Context): Response {
  const detail = `The body was not read, because it is larger than ${bodyBytesMax} bytes; send a shorter one.`;
  return answerProblem(context, new ControlProblem(413, 'The body is too large', detail));
}

function toProblem(error: Error): ControlProblem {
  if (error instanceof ControlProblem) return error;
  if (error instanceof SubscriptionRefusal) {
    const status = error.kind === 'limit' ? 409 : 400;
    return new ControlProblem(status, 'The account refuses the subscription', error.message);
  }
  // The port is a tester's own: hiding the cause would only cost them time.
  const detail = `The sandbox failed because of: ${error.message}. This is a fault in it; restart it and report what you did.`;
  return new ControlProblem(500, 'The sandbox failed', detail);
}

/** Reads a JSON body by a schema. Throws ControlProblem 400 naming each fault. */
async function readBody<Schema extends z.ZodType>(
  request: HonoRequest,
  schema: Schema,
  example: string,
): Promise<z.output<Schema>> {
  const text = await request.text();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const detail = `The request was refused because its body could not be read as JSON; send something like ${example}.`;
    throw new ControlProblem(400, 'The body is not JSON', detail);
  }
  return check(value, schema, `send something like ${example}`);
}

/** Reads the query by a schema. Throws ControlProblem 400 naming each fault. */
function readQuery<Schema extends z.ZodType>(
  request: HonoRequest,
  schema: Schema,
  example: string,
): z.output<Schema> {
  return check(request.query(), schema, `ask for something like ${example}`);
}

function check<Schema extends z.ZodType>(value: unknown, schema: Schema, advice: string) {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const fields = result.error.issues.flatMap(toFields);
  const faults = fields.map(({ field, message }) => (field ? `${field}: ${message}` : message));
  const detail = `Nothing was changed, because of ${faults.join('; ')}. Mend that, or ${advice}.`;
  throw new ControlProblem(400, 'The request has faults', detail, fields);
}

function toFields(issue: z.core.$ZodIssue): FaultyField[] {
  const { path, message } = issue;
  if (issue.code !== 'unrecognized_keys') return [{ field: path.join('.'), message }];
  const nameOf = (key: string) => [...path, key].join('.');
  return issue.keys.map((key) => ({ field: nameOf(key), message: 'unknown name' }));
}
