/** Control port: inspects and controls the sandbox. An error is JSON with a `detail`. */
import { Hono, type HonoRequest } from 'hono';
import { z } from 'zod';
import { SubscriptionRefusal } from './account.ts';
import type { SandboxClock } from './clock.ts';
import { type NotificationEvent, notificationEvents } from './delivery/notification.ts';
import { SandboxConfigurationError, validate } from './live-settings.ts';

interface Changeable {
  current(): object;
  /** Throws SandboxConfigurationError. */
  change(changes: object): object;
}

/** The parts of the sandbox that can be controlled. */
interface Controlled {
  readonly catalogueUrl: string;
  readonly tokenUrl: string;
  readonly inferenceUrl: string;
  readonly clock: Pick<SandboxClock, 'now' | 'advance'>;
  readonly faults: Changeable;
  readonly service: Changeable;
  readonly inference: Changeable & { totals(): object };
  totals(): object;
  subscriptions(): object;
  queues(): object;
  requests(): object;
  events(): readonly object[];
  publishNow(count: number, event: NotificationEvent): Promise<number>;
}

const operations: Readonly<Record<string, string>> = {
  'GET /totals': 'Counts of all notifications to subscriptions.',
  'GET /events': "The catalogue's events as JSON lines, each with its deliveries.",
  'GET /subscriptions': "The account's subscriptions, without credentials.",
  'GET /queues': 'Lengths of the queues of pull subscriptions.',
  'GET /requests': 'The last requests to the catalogue and the identity provider.',
  'GET /inference/totals': 'Counts of the requests to the inference service.',
  'POST /clock': 'Moves the time forward: {"advanceMs":60000}',
  'POST /publish': 'Publishes immediately: {"count":10,"event":"created"}',
  'GET and PATCH /faults': 'Fault rates of later deliveries: {"duplicate":0.5}',
  'GET and PATCH /service': 'Settings of catalogue and identity provider: {"runningMax":1}',
  'GET and PATCH /inference': 'Settings of the inference service: {"next":{"rateLimited":2}}',
};

const clockSchema = z.strictObject({
  advanceMs: z
    .number()
    .min(0)
    .max(4_000 * 86_400_000),
});
const publishSchema = z.strictObject({
  count: z.int().min(1).max(10_000),
  event: z.enum(notificationEvents).default('created'),
});

/** Creates the app of the control port. Opens nothing. */
export function createControlApp(sandbox: Controlled): Hono {
  const app = new Hono();
  const { catalogueUrl, tokenUrl, inferenceUrl } = sandbox;
  const what = 'Control port of the earshot sandbox, which imitates the catalogue.';
  const about = { what, catalogueUrl, tokenUrl, inferenceUrl, operations };
  const reads: Readonly<Record<string, () => object>> = {
    '/': () => about,
    '/totals': sandbox.totals,
    '/subscriptions': sandbox.subscriptions,
    '/queues': sandbox.queues,
    '/requests': sandbox.requests,
    '/inference/totals': sandbox.inference.totals,
  };
  for (const [path, read] of Object.entries(reads)) app.get(path, ({ json }) => json(read()));
  app.get('/events', ({ body }) => {
    const lines = sandbox.events().map((event) => `${JSON.stringify(event)}\n`);
    return body(lines.join(''), 200, { 'Content-Type': 'application/x-ndjson' });
  });
  app.post('/clock', async ({ req, json }) => {
    sandbox.clock.advance(validate(clockSchema, await bodyOf(req), 'request').advanceMs);
    return json({ now: new Date(sandbox.clock.now()).toISOString() });
  });
  app.post('/publish', async ({ req, json }) => {
    const { count, event } = validate(publishSchema, await bodyOf(req), 'request');
    return json({ published: await sandbox.publishNow(count, event) });
  });
  const { faults, service, inference } = sandbox;
  for (const [path, settings] of Object.entries({ faults, service, inference })) {
    app.get(`/${path}`, ({ json }) => json(withoutSecret(settings.current())));
    app.patch(`/${path}`, async ({ req, json }) =>
      json(withoutSecret(settings.change(await bodyOf(req)))),
    );
  }
  app.notFound(({ req, json }) => {
    const detail = `The control port has no ${req.method} ${req.path}; GET / lists the operations.`;
    return json({ detail }, 404);
  });
  app.onError((error, { json }) => {
    const isRefusal =
      error instanceof SandboxConfigurationError || error instanceof SubscriptionRefusal;
    // Only testers use this port, so the cause is shown.
    return json({ detail: error.message }, isRefusal ? 400 : 500);
  });
  return app;
}

/** Reads a JSON object. Throws SandboxConfigurationError for another body. */
async function bodyOf(request: HonoRequest): Promise<object> {
  return validate(z.looseObject({}), await request.json().catch(() => null), 'JSON body');
}

/** Replaces the shared secret of the one-time codes. */
function withoutSecret(settings: object): object {
  const isSecret = 'totpSecret' in settings && settings.totpSecret !== null;
  return isSecret ? { ...settings, totpSecret: '(set)' } : settings;
}
