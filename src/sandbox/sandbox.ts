/** Composes the sandbox: it publishes products, delivers them to subscriptions, and answers as three services. */
import {
  type AddedSubscription,
  addedSubscriptionSchema,
  createSubscriptions,
  pushSubscriptionsFor,
  SubscriptionRefusal,
  viewOf,
} from './account.ts';
import { createRandom, createSandboxClock } from './clock.ts';
import { createControlApp } from './control.ts';
import { createDeliverer } from './delivery/deliverer.ts';
import { createDeliveryRecord } from './delivery/delivery-record.ts';
import { createDispatcher, createRecipients } from './delivery/dispatcher.ts';
import { faultsSchema } from './delivery/faults.ts';
import { type NotificationEvent, notificationEvents } from './delivery/notification.ts';
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
 * Starts publishing at once when an endpoint is given, else when the first push subscription runs.
 * Throws SandboxConfigurationError for faulty options, a faulty records file, a refused endpoint and a
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
    /** Origins of the control port, the catalogue and the inference service; the token endpoint. */
    ...urls,
    /** The subscription that runs from the start; null when no endpoint was given. */
    subscriptionId,
    clock: parts.clock,
    /** The knobs of the services. */
    service: parts.liveSettings,
    /** The knobs of the inference service, and its requests. */
    inference: {
      ...liveSettings,
      requests: inferenceRecord.requests,
      totals: inferenceRecord.totals,
    },
    totals: record.totals,
    /** Counts of what the catalogue holds, notified or not. */
    holdings: parts.holdings.totals,
    /** Every notification in the order of publication, with its attempts. */
    entries: record.entries,
    /**
     * Returns the catalogue's events, oldest first, with what became of each. Throws SubscriptionRefusal
     * for a filter that no subscription to them could have.
     */
    events: (selection?: EventSelection) => catalogueEvents(parts, selection),
    /** Returns the account's subscriptions, oldest first; copies without credentials. */
    subscriptions: () => subscriptions.list().map(viewOf),
    /**
     * Adds a subscription as another client of the account would, within the limits and rules. Throws
     * SubscriptionRefusal, and SandboxConfigurationError for options that do not fit.
     */
    addSubscription: (added: AddedSubscription) => viewOf(subscriptions.create(checkAdded(added))),
    /** Returns the last thousand requests to the account's services. */
    requests: parts.requests.entries,
    /**
     * Resolves when the count is published, or the records have run out, and everything is delivered or
     * lost; also when the sandbox was closed. Rejects with what `onSettled` threw.
     */
    finished,
    /** Publishes at once, even when paused and beyond the count; returns how many there were products for. */
    publishNow: (count: number, event: NotificationEvent = 'created') =>
      publisher.publishNow(count, event),
    /**
     * Moves the time forward while products are published, and their changes with them; each notification
     * leaves at its own time. For a sandbox that publishes nothing by rate: with `count: 0`, or paused.
     */
    pass: (period: SimulatedPeriod) => publisher.pass(period, signal),
    /** Resolves when all that is due was sent: what is left waits for its time. */
    quiet: publisher.quiet,
    /** The fault rates of deliveries. */
    faults: parts.faults,
    /** Stops publishing by rate until it is resumed; what is published is still delivered. */
    pause: publisher.pause,
    resume: publisher.resume,
    /** Stops publishing, gives up open deliveries (they stay pending), closes every socket. May be repeated. */
    close: async (): Promise<void> => {
      stopping.abort();
      parts.deliverer.close();
      await close();
      // A failure of the run is reported by `finished`; closing must succeed all the same.
      await Promise.allSettled([finished]);
    },
  };
}

type SandboxParts = ReturnType<typeof createParts>;

// Keep what is drawn for one purpose from shifting what is drawn for another with the same seed.
const seeds = {
  subscriptions: 0x5eed_0001,
  bodies: 0x5eed_0002,
  publishing: 0x5eed_0003,
  tokens: 0x5eed_0004,
  requests: 0x5eed_0005,
  inference: 0x5eed_0006,
  queries: 0x5eed_0007,
};

function createParts(options: CheckedSandboxOptions, signal: AbortSignal) {
  const { seed, account } = options;
  const randomOf = (purpose: keyof typeof seeds) => createRandom(seed ^ seeds[purpose]);
  const source = createSource(options);
  const clock = createSandboxClock(options);
  const liveSettings = createLiveServiceSettings(options.service);
  const subscriptions = createSubscriptions({
    clock,
    liveSettings,
    endpointRules: options,
    random: randomOf('subscriptions'),
  });
  const provider = createIdentityProvider({
    account,
    liveSettings,
    clock,
    random: randomOf('tokens'),
  });
  const deliverer = createDeliverer(options);
  const record = createDeliveryRecord();
  const dispatcher = createDispatcher({ ...options, deliverer, record, clock, signal });
  const state = {
    faults: createLiveSettings(faultsSchema, options.faults, 'fault'),
    holdings: createHoldings({ holdingsMax: options.holdingsMax, now: clock.now }),
    ledger: createEventLedger(options.eventsMax),
  };
  const publisher = createPublisher({
    ...options,
    ...state,
    source,
    recipientsOf: createRecipients(subscriptions, seed ^ seeds.bodies),
    pausedIdsOf: (event, product) => {
      const paused = pushSubscriptionsFor(subscriptions.list(), event, 'paused');
      return paused.filter(({ matches }) => matches(product)).map(({ id }) => id);
    },
    dispatcher,
    clock,
    random: randomOf('publishing'),
    begins: subscriptions.firstRunning,
  });
  return {
    ...state,
    clock,
    liveSettings,
    subscriptions,
    provider,
    deliverer,
    record,
    publisher,
    requests: createRequestLog<LoggedRequest>(),
    inference: {
      liveSettings: createLiveSettings(inferenceSettingsSchema, options.inference, 'inference'),
      record: createInferenceRecord(),
      seed: seed ^ seeds.inference,
    },
    random: randomOf('requests'),
    queryRandom: randomOf('queries'),
  };
}

/** Records from a file are published untouched, with their own dates; the generator changes them later. */
function createSource({ seed, recordsFile }: CheckedSandboxOptions): PublicationSource {
  const generator = createProductGenerator({ seed });
  if (recordsFile === undefined) return generator;
  const remaining = readProductRecords(recordsFile).values();
  return { ...generator, next: () => remaining.next().value };
}

/** Creates the subscription that runs from the start, if there is one; returns its id. */
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

function checkAdded(subscription: AddedSubscription) {
  const { data, error } = addedSubscriptionSchema.safeParse(subscription);
  if (data) return data;
  throw new SandboxConfigurationError(`The subscription was not added. ${describeIssues(error)}.`);
}

/** Throws SandboxConfigurationError, with nothing left open, when a port cannot be opened. */
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
    const passwordHazard = 'it speaks plain HTTP and knows a password that everybody does';
    const catalogueUrl = await open(services, options.serviceListen, 'service', passwordHazard);
    const inference = createInferenceApp({ ...parts.inference, clock: parts.clock, signal });
    const keyHazard = 'it speaks plain HTTP and knows keys that everybody does';
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
