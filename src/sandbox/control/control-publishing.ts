/** The part of the control port that watches and steers what is published and delivered. */
import type { Hono } from 'hono';
import { z } from 'zod';
import { type DeliveryRecord, deliveryOutcomes } from '../delivery/delivery-record.ts';
import { type FaultSettings, faultsSchema } from '../delivery/faults.ts';
import { notificationEvents } from '../delivery/notification.ts';
import type { Holdings } from '../publishing/holdings.ts';
import type { Publisher } from '../publishing/publisher.ts';
import type { SandboxClock } from '../sandbox-clock.ts';
import { ControlProblem, readBody, readQuery } from './control-problem.ts';

export interface PublishingControlOptions {
  readonly record: DeliveryRecord;
  readonly holdings: Pick<Holdings, 'totals'>;
  readonly faults: FaultSettings;
  readonly clock: SandboxClock;
  readonly publisher: Publisher;
  /** Ends what would go on for long. */
  readonly signal: AbortSignal;
}

const entriesPerPageMax = 1_000;
const publishMax = 10_000;
// Some ten years: whatever time does to a subscription, it has done by then.
const advanceMaxMs = 4_000 * 86_400_000;

/** What it can do, for whoever asks the port. */
export const publishingOperations = {
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
const passSchema = z.strictObject({
  durationMs: z.number().min(0).max(advanceMaxMs),
  products: z.int().min(0).max(publishMax),
  steps: z.int().min(1).max(publishMax).optional(),
});

/** Adds the routes of the reading kind. */
export function addPublishingReading(app: Hono, options: PublishingControlOptions): void {
  const { record, holdings, faults, clock } = options;
  app.get('/record', (context) => {
    const selection = readQuery(context.req, recordQuerySchema, '/record?outcome=lost&limit=100');
    const { outcome, limit, after } = selection;
    const entries = record.page({ limit, after, ...(outcome === undefined ? {} : { outcome }) });
    // A full page may have more behind it; `after` takes this number.
    const next = entries.length === limit ? (entries.at(-1)?.sequence ?? null) : null;
    return context.json({ entries, next });
  });
  app.get('/totals', (context) => context.json(record.totals()));
  app.get('/holdings', (context) => context.json(holdings.totals()));
  app.get('/faults', (context) => context.json(faults.current()));
  app.get('/clock', (context) => context.json(readClock(clock)));
}

/** Adds the routes that change something. */
export function addPublishingSteering(app: Hono, options: PublishingControlOptions): void {
  const { faults, clock, publisher, signal } = options;
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
  app.post('/pass', async (context) => {
    const passage = await readBody(context.req, passSchema, '{"products":60,"durationMs":3600000}');
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

function readClock(clock: SandboxClock) {
  return { now: new Date(clock.now()).toISOString(), offsetMs: clock.offsetMs() };
}
