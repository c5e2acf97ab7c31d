/** The control port: looks into the sandbox and steers it, apart from what it imitates. */
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { methodNotAllowed } from 'hono/method-not-allowed';
import { z } from 'zod';
import { answerProblem, ControlProblem, readBody, readQuery } from './control-problem.ts';
import { type DeliveryRecord, deliveryOutcomes } from './delivery-record.ts';
import { type FaultSettings, faultsSchema } from './faults.ts';
import { notificationEvents } from './notification.ts';
import type { Publisher } from './publisher.ts';
import type { SandboxClock } from './sandbox-clock.ts';

export interface ControlOptions {
  readonly record: DeliveryRecord;
  readonly faults: FaultSettings;
  readonly clock: SandboxClock;
  readonly publisher: Publisher;
  /** Shown at `/`; without secrets. */
  readonly about: Readonly<Record<string, string>>;
}

const bodyBytesMax = 64 * 1024;
const entriesPerPageMax = 1_000;
const publishMax = 10_000;
// Beyond a year of inactivity nothing more happens to a subscription.
const advanceMaxMs = 400 * 86_400_000;

const operations = {
  'GET /record?outcome=&limit=&after=': 'Notifications and their attempts, a page at a time.',
  'GET /totals': 'Counts of all notifications.',
  'GET /faults': 'The fault rates, 0 to 1.',
  'PATCH /faults':
    'Changes rates, e.g. {"duplicate":0.5}; holds for what is published from now on.',
  'GET /clock': "The sandbox's time.",
  'POST /clock': 'Moves the time forward, e.g. {"advanceMs":60000}.',
  'POST /publish': 'Publishes now, e.g. {"count":10,"event":"created"}.',
  'POST /pause': 'Stops publishing by rate; what is published is still delivered.',
  'POST /resume': 'Goes on publishing.',
};

const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, 'expected a whole number')
    .transform(Number)
    .pipe(z.int().min(min).max(max));

const recordQuerySchema = z.strictObject({
  outcome: z.enum(deliveryOutcomes).optional(),
  limit: wholeNumber(1, entriesPerPageMax).default(100),
  after: wholeNumber(0, Number.MAX_SAFE_INTEGER).default(0),
});
const ratePatchSchema = z.strictObject(
  // Without the defaults, or naming one rate would set all the others to 0.
  Object.fromEntries(
    Object.entries(faultsSchema.shape).map(([name, rate]) => [name, rate.unwrap().optional()]),
  ),
);
const clockSchema = z.strictObject({ advanceMs: z.number().min(0).max(advanceMaxMs) });
const publishSchema = z.strictObject({
  count: z.int().min(1).max(publishMax),
  event: z.enum(notificationEvents).default('created'),
});

/** Creates the app of the control port; it opens nothing. Answers JSON, faults as problem JSON. */
export function createControlApp(options: ControlOptions): Hono {
  const app = new Hono();
  app.use(methodNotAllowed({ app, onMethodNotAllowed: refuseMethod }));
  app.use(bodyLimit({ maxSize: bodyBytesMax, onError: refuseSize }));
  app.notFound((context) =>
    answerProblem(
      context,
      new ControlProblem(
        404,
        'There is nothing here',
        `The control port has no ${context.req.path}; GET / lists what it has.`,
      ),
    ),
  );
  app.onError((error, context) => answerProblem(context, toProblem(error)));
  addReading(app, options);
  addSteering(app, options);
  return app;
}

function addReading(app: Hono, { record, faults, clock, publisher, about }: ControlOptions): void {
  app.get('/', (context) =>
    context.json({
      what: 'Control port of the earshot sandbox, which imitates the delivery side of the catalogue.',
      ...about,
      paused: publisher.paused(),
      operations,
    }),
  );
  app.get('/record', (context) => {
    const selection = readQuery(context.req, recordQuerySchema, '/record?outcome=lost&limit=100');
    const { outcome, limit, after } = selection;
    const entries = record.page({ limit, after, ...(outcome === undefined ? {} : { outcome }) });
    // A full page may have more behind it; `after` takes this number.
    const next = entries.length === limit ? (entries.at(-1)?.sequence ?? null) : null;
    return context.json({ entries, next });
  });
  app.get('/totals', (context) => context.json(record.totals()));
  app.get('/faults', (context) => context.json(faults.current()));
  app.get('/clock', (context) => context.json(readClock(clock)));
}

function addSteering(app: Hono, { faults, clock, publisher }: ControlOptions): void {
  app.patch('/faults', async (context) => {
    const rates = await readBody(context.req, ratePatchSchema, '{"duplicate":0.5}');
    return context.json(faults.change(rates));
  });
  app.post('/clock', async (context) => {
    const { advanceMs } = await readBody(context.req, clockSchema, '{"advanceMs":60000}');
    clock.advance(advanceMs);
    return context.json(readClock(clock));
  });
  app.post('/publish', async (context) => {
    const { count, event } = await readBody(
      context.req,
      publishSchema,
      '{"count":10,"event":"created"}',
    );
    const published = await publisher.publishNow(count, event);
    if (published > 0) return context.json({ published });
    throw new ControlProblem(
      409,
      'There is no product to publish',
      event === 'created'
        ? 'Nothing was published, because the file of records has run out; start the sandbox with more records, or without any.'
        : `Nothing was published, because no product is there to be ${event}; publish created ones first.`,
    );
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

function readClock(clock: SandboxClock) {
  return { now: new Date(clock.now()).toISOString(), offsetMs: clock.offsetMs() };
}

const refuseMethod: NonNullable<Parameters<typeof methodNotAllowed>[0]['onMethodNotAllowed']> = (
  context,
  methods,
) => {
  const { method, path } = context.req;
  const detail = `${path} does not take ${method}; use ${methods.join(' or ')}. GET / lists what there is.`;
  return answerProblem(context, new ControlProblem(405, 'The method is not allowed', detail), {
    Allow: methods.join(', '),
  });
};

const refuseSize: NonNullable<Parameters<typeof bodyLimit>[0]['onError']> = (context) => {
  const detail = `The body was not read, because it is larger than ${bodyBytesMax} bytes; send a shorter one.`;
  return answerProblem(context, new ControlProblem(413, 'The body is too large', detail));
};

function toProblem(error: Error): ControlProblem {
  if (error instanceof ControlProblem) return error;
  // The port is a tester's own: hiding the cause would only cost them time.
  const detail = `The sandbox failed because of: ${error.message}. This is a fault in it; restart it and report what you did.`;
  return new ControlProblem(500, 'The sandbox failed', detail);
}
