/** Puts the publishing half of the sandbox together: it publishes products and delivers notifications. */
import { createControlApp } from './control.ts';
import { startControlServer } from './control-server.ts';
import { createDeliverer, type Deliverer } from './delivery.ts';
import {
  createDeliveryRecord,
  type DeliveryEntry,
  type DeliveryTotals,
} from './delivery-record.ts';
import { createDispatcher } from './dispatcher.ts';
import { createFaultSettings } from './faults.ts';
import { createNotificationBuilder } from './notification.ts';
import { createProductGenerator } from './products/product-generator.ts';
import { readProductRecords } from './products/product-records.ts';
import { createRecordSource, type PublicationSource } from './publication-source.ts';
import { createPublisher } from './publisher.ts';
import { createRandom } from './random.ts';
import { createSandboxClock } from './sandbox-clock.ts';
import {
  type CheckedSandboxOptions,
  checkSandboxOptions,
  type SandboxOptions,
} from './sandbox-options.ts';

export interface Sandbox {
  /** Where it is steered: `http://<host>:<port>`. */
  readonly controlUrl: string;
  readonly subscriptionId: string;
  totals(): DeliveryTotals;
  /** Every notification in the order of publication, with its attempts. */
  entries(): readonly DeliveryEntry[];
  /**
   * Resolves when the count is published, or the records have run out, and everything is delivered or
   * lost; also when the sandbox was closed. Rejects with what `onSettled` threw.
   */
  readonly finished: Promise<DeliveryTotals>;
  /** Stops publishing, gives up what is under way (it stays pending), closes every socket. May be repeated. */
  close(): Promise<void>;
}

// Keep what is drawn for one purpose from shifting what is drawn for another with the same seed.
const subscriptionSeed = 0x5eed_0001;
const bodySeed = 0x5eed_0002;
const publishingSeed = 0x5eed_0003;

/**
 * Starts publishing at once. Throws SandboxConfigurationError for faulty options, a refused endpoint
 * and a control port that cannot be opened; a faulty records file throws the reader's error.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const checked = checkSandboxOptions(options);
  const source = await createSource(checked);
  const stopping = new AbortController();
  const deliverer = createDeliverer(checked);
  const parts = createParts(checked, source, deliverer, stopping.signal);
  const { record, publisher, subscriptionId } = parts;
  const about = { endpoint: checked.endpoint.href, subscriptionId };
  const app = createControlApp({ ...parts, about });
  const control = await startControlServer(app, checked.controlListen, {
    allowRemote: checked.allowRemoteControl,
  });
  const finished = publisher.run(stopping.signal).then(() => record.totals());

  return {
    controlUrl: control.url,
    subscriptionId,
    totals: record.totals,
    entries: record.entries,
    finished,
    close: async () => {
      stopping.abort();
      deliverer.close();
      await control.close();
      // A failure of the run is told by `finished`; closing must succeed all the same.
      await Promise.allSettled([finished]);
    },
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

function createParts(
  options: CheckedSandboxOptions,
  source: PublicationSource,
  deliverer: Deliverer,
  signal: AbortSignal,
) {
  const { seed, now, onSettled, onAttempt, retryDelaysMs } = options;
  const subscriptionId = options.subscriptionId ?? createRandom(seed ^ subscriptionSeed).uuid();
  const clock = createSandboxClock({ now });
  const faults = createFaultSettings(options.faults);
  const record = createDeliveryRecord();
  const dispatcher = createDispatcher({
    deliverer,
    record,
    clock,
    signal,
    retryDelaysMs,
    ...(onSettled ? { onSettled } : {}),
    ...(onAttempt ? { onAttempt } : {}),
  });
  const builder = createNotificationBuilder({
    subscriptionId,
    random: createRandom(seed ^ bodySeed),
  });
  const random = createRandom(seed ^ publishingSeed);
  const publisher = createPublisher({
    ...options,
    faults,
    source,
    builder,
    dispatcher,
    clock,
    random,
  });
  return { clock, faults, record, publisher, subscriptionId };
}
