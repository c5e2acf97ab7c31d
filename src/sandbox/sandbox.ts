/**
 * Assembles the sandbox, which imitates three services for the demo and tests, and shares no schema with
 * the client. docs/architecture.md lists its promises.
 */
import {
  type AddedSubscription,
  addedSubscriptionSchema,
  createSubscriptions,
  isPush,
  viewOf,
} from './account.ts';
import { createRandom, createSandboxClock } from './clock.ts';
import { createControlApp } from './control.ts';
import { createDeliveryRecord } from './delivery/delivery-record.ts';
import { createDispatcher } from './delivery/dispatcher.ts';
import { faultsSchema } from './delivery/faults.ts';
import type { NotificationEvent } from './delivery/notification.ts';
import { createQueues } from './delivery/queue.ts';
import { createInferenceApp, createInferenceRecord } from './inference/inference-app.ts';
import {
  createLiveSettings,
  inferenceSettingsSchema,
  serviceSettingsSchema,
  validate,
} from './live-settings.ts';
import { type LocalServer, startLocalServer } from './local-server.ts';
import { createProductGenerator } from './products/product-generator.ts';
import { readProductRecords } from './products/record.ts';
import { createLedger } from './publishing/ledger.ts';
import { createPublisher, pastProducts, type SimulatedPeriod } from './publishing/publisher.ts';
import { type SandboxOptions, sandboxOptionsSchema } from './sandbox-options.ts';
import { createServiceApp, type LoggedRequest } from './services/catalogue.ts';
import { createIdentityProvider, realmPath, tokenPath } from './services/identity.ts';
import { createRequestLog } from './services/service-answer.ts';

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
  const { publisher } = parts;
  if (checked.past !== undefined) await publisher.publishPast(checked.past, signal);
  const servers: LocalServer[] = [];
  const open = async (...given: Parameters<typeof startLocalServer>) => {
    const server = await startLocalServer(...given);
    servers.push(server);
    return server.url;
  };
  const closeServers = () => Promise.all(servers.map((server) => server.close()));
  try {
    const catalogueUrl = await open(
      createServiceApp({ ...parts, signal }).fetch,
      checked.serviceListen,
      '--service',
    );
    const inferenceApp = createInferenceApp({ ...parts, ...parts.inferenceParts, signal });
    const inferenceUrl = await open(inferenceApp.fetch, checked.inferenceListen, '--inference');
    const tokenUrl = `${catalogueUrl}${realmPath}${tokenPath}`;
    const controlled = { catalogueUrl, tokenUrl, inferenceUrl, ...controlsOf(parts, signal) };
    const control = createControlApp(controlled);
    const controlUrl = await open(control.fetch, checked.controlListen, '--control');
    /**
     * Resolves when `count` products or all records are published and every notification is delivered or
     * lost, except in queues, or when the sandbox is closed. Rejects with an error thrown by `onSettled`.
     */
    const finished = publisher.run(signal).then(parts.record.totals);
    return {
      ...controlled,
      controlUrl,
      finished,
      /** Stops publishing, abandons open deliveries (they stay pending) and closes every socket. Idempotent. */
      close: async (): Promise<void> => {
        stopping.abort();
        await closeServers();
        // `finished` reports a failure of the run; closing must succeed anyway.
        await Promise.allSettled([finished]);
      },
    };
  } catch (error) {
    stopping.abort();
    await closeServers();
    throw error;
  }
}

type SandboxParts = ReturnType<typeof createParts>;

function createParts(options: ReturnType<typeof sandboxOptionsSchema.parse>, signal: AbortSignal) {
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
  const eventsMax = options.eventsMax + 3 * (past === undefined ? 0 : pastProducts(past));
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
  const publisher = createPublisher({
    ...{ ...options, clock, ledger, dispatcher, random: randomOf(4) },
    source: createSource(options),
    startAfter: subscriptions.firstRunning,
    notify: (entry) => {
      const { event, product, atMs } = entry;
      const matching = subscriptions
        .list()
        .filter(({ events, matches }) => events.includes(event) && matches(product));
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
    ...{ ...common, ledger, queues, subscriptions, publisher },
    provider: createIdentityProvider({ ...common, account, random: randomOf(5) }),
    requests: createRequestLog<LoggedRequest>(),
    ...{ random: randomOf(6), queueRandom: randomOf(7) },
    inferenceParts: {
      liveSettings: createLiveSettings(
        inferenceSettingsSchema,
        options.inference,
        'inference settings',
      ),
      record: createInferenceRecord(),
      seed: seed ^ 0x5eed_0008,
    },
  };
}

/** Records from a file are published unmodified, with their own dates; the generator makes later changes. */
function createSource({ seed, recordsFile }: { seed: number; recordsFile?: string | undefined }) {
  const generator = createProductGenerator({ seed });
  if (recordsFile === undefined) return generator;
  const remaining = readProductRecords(recordsFile).values();
  return { ...generator, next: () => remaining.next().value };
}

function controlsOf(parts: SandboxParts, signal: AbortSignal) {
  const { record, ledger, publisher, subscriptions, queues, inferenceParts } = parts;
  return {
    clock: parts.clock,
    /** Settings of the catalogue and the identity provider. */
    service: parts.liveSettings,
    /** Settings and counts of the inference service. */
    inference: { ...inferenceParts.liveSettings, totals: inferenceParts.record.totals },
    /** Fault rates of deliveries. */
    faults: parts.faults,
    totals: record.totals,
    /** Returns every notification in the order of publication. */
    entries: record.entries,
    /** Returns counts of the products in the catalogue, notified or not. */
    holdings: ledger.totals,
    events: ledger.events,
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
    requests: parts.requests.entries,
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
