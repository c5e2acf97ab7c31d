/**
 * Assembles the sandbox, which imitates three services for the demo and tests, and shares no schema with
 * the client. docs/architecture.md lists its promises.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { Hono, type HonoRequest } from 'hono';
import { z } from 'zod';
import {
  type AddedSubscription,
  addedSubscriptionSchema,
  createSubscriptions,
  isPush,
  SubscriptionRefusal,
  viewOf,
} from './account.ts';
import { createRandom, createSandboxClock } from './clock.ts';
import { createDispatcher } from './delivery/dispatcher.ts';
import {
  createDeliveryRecord,
  type NotificationEvent,
  notificationEvents,
} from './delivery/notification.ts';
import { createQueues } from './delivery/queue.ts';
import { createInference } from './inference.ts';
import { type Contents, createContents } from './products/content.ts';
import { createProductGenerator, readProductRecords } from './products/product-generator.ts';
import { createLedger } from './publishing/ledger.ts';
import { createPublisher, type SimulatedPeriod } from './publishing/publisher.ts';
import { createServiceApp, type LoggedRequest } from './services/catalogue.ts';
import { createDownloads } from './services/downloads.ts';
import { createIdentityProvider, realmPath, tokenPath } from './services/identity.ts';
import {
  createLiveSettings,
  faultsSchema,
  inferenceSettingsSchema,
  isLoopbackHost,
  type LiveInferenceSettings,
  type LiveSettings,
  SandboxConfigurationError,
  type SandboxOptions,
  sandboxOptionsSchema,
  serviceSettingsSchema,
  validate,
} from './settings.ts';

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/**
 * Publishing by rate begins when the first subscription runs. Throws SandboxConfigurationError for invalid options, an
 * invalid records file, and a port that cannot be opened.
 */
export async function startSandbox(options: SandboxOptions) {
  const checked = validate(sandboxOptionsSchema, options, 'sandbox options');
  const stopping = new AbortController();
  const { signal } = stopping;
  const parts = createParts(checked, signal);
  const { publisher, inferenceSettings } = parts;
  const inference = createInference(inferenceSettings, parts.clock);
  if (checked.past !== undefined) await publisher.publishPast(checked.past, signal);
  await using servers = new AsyncDisposableStack();
  const open = async (...given: Parameters<typeof startLocalServer>) => {
    const server = await startLocalServer(...given);
    servers.defer(server.close);
    return server.url;
  };
  const { fetch } = createServiceApp(parts);
  const catalogueUrl = await open(fetch, checked.serviceListen, '--service');
  const inferenceUrl = await open(inference.app.fetch, checked.inferenceListen, '--inference');
  const tokenUrl = `${catalogueUrl}${realmPath}${tokenPath}`;
  const controlled = {
    ...{ catalogueUrl, tokenUrl, inferenceUrl, ...controlsOf(parts, signal) },
    /** Settings and counts of the inference service. */
    inference: { ...inferenceSettings, totals: inference.totals },
  };
  const controlUrl = await open(
    createControlApp(controlled).fetch,
    checked.controlListen,
    '--control',
  );
  const opened = servers.move();
  /**
   * Resolves when `count` products or all records are published and every notification is delivered or
   * lost, except in queues, or when the sandbox is closed.
   */
  const finished = publisher.run(signal).then(parts.record.totals);
  return {
    ...controlled,
    controlUrl,
    finished,
    /** Stops publishing, abandons open deliveries (they stay pending) and closes every socket. Idempotent. */
    close: async (): Promise<void> => {
      stopping.abort();
      await opened.disposeAsync();
      // `finished` reports a failure of the run; closing must succeed anyway.
      await Promise.allSettled([finished]);
    },
  };
}

type CheckedOptions = ReturnType<typeof sandboxOptionsSchema.parse>;

function createParts(options: CheckedOptions, signal: AbortSignal) {
  const { seed, account, past } = options;
  // Separate generators, so that draws for one purpose do not shift those for another.
  const randomOf = (purpose: number) => createRandom(seed ^ (0x5eed_0000 + purpose));
  const clock = createSandboxClock(options);
  const liveSettings = createLiveSettings(
    serviceSettingsSchema,
    options.service,
    'service settings',
  );
  const faults = createLiveSettings(faultsSchema, options.faults, 'faults');
  const record = createDeliveryRecord();
  const common = { clock, liveSettings, record, faults };
  // Each publication has at most two changes.
  const eventsMax = options.eventsMax + 3 * (past?.products ?? 0);
  const ledger = createLedger({ eventsMax, now: clock.now, record });
  const queues = createQueues({ ...common, seed: seed ^ 0x5eed_0001 });
  const subscriptions = createSubscriptions({
    ...common,
    random: randomOf(2),
    onRemoved: queues.remove,
  });
  const dispatcher = createDispatcher({
    ...{ ...options, ...common, signal, seed: seed ^ 0x5eed_0003 },
    onDelivered: subscriptions.delivered,
  });
  const contents = options.contentBytes ? createContents(options.contentBytes) : undefined;
  const publisher = createPublisher({
    ...{ ...options, clock, ledger, dispatcher, random: randomOf(4) },
    source: createSource(options, contents),
    startAfter: subscriptions.firstRunning,
    notify: (entry) => {
      const { event, product, atMs } = entry;
      const matching = subscriptions
        .list()
        .filter(({ events, matches }) => events.includes(event) && matches(product));
      if (matching.length === 0) return;
      const running = matching.filter(({ status }) => status === 'running');
      entry.deliveries = running.map((one) =>
        isPush(one)
          ? dispatcher.send(one, event, product.record, atMs)
          : queues.of(one).add(event, product, atMs),
      );
      entry.pausedIds = matching.filter((one) => !running.includes(one)).map(({ id }) => id);
    },
  });
  return {
    ...{ ...common, ledger, queues, subscriptions, publisher, contents },
    downloads: createDownloads(liveSettings),
    provider: createIdentityProvider({ ...common, account, random: randomOf(5) }),
    random: randomOf(6),
    /** The last requests to the catalogue and the identity provider. */
    requests: [] as LoggedRequest[],
    inferenceSettings: createLiveSettings(
      inferenceSettingsSchema,
      options.inference,
      'inference settings',
    ),
  };
}

