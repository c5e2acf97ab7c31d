/** Assembles the sandbox: publishes products, delivers notifications, and imitates three services. */
import type { z } from 'zod';
import {
  type AddedSubscription,
  addedSubscriptionSchema,
  createSubscriptions,
  isPush,
  SubscriptionRefusal,
  type Subscriptions,
  subscriptionsFor,
  viewOf,
} from './account.ts';
import { createRandom, createSandboxClock } from './clock.ts';
import { createControlApp } from './control.ts';
import { createDeliverer } from './delivery/deliverer.ts';
import { createDeliveryRecord } from './delivery/delivery-record.ts';
import { createDispatcher, createRecipients } from './delivery/dispatcher.ts';
import { faultsSchema } from './delivery/faults.ts';
import { type NotificationEvent, notificationEvents } from './delivery/notification.ts';
import {
  changeQueue,
  createQueues,
  type QueueChange,
  type Queues,
  queueChangeSchema,
  queueStates,
} from './delivery/queue.ts';
import { createInferenceApp, createInferenceRecord } from './inference/inference-app.ts';
import {
  createLiveServiceSettings,
  createLiveSettings,
  describeIssues,
  inferenceSettingsSchema,
  SandboxConfigurationError,
} from './live-settings.ts';
import { type ListenAddress, type LocalServer, startLocalServer } from './local-server.ts';
import { createProductGenerator } from './products/product-generator.ts';
import { readProductRecords } from './products/record.ts';
import { catalogueEvents, createEventLedger, type EventSelection } from './publishing/events.ts';
import { createHoldings } from './publishing/holdings.ts';
import type { PublicationSource } from './publishing/publication.ts';
import { createPublisher, type SimulatedPeriod } from './publishing/publisher.ts';
import type { StoredProduct } from './publishing/record-archive.ts';
import {
  type CheckedSandboxOptions,
  checkSandboxOptions,
  type SandboxOptions,
} from './sandbox-options.ts';
import { createServiceApp, type LoggedRequest } from './services/catalogue.ts';
import { createIdentityProvider, realmPath, tokenPath } from './services/identity.ts';
import { createRequestLog } from './services/service-answer.ts';

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/**
 * Starts publishing immediately if an endpoint is given, otherwise when the first subscription runs.
 * Throws SandboxConfigurationError for invalid options, an invalid records file, a refused endpoint and a
 * port that cannot be opened.
 */
