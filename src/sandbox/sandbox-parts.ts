/** Creates what a sandbox is made of, and wires it; opens nothing. */

import { createSubscriptions } from './account/subscriptions.ts';
import { createDeliverer } from './delivery/delivery.ts';
import { createDeliveryRecord } from './delivery/delivery-record.ts';
import { createDispatcher } from './delivery/dispatcher.ts';
import { createFaultSettings } from './delivery/faults.ts';
import { createRecipients, pausedRecipientIds } from './delivery/recipients.ts';
import { createInferenceService } from './inference/inference-service.ts';
import { createProductGenerator } from './products/product-generator.ts';
import { readProductRecords } from './products/product-records.ts';
import { createEventLedger } from './publishing/event-ledger.ts';
import { createHoldings } from './publishing/holdings.ts';
import { createRecordSource, type PublicationSource } from './publishing/publication-source.ts';
import { createPublisher } from './publishing/publisher.ts';
import { createRandom } from './random.ts';
import { createSandboxClock } from './sandbox-clock.ts';
import type { CheckedSandboxOptions } from './sandbox-options.ts';
import { createIdentityProvider } from './services/identity-provider.ts';
import { createRequestLog } from './services/request-log.ts';
import { createServiceKnobs } from './services/service-settings.ts';

export type SandboxParts = Awaited<ReturnType<typeof createSandboxParts>>;

// Keep what is drawn for one purpose from shifting what is drawn for another with the same seed.
const subscriptionSeed = 0x5eed_0001;
const bodySeed = 0x5eed_0002;
const publishingSeed = 0x5eed_0003;
const tokenSeed = 0x5eed_0004;
const requestSeed = 0x5eed_0005;
const inferenceSeed = 0x5eed_0006;
const querySeed = 0x5eed_0007;

/** Throws SandboxConfigurationError for an authority that is none; a faulty records file throws the reader's error. */
export async function createSandboxParts(options: CheckedSandboxOptions, signal: AbortSignal) {
  const { seed, account } = options;
  const source = await createSource(options);
  const clock = createSandboxClock(options);
  const knobs = createServiceKnobs(options.service);
  const subscriptions = createSubscriptions({
    clock,
    knobs,
    endpointRules: options,
    random: createRandom(seed ^ subscriptionSeed),
  });
  const provider = createIdentityProvider({
    account,
    knobs,
    clock,
    random: createRandom(seed ^ tokenSeed),
  });
  const deliverer = createDeliverer(options);
  const record = createDeliveryRecord();
  const { retryDelaysMs, onSettled, onAttempt } = options;
  const listeners = { ...(onSettled ? { onSettled } : {}), ...(onAttempt ? { onAttempt } : {}) };
  const means = { deliverer, record, clock, signal, retryDelaysMs };
  const dispatcher = createDispatcher({ ...means, ...listeners });
  const state = {
    faults: createFaultSettings(options.faults),
    holdings: createHoldings({ heldMax: options.heldMax, now: clock.now }),
    ledger: createEventLedger(options.eventsMax),
  };
  const publisher = createPublisher({
    ...options,
    ...state,
    source,
    recipientsOf: createRecipients(subscriptions, seed ^ bodySeed),
    pausedIdsOf: (event, product) => pausedRecipientIds(subscriptions, event, product),
    dispatcher,
    clock,
    random: createRandom(seed ^ publishingSeed),
    begins: subscriptions.firstRunning,
  });
  return {
    ...state,
    clock,
    knobs,
    subscriptions,
    provider,
    deliverer,
    record,
    publisher,
    requests: createRequestLog(),
    inference: createInferenceService(options, seed ^ inferenceSeed),
    random: createRandom(seed ^ requestSeed),
    queryRandom: createRandom(seed ^ querySeed),
  };
}

async function createSource({
  seed,
  recordsFile,
}: CheckedSandboxOptions): Promise<PublicationSource> {
  const generator = createProductGenerator({ seed });
  if (recordsFile === undefined) return generator;
  return createRecordSource(await readProductRecords(recordsFile), generator);
}
