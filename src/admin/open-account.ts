/** Opens the store and the catalogue account for commands that read or change subscriptions. */

import {
  createServiceClock,
  createStoppableFetch,
  type Io,
  pause,
  stopped,
} from '../core/cli/io.ts';
import { createProgressLine, type ProgressLine } from '../core/cli/output.ts';
import { readCredentialsFile, writeCredentialsFile } from '../core/config/endpoint-credentials.ts';
import { waitForLock } from '../core/host/job.ts';
import { AppError } from '../core/terms/app-error.ts';
import type { CredentialPair } from '../core/terms/ports.ts';
import { createAcquireLock } from '../store/engine/locks.ts';
import type { Store } from '../store/store.ts';
import { openConfiguredStore, openSharedParts, silent } from '../store/store.ts';
import type { AccountContext } from './changes.ts';
import { createEndpointProbe, type ProbeEndpoint } from './endpoint-probe.ts';
import type { QueueState } from './pull-queue.ts';
import { openPullQueue } from './queue-client.ts';
import { createQueueReader, createTurns } from './queue-reader.ts';
import { createAccessTokens } from './session.ts';
import type { AccountConfig, CompleteAccountConfig } from './settings.ts';
import { createSubscriptionClient } from './subscription-client.ts';

export interface OpenedAccount extends AccountContext {
  store: Store;
  /** Releases the lock while `work` waits, which may take minutes. */
  unlocked<Result>(work: () => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

export type AccountIo = Pick<
  Io,
  'nowUs' | 'random' | 'newId' | 'newSecret' | 'fetch' | 'readFile' | 'signal'
>;

/**
 * Creates the context on an open store, with the present credentials: the caller holds the lock, as a rotation may have
 * just ended. Throws `configuration` if EARSHOT_PROBE_CA or the file of the credentials cannot be read.
 */
export function createAccountContext(
  config: CompleteAccountConfig,
  store: Pick<Store, 'accept' | 'administration' | 'acquireLock'>,
  io: AccountIo,
  progress?: ProgressLine,
): AccountContext {
  const { account, dataDir, catalogueUrl, publicUrl = null, limits, probeCa } = config;
  const { administration } = store;
  const { random, newSecret } = io;
  const { source, pairs } = config.endpoint;
  const accepted = source === 'variables' ? pairs : (readCredentialsFile(dataDir) ?? []);
  const own = { nowUs: io.nowUs, fetch: createStoppableFetch(io) };
  const tokens = createAccessTokens({ account, dataDir, ...own });
  const { nowUs, fetch } = createServiceClock(own);
  return {
    client: createSubscriptionClient({ catalogueUrl, tokens, fetch, random }),
    administration,
    publicUrl,
    limits,
    credentials: accepted.at(-1) ?? null,
    accepted,
    probe: probeTrusting(probeCa, io),
    drain: createDrain(config, store, io, progress),
    nowUs,
    random,
    newSecret,
  };
}

/** Returns the function that drains queues; a running receiver may read the same queue meanwhile. */
function createDrain(
  config: CompleteAccountConfig,
  store: Pick<Store, 'accept' | 'administration' | 'acquireLock'>,
  io: AccountIo,
  progress: ProgressLine | undefined,
): AccountContext['drain'] {
  const { nowUs, random, signal } = io;
  const queue = openPullQueue(config, io);
  const inTurn = createTurns(store.acquireLock);
  const common = { queue, intake: store, inTurn, nowUs, random, pause, log: silent };
  return async (subscription) => {
    let isDelivered = false;
    const onDelivered = () => {
      isDelivered = true;
    };
    const reader = createQueueReader(subscription, { ...common, onDelivered });
    try {
      await reader.drain(signal, (state) => progress?.show(drainText(state)));
    } catch (error) {
      throw signal.aborted ? stopped() : error;
    } finally {
      progress?.clear();
    }
    const mark = { subscription: subscription.name, username: '', lastAtUs: nowUs() };
    if (isDelivered) await store.administration.markDeliveries([mark]);
  };
}

/** Access of a command to the account. */
export interface AccountUse {
  /** The command changes nothing, so it does not wait for the lock. */
  readOnly?: boolean;
  /** EARSHOT_PUBLIC_URL must be set. By default, only if this receiver needs an endpoint. */
  publicUrl?: boolean;
}

/** Opens the store; acquires the lock on the account's subscriptions unless `readOnly`. */
export async function openAccount(
  config: CompleteAccountConfig,
  io: AccountIo & Pick<Io, 'stderr' | 'features'>,
  { readOnly = false }: AccountUse,
): Promise<OpenedAccount> {
  const store = await openConfiguredStore(config, io);
  let release: () => void = () => undefined;
  const lock = async () => {
    if (readOnly) return;
    const waiting = 'Waiting for another earshot command that is changing the account …';
    release = await waitForLock(store.acquireLock, 'subscriptions', { io, waiting });
  };
  try {
    await lock();
    await store.shared?.syncFiles();
    return {
      ...createAccountContext(config, store, io, createProgressLine(io.stderr)),
      store,
      unlocked: async (work) => {
        release();
        try {
          return await work();
        } finally {
          await lock();
        }
      },
      close: async () => {
        release();
        await store.close();
      },
    };
  } catch (error) {
    release();
    await store.close();
    throw error;
  }
}

/** Maximum wait for another program that changes the account or its credentials. */
const lockWaitMs = 10_000;

/**
 * Stores endpoint credentials in the data directory, and with a shared log for all receivers: those of the variables, else
 * random ones. Returns false if some are stored already.
 */
export async function createCredentials(
  config: AccountConfig,
  io: Parameters<typeof openSharedParts>[1] & Pick<Io, 'newSecret'>,
): Promise<boolean> {
  const { dataDir, endpoint } = config;
  // The lock prevents two simultaneous runs from overwriting each other's credentials.
  const release = await createAcquireLock(dataDir)('subscriptions', { waitMs: lockWaitMs });
  try {
    const { syncFiles, close } = await openSharedParts(config, io);
    try {
      await syncFiles?.();
      if (readCredentialsFile(dataDir) !== null) return false;
      const areSet = endpoint.source === 'variables';
      await writeCredentialsFile(dataDir, areSet ? endpoint.pairs : [newCredentials(io)]);
      await syncFiles?.();
      return true;
    } finally {
      await close();
    }
  } finally {
    release();
  }
}

function drainText({ subscription, entries, length }: QueueState): string {
  const rest = length === null ? '' : `, ${length} left`;
  return `reading the queue of ${subscription}: ${entries} notifications stored${rest} …`;
}

/** Creates a random pair: 256 bits, no colon. */
export function newCredentials({ newSecret }: Pick<Io, 'newSecret'>): CredentialPair {
  return { username: `earshot-${newSecret().slice(0, 8)}`, password: newSecret() };
}

/** Creates a probe that also trusts the authorities of a PEM file. Throws `configuration` if it cannot be read. */
export function probeTrusting(
  file: string | undefined,
  { readFile }: Pick<Io, 'readFile'>,
): ProbeEndpoint {
  if (file === undefined) return createEndpointProbe({});
  let pem: string;
  try {
    pem = readFile(file);
  } catch (cause) {
    throw new AppError('configuration', `The file of EARSHOT_PROBE_CA cannot be read: ${file}.`, {
      advice: 'Set EARSHOT_PROBE_CA to a PEM file, or unset it.',
      cause,
    });
  }
  return createEndpointProbe({ extraCaPems: [pem] });
}