export async function startSandbox(options: SandboxOptions) {
  const checked = checkSandboxOptions(options);
  const stopping = new AbortController();
  const { signal } = stopping;
  const parts = createParts(checked, signal);
  const { record, publisher, subscriptions } = parts;
  const { liveSettings, record: inferenceRecord } = parts.inference;
  const subscriptionId = subscribeEndpoint(checked, parts);
  if (checked.past !== undefined) await publisher.publishPast(checked.past, signal);
  const { close, ...urls } = await openPorts(checked, parts, subscriptionId, signal);
  const finished = publisher.run(signal).then(() => record.totals());

  return {
    /** Origins of the control port, the catalogue and the inference service; URL of the token endpoint. */
    ...urls,
    /** Id of the initial subscription; null if no endpoint was given. */
    subscriptionId,
    clock: parts.clock,
    /** Settings of the catalogue and the identity provider. */
    service: parts.liveSettings,
    /** Settings and requests of the inference service. */
    inference: {
      ...liveSettings,
      requests: inferenceRecord.requests,
      totals: inferenceRecord.totals,
    },
    totals: record.totals,
    /** Returns counts of the products in the catalogue, notified or not. */
    holdings: parts.holdings.totals,
    /** Returns every notification in the order of publication, with its attempts. */
    entries: record.entries,
    /**
     * Returns the catalogue's events, oldest first, with their deliveries. Throws SubscriptionRefusal
     * for a filter that is invalid for a subscription to these events.
     */
    events: (selection?: EventSelection) => catalogueEvents(parts, selection),
    /** Returns copies of the account's subscriptions without credentials, oldest first. */
    subscriptions: () => subscriptions.list().map(viewOf),
    /**
     * Adds a subscription as another client of the account would, subject to the limits. Throws
     * SubscriptionRefusal, and SandboxConfigurationError for invalid options.
     */
    addSubscription: (added: AddedSubscription) => {
      const checkedAdded = validate(addedSubscriptionSchema, added, 'subscription');
      return viewOf(subscriptions.create(checkedAdded));
    },
    /** Returns length and totals of the queue of each pull subscription, oldest subscription first. */
    queues: () => queueStates(parts),
    /**
     * Drops, or acknowledges as another reader, up to a number of the oldest entries of a queue; returns its state.
     * Throws SubscriptionRefusal for an unknown id and a push subscription, SandboxConfigurationError for
     * invalid options.
     */
    changeQueue: (change: QueueChange) =>
      changeQueue(parts, validate(queueChangeSchema, change, 'change of a queue')),
    /** Returns the last 1,000 requests to the catalogue and the identity provider. */
    requests: parts.requests.entries,
    /**
     * Resolves when `count` products or all records are published and every notification is delivered or
     * lost, except in queues, or when the sandbox is closed. Rejects with an error thrown by `onSettled`.
     */
    finished,
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
    /** The fault rates of deliveries. */
    faults: parts.faults,
    /** Stops publishing by rate until resumed. Published notifications are still delivered. */
    pause: publisher.pause,
    resume: publisher.resume,
    /** Stops publishing, abandons open deliveries (they stay pending) and closes every socket. Idempotent. */
    close: async (): Promise<void> => {
      stopping.abort();
      parts.deliverer.close();
      await close();
      // `finished` reports a failure of the run; closing must succeed anyway.
      await Promise.allSettled([finished]);
    },
  };
}

type SandboxParts = ReturnType<typeof createParts>;

// Separate generators, so that draws for one purpose do not shift those for another.
const seeds = {
  subscriptions: 0x5eed_0001,
  bodies: 0x5eed_0002,
  publishing: 0x5eed_0003,
  tokens: 0x5eed_0004,
  requests: 0x5eed_0005,
  inference: 0x5eed_0006,
  queries: 0x5eed_0007,
  entries: 0x5eed_0008,
  queues: 0x5eed_0009,
};

function createParts(options: CheckedSandboxOptions, signal: AbortSignal) {
  const { seed, account } = options;
  const randomOf = (purpose: keyof typeof seeds) => createRandom(seed ^ seeds[purpose]);
  const source = createSource(options);
  const clock = createSandboxClock(options);
  const liveSettings = createLiveServiceSettings(options.service);
  const deliverer = createDeliverer(options);
  const record = createDeliveryRecord();
  const dispatcher = createDispatcher({ ...options, deliverer, record, clock, signal });
  const state = {
    faults: createLiveSettings(faultsSchema, options.faults, 'fault'),
    holdings: createHoldings({ holdingsMax: options.holdingsMax, now: clock.now }),
    ledger: createEventLedger(options.eventsMax),
  };
  const common = { clock, liveSettings, record, ...state };
  const queues = createQueues({ ...common, seed: seed ^ seeds.entries });
  const subscriptions = createSubscriptions({
    ...common,
    endpointRules: options,
    random: randomOf('subscriptions'),
    onRemoved: queues.remove,
  });
  const provider = createIdentityProvider({ ...common, account, random: randomOf('tokens') });
  const publisher = createPublisher({
    ...options,
    ...common,
    ...createRouting(subscriptions, queues, seed ^ seeds.bodies),
    source,
    dispatcher,
    random: randomOf('publishing'),
    startAfter: subscriptions.firstRunning,
  });
  return {
    ...common,
    queues,
    subscriptions,
    provider,
    deliverer,
    publisher,
    requests: createRequestLog<LoggedRequest>(),
    inference: {
      liveSettings: createLiveSettings(inferenceSettingsSchema, options.inference, 'inference'),
      record: createInferenceRecord(),
      seed: seed ^ seeds.inference,
    },
    random: randomOf('requests'),
    queryRandom: randomOf('queries'),
    queueRandom: randomOf('queues'),
  };
}