/** Records from a file are published unmodified, with their own dates; the generator makes later changes. */
function createSource({ seed, recordsFile }: CheckedOptions, contents?: Contents) {
  const generator = createProductGenerator({ seed });
  if (recordsFile === undefined) return contents?.filled(generator) ?? generator;
  const remaining = readProductRecords(recordsFile).values();
  return { ...generator, next: () => remaining.next().value };
}

function controlsOf(parts: ReturnType<typeof createParts>, signal: AbortSignal) {
  const { record, ledger, publisher, subscriptions, queues } = parts;
  return {
    clock: parts.clock,
    /** Settings of the catalogue and the identity provider. */
    service: parts.liveSettings,
    /** Fault rates of deliveries. */
    faults: parts.faults,
    totals: record.totals,
    /** Returns every notification in the order of publication. */
    entries: record.entries,
    events: ledger.events,
    /** Returns counts of downloads by HTTP and from the object store. */
    downloads: parts.downloads.totals,
    /** Returns copies of the account's subscriptions without credentials, oldest first. */
    subscriptions: () => subscriptions.list().map(viewOf),
    /** Adds a subscription as another client would. Throws SubscriptionRefusal and SandboxConfigurationError. */
    addSubscription: (added: AddedSubscription) =>
      viewOf(subscriptions.create(validate(addedSubscriptionSchema, added, 'subscription'))),
    /** Returns length and totals of the queue of each pull subscription, oldest subscription first. */
    queues: () => {
      const pull = subscriptions.list().filter((one) => !isPush(one));
      return pull.map((one) => queues.of(one).state());
    },
    /** Returns the last 1,000 requests to the catalogue and the identity provider. */
    requests: (): readonly Readonly<LoggedRequest>[] => parts.requests.map((one) => ({ ...one })),
    /** Publishes immediately, even when paused or beyond `count`. Returns the number of published events. */
    publishNow: (count: number, event: NotificationEvent = 'created') =>
      publisher.publishNow(count, event),
    /**
     * Moves the time forward while publishing products and their changes; each notification is sent at its
     * own time. Use it only when nothing is published by rate: with `count: 0`, or paused.
     */
    pass: (period: SimulatedPeriod) => publisher.pass(period, signal),
    /** Resolves when everything that is due has been sent. Does not wait for queues. */
    quiet: publisher.quiet,
    /** Stops publishing by rate until resumed. Published notifications are still delivered. */
    pause: publisher.pause,
    resume: publisher.resume,
  };
}

const operations: Readonly<Record<string, string>> = {
  'GET /totals': 'Counts of all notifications to subscriptions.',
  'GET /events': "The catalogue's events as JSON lines, each with its deliveries.",
  'GET /subscriptions': "The account's subscriptions, without credentials.",
  'GET /queues': 'Lengths of the queues of pull subscriptions.',
  'GET /downloads': 'Counts of downloads by HTTP and from the object store.',
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

type Controlled = ReturnType<typeof controlsOf> & {
  readonly catalogueUrl: string;
  readonly tokenUrl: string;
  readonly inferenceUrl: string;
  readonly inference: LiveInferenceSettings & { totals(): object };
};

/** Creates the control port, which inspects and controls the sandbox. An error is JSON with a `detail`. */
function createControlApp(sandbox: Controlled): Hono {
  const app = new Hono();
  const { catalogueUrl, tokenUrl, inferenceUrl } = sandbox;
  const what = 'Control port of the earshot sandbox, which imitates the catalogue.';
  const about = { what, catalogueUrl, tokenUrl, inferenceUrl, operations };
  const reads: Readonly<Record<string, () => object>> = {
    '/': () => about,
    '/totals': sandbox.totals,
    '/subscriptions': sandbox.subscriptions,
    '/queues': sandbox.queues,
    '/downloads': sandbox.downloads,
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
  const changeable: Readonly<Record<string, LiveSettings<z.ZodType<object, object>>>> = {
    ...{ faults, service, inference },
  };
  for (const [path, settings] of Object.entries(changeable)) {
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

/**
 * Starts an app on plain HTTP, at `host:port` of a flag; port 0 selects a free one. Throws SandboxConfigurationError if the
 * address is in use, or not of this machine: passwords and keys of the sandbox are publicly known.
 */
async function startLocalServer(
  fetch: Parameters<typeof getRequestListener>[0],
  address: string,
  option: '--control' | '--service' | '--inference',
) {
  const [, host = '', port = ''] = /^\[?([^\]]+)\]?:(\d+)$/.exec(address) ?? [];
  if (!isLoopbackHost(host)) {
    throw new SandboxConfigurationError(
      `The sandbox must not listen on ${address}, because its passwords are public. Use 127.0.0.1.`,
    );
  }
  const listener = getRequestListener(fetch);
  const server = createServer((request, response) => void listener(request, response));
  server.listen({ host, port: Number(port) });
  await once(server, 'listening').catch((cause: Error) => {
    throw new SandboxConfigurationError(
      `The sandbox cannot listen on ${address}: ${cause.message}. Choose another port with ${option}, or 0 for any free one.`,
      { cause },
    );
  });
  const bound = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound.port}`,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
