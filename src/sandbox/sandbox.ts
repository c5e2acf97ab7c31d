/** Puts the sandbox together: it publishes products, delivers them to subscriptions, and writes texts. */
import {
  type AddedSubscription,
  addedSubscriptionSchema,
  toNewSubscription,
} from './account/added-subscription.ts';
import { type SubscriptionView, viewOf } from './account/subscription.ts';
import { SubscriptionRefusal } from './account/subscription-refusal.ts';
import { SandboxConfigurationError } from './configuration-error.ts';
import type { DeliveryEntry, DeliveryTotals } from './delivery/delivery-record.ts';
import type { FaultSettings } from './delivery/faults.ts';
import type { NotificationEvent } from './delivery/notification.ts';
import { type InferenceView, viewOfInference } from './inference/inference-service.ts';
import {
  type CatalogueEvent,
  catalogueEvents,
  type EventSelection,
} from './publishing/catalogue-events.ts';
import type { HoldingsTotals } from './publishing/holdings.ts';
import type { Passage } from './publishing/simulated-time.ts';
import type { SandboxClock } from './sandbox-clock.ts';
import {
  type CheckedSandboxOptions,
  checkSandboxOptions,
  type SandboxOptions,
} from './sandbox-options.ts';
import { createSandboxParts, type SandboxParts } from './sandbox-parts.ts';
import { openSandboxPorts } from './sandbox-ports.ts';
import type { LoggedRequest } from './services/request-log.ts';
import type { ServiceKnobs } from './services/service-settings.ts';

export interface Sandbox {
  /** Where it is steered: `http://<host>:<port>`. */
  readonly controlUrl: string;
  /** The catalogue, without `/odata/v1`. */
  readonly catalogueUrl: string;
  /** The token endpoint of the identity provider. */
  readonly tokenUrl: string;
  /** The inference service, without `/openai/v1`. */
  readonly inferenceUrl: string;
  /** The subscription that runs from the start; null when no endpoint was given. */
  readonly subscriptionId: string | null;
  readonly clock: Pick<SandboxClock, 'now' | 'advance'>;
  /** The knobs of the services. */
  readonly service: ServiceKnobs;
  /** The knobs of the inference service, and what it was asked. */
  readonly inference: InferenceView;
  totals(): DeliveryTotals;
  /** How much the catalogue holds, whoever was told of it. */
  holdings(): HoldingsTotals;
  /** Every notification in the order of publication, with its attempts. */
  entries(): readonly DeliveryEntry[];
  /**
   * The truth: the catalogue's events, oldest first, with what became of each. Throws SubscriptionRefusal for
   * a filter that no subscription to them could have.
   */
  events(selection?: EventSelection): Iterable<CatalogueEvent>;
  /** The account's subscriptions now, oldest first; copies without credentials. */
  subscriptions(): readonly SubscriptionView[];
  /**
   * Puts a subscription into the account as a stranger would, within the limits and rules. Throws
   * SubscriptionRefusal, and SandboxConfigurationError for options that do not fit.
   */
  addSubscription(subscription: AddedSubscription): SubscriptionView;
  /** The last thousand requests that the account's services were sent. */
  requests(): readonly LoggedRequest[];
  /**
   * Resolves when the count is published, or the records have run out, and everything is delivered or
   * lost; also when the sandbox was closed. Rejects with what `onSettled` threw.
   */
  readonly finished: Promise<DeliveryTotals>;
  /** Publishes at once, even when paused and beyond the count; returns how many there were products for. */
  publishNow(count: number, event?: NotificationEvent): Promise<number>;
  /**
   * Moves the time forward while products are published, and their changes with them; each notification
   * leaves at its own time. For a sandbox that publishes nothing by rate: with `count: 0`, or paused.
   */
  pass(passage: Passage): Promise<number>;
  /** Resolves when all that is due was sent: what is left waits for its time. */
  quiet(): Promise<void>;
  /** The fault rates of deliveries. */
  readonly faults: FaultSettings;
  /** Stops publishing by rate until it is resumed; what is published is still delivered. */
  pause(): void;
  resume(): void;
  /** Stops publishing, gives up what is under way (it stays pending), closes every socket. May be repeated. */
  close(): Promise<void>;
}

/**
 * Starts publishing at once when an endpoint is given, else when the first push subscription runs.
 * Throws SandboxConfigurationError for faulty options, a refused endpoint and a port that cannot be
 * opened; a faulty records file throws the reader's error.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const checked = checkSandboxOptions(options);
  const stopping = new AbortController();
  const parts = await createSandboxParts(checked, stopping.signal);
  const subscriptionId = subscribeEndpoint(checked, parts);
  if (checked.past !== undefined) await parts.publisher.publishPast(checked.past, stopping.signal);
  const ports = await openSandboxPorts(checked, parts, subscriptionId, stopping.signal);
  const { record, publisher, deliverer, subscriptions, knobs, clock, requests, holdings } = parts;
  const finished = publisher.run(stopping.signal).then(() => record.totals());

  return {
    controlUrl: ports.controlUrl,
    catalogueUrl: ports.catalogueUrl,
    tokenUrl: ports.tokenUrl,
    inferenceUrl: ports.inferenceUrl,
    subscriptionId,
    clock,
    service: knobs,
    inference: viewOfInference(parts.inference),
    totals: record.totals,
    holdings: holdings.totals,
    events: (selection) => catalogueEvents(parts, selection),
    publishNow: (count, event = 'created') => publisher.publishNow(count, event),
    pass: (passage) => publisher.pass(passage, stopping.signal),
    quiet: publisher.quiet,
    faults: parts.faults,
    entries: record.entries,
    subscriptions: () => subscriptions.list().map(viewOf),
    addSubscription: (subscription) => viewOf(subscriptions.create(readAdded(subscription))),
    requests: requests.entries,
    finished,
    pause: publisher.pause,
    resume: publisher.resume,
    close: async () => {
      stopping.abort();
      deliverer.close();
      await ports.close();
      // A failure of the run is told by `finished`; closing must succeed all the same.
      await Promise.allSettled([finished]);
    },
  };
}

/** Makes the subscription that runs from the start, if there is one; tells its id. */
function subscribeEndpoint(options: CheckedSandboxOptions, { subscriptions }: SandboxParts) {
  const { endpoint, username, password, subscriptionId: id } = options;
  if (endpoint === undefined || username === undefined || password === undefined) return null;
  const events = ['created', 'modified', 'deleted'] as const;
  const subscription = { status: 'running', events, filter: '', stageOrder: false } as const;
  const address = { endpoint, username, password };
  try {
    return subscriptions.create({ ...subscription, address, id }).id;
  } catch (error) {
    if (!(error instanceof SubscriptionRefusal)) throw error;
    throw new SandboxConfigurationError(error.message, { cause: error });
  }
}

function readAdded(subscription: AddedSubscription) {
  const result = addedSubscriptionSchema.safeParse(subscription);
  if (result.success) return toNewSubscription(result.data);
  const faults = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw new SandboxConfigurationError(`The subscription was not added. ${faults.join('; ')}.`);
}