/** Creates the functions that find the subscriptions to an event, and add it to their queues. */
function createRouting(subscriptions: Subscriptions, queues: Queues, seed: number) {
  const pausedIdsOf = (event: NotificationEvent, product: StoredProduct['view']) => {
    const paused = subscriptionsFor(subscriptions.list(), event, 'paused');
    return paused.filter(({ matches }) => matches(product)).map(({ id }) => id);
  };
  const enqueue = (event: NotificationEvent, stored: StoredProduct, atMs: number) => {
    const running = subscriptionsFor(subscriptions.list(), event, 'running');
    const pull = running.filter((one) => !isPush(one) && one.matches(stored.view));
    return pull.map((subscription) => queues.of(subscription).add(event, stored, atMs));
  };
  return { recipientsOf: createRecipients(subscriptions, seed), enqueue, pausedIdsOf };
}

/** Records from a file are published unmodified, with their own dates; the generator makes later changes. */
function createSource({ seed, recordsFile }: CheckedSandboxOptions): PublicationSource {
  const generator = createProductGenerator({ seed });
  if (recordsFile === undefined) return generator;
  const remaining = readProductRecords(recordsFile).values();
  return { ...generator, next: () => remaining.next().value };
}

/** Creates the initial subscription if an endpoint is given; returns its id or null. */
function subscribeEndpoint(options: CheckedSandboxOptions, { subscriptions }: SandboxParts) {
  const { endpoint, username, password, subscriptionId: id } = options;
  if (endpoint === undefined || username === undefined || password === undefined) return null;
  const subscription = { status: 'running', filter: '', stageOrder: false, id } as const;
  const address = { endpoint, username, password };
  try {
    return subscriptions.create({ ...subscription, events: notificationEvents, address }).id;
  } catch (error) {
    if (!(error instanceof SubscriptionRefusal)) throw error;
    throw new SandboxConfigurationError(error.message, { cause: error });
  }
}

function validate<Schema extends z.ZodType>(schema: Schema, value: unknown, name: string) {
  const { data, error } = schema.safeParse(value);
  if (error === undefined) return data;
  throw new SandboxConfigurationError(`Invalid ${name}: ${describeIssues(error)}.`);
}

/** Opens all ports. Throws SandboxConfigurationError, with none left open, if one cannot be opened. */
async function openPorts(
  options: CheckedSandboxOptions,
  parts: SandboxParts,
  subscriptionId: string | null,
  signal: AbortSignal,
) {
  const { endpoint = null, allowRemoteControl: allowRemote } = options;
  const opened: LocalServer[] = [];
  const close = async () => void (await Promise.all(opened.map((server) => server.close())));
  const open = async (
    { fetch }: { fetch: Parameters<typeof startLocalServer>[0] },
    address: ListenAddress,
    name: string,
    hazard: string,
  ) => {
    const server = await startLocalServer(fetch, address, { name, hazard, allowRemote });
    opened.push(server);
    return server.url;
  };
  try {
    const services = createServiceApp({ ...parts, signal });
    const passwordHazard = 'it uses plain HTTP and a publicly known password';
    const catalogueUrl = await open(services, options.serviceListen, 'service', passwordHazard);
    const inference = createInferenceApp({ ...parts.inference, clock: parts.clock, signal });
    const keyHazard = 'it uses plain HTTP and publicly known keys';
    const { inferenceListen } = options;
    const inferenceUrl = await open(inference, inferenceListen, 'inference service', keyHazard);
    const urls = {
      catalogueUrl,
      tokenUrl: `${catalogueUrl}${realmPath}${tokenPath}`,
      inferenceUrl,
    };
    const about = { endpoint, subscriptionId, ...urls };
    const control = createControlApp({ ...parts, about, signal });
    const { controlListen } = options;
    const controlUrl = await open(control, controlListen, 'control port', 'it has no password');
    return { controlUrl, ...urls, close };
  } catch (error) {
    await close();
    throw error;
  }
}
