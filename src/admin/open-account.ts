/** Opens the store and the catalogue account for commands that read or change subscriptions. */

import {
  createServiceClock,
  createStoppableFetch,
  type Io,
  pause,
  stopped,
} from '../core/cli/io.ts';
import { createProgressLine } from '../core/cli/output.ts';
import { readCredentialsFile, writeCredentialsFile } from '../core/config/endpoint-credentials.ts';
import { waitForLock } from '../core/host/job.ts';
import { AppError } from '../core/terms/app-error.ts';
import { createAcquireLock } from '../store/engine/locks.ts';
import type { Store } from '../store/store.ts';
import { openConfiguredStore, silent } from '../store/store.ts';
import type { AccountContext } from './changes.ts';
import { createEndpointProbe, type ProbeEndpoint } from './endpoint-probe.ts';
import type { QueueState } from './pull-queue.ts';
import { openPullQueue } from './queue-client.ts';
import { createQueueReader, createTurns } from './queue-reader.ts';
import { createAccessTokens } from './session.ts';
import type { CompleteAccountConfig } from './settings.ts';
import { createSubscriptionClient, type EndpointCredentials } from './subscription-client.ts';

export interface OpenedAccount extends AccountContext {
  store: Store;
  /** Returns the same with credentials. If there are none, creates them in the data directory. */
  withCredentials(): Promise<AccountContext>;
  /** Releases the lock while `work` waits, which may take minutes. */
  unlocked<Result>(work: () => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

export type AccountIo = Pick<
  Io,
  'nowUs' | 'random' | 'newId' | 'newSecret' | 'fetch' | 'readFile' | 'signal'
>;

/** Creates the context on an open store. Throws `configuration` if EARSHOT_PROBE_CA cannot be read. */
export function createAccountContext(
  config: CompleteAccountConfig,
  credentials: EndpointCredentials,
  store: Pick<Store, 'accept' | 'administration' | 'acquireLock'>,
  io: AccountIo,
  progress?: Progress,
): AccountContext {
  const { account, dataDir, catalogueUrl, publicUrl = null, limits, probeCa } = config;
  const { administration } = store;
  const { random, newSecret } = io;
  const acquireLock = createAcquireLock(dataDir);
  const own = { nowUs: io.nowUs, fetch: createStoppableFetch(io) };
  const tokens = createAccessTokens({ account, dataDir, ...own, acquireLock });
  const { nowUs, fetch } = createServiceClock(own);
  return {
    client: createSubscriptionClient({ catalogueUrl, tokens, fetch, random }),
    administration,
    publicUrl,
    limits,
    credentials,
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
  progress: Progress | undefined,
): AccountContext['drain'] {
  const { nowUs, random, signal } = io;
  const queue = openPullQueue(config, io);
  const takeTurn = createTurns(store.acquireLock);
  const common = { queue, intake: store, takeTurn, nowUs, random, pause, log: silent };
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

type Progress = ReturnType<typeof createProgressLine>;

/** Access of a command to the account. */
export interface AccountUse {
  /** The command changes nothing, so it does not wait for the lock. */
  readOnly?: boolean;
  /** The command sends the endpoint credentials to the catalogue, so they must exist. */
  needsCredentials?: boolean;
  /** EARSHOT_PUBLIC_URL must be set. By default, only if this receiver needs an endpoint. */
  publicUrl?: boolean;
}

/** Opens the store; acquires the lock on the account's subscriptions unless `readOnly`. */
export async function openAccount(
  config: CompleteAccountConfig,
  io: AccountIo & Pick<Io, 'stderr' | 'features'>,
  { readOnly = false, needsCredentials = false }: AccountUse,
): Promise<OpenedAccount> {
  const { dataDir } = config;
  const store = await openConfiguredStore(config, io);
  let release: () => void = () => undefined;
  const lock = async () => {
    if (readOnly) return;
    const waiting = 'Waiting for another earshot command that is changing the account …';
    release = await waitForLock(store.acquireLock, 'subscriptions', { io, waiting });
  };
  try {
    await lock();
    // Read while holding the lock: a rotation may have ended during the wait.
    await store.shared?.syncFiles();
    const { endpoint } = config;
    const pairs = endpoint.source === 'variables' ? endpoint.pairs : readCredentialsFile(dataDir);
    const credentials = pairs?.at(-1);
    const isPush = async () =>
      (await store.administration.registrations()).some(({ type }) => type === 'push');
    if (credentials === undefined && needsCredentials && (await isPush())) {
      throw new AppError('configuration', 'There are no endpoint credentials for the catalogue.', {
        advice: 'Run `earshot credentials create`, start the receiver, and run `earshot register`.',
      });
    }
    const progress = createProgressLine(io.stderr);
    const own = createAccountContext(config, credentials ?? none, store, io, progress);
    return {
      ...own,
      store,
      withCredentials: async () => {
        if (credentials !== undefined) return own;
        return { ...own, credentials: await createCredentials(dataDir, store, io) };
      },
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

/** Creates endpoint credentials in the data directory; with a shared log, for all receivers. */
async function createCredentials(
  dataDir: string,
  { shared }: Pick<Store, 'shared'>,
  io: AccountIo & Pick<Io, 'stderr'>,
): Promise<EndpointCredentials> {
  const created = newCredentials(io);
  await writeCredentialsFile(dataDir, [created]);
  await shared?.shareCredentials([created], io.signal);
  io.stderr.write('Endpoint credentials created in the data directory.\n');
  return created;
}

function drainText({ subscription, entries, length }: QueueState): string {
  const rest = length === null ? '' : `, ${length} left`;
  return `reading the queue of ${subscription}: ${entries} notifications stored${rest} …`;
}

/** Placeholder until credentials are created. */
const none: EndpointCredentials = { username: '', password: '' };

/** Creates a random pair: 256 bits, no colon. */
export function newCredentials({ newSecret }: Pick<Io, 'newSecret'>): EndpointCredentials {
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
