/** Opens the store and the catalogue account for commands that read or change subscriptions. */

import { createAccessTokens } from '../admin/access-tokens.ts';
import { createEndpointProbe, type ProbeEndpoint } from '../admin/endpoint-probe.ts';
import type { AccountContext } from '../admin/plan-context.ts';
import {
  createSubscriptionClient,
  type EndpointCredentials,
} from '../admin/subscription-client.ts';
import type { CompleteAccountConfig } from '../config/config.ts';
import { readCredentialsFile, writeCredentialsFile } from '../config/endpoint-credentials.ts';
import { AppError } from '../domain/app-error.ts';
import { createAcquireLock } from '../store/engine/locks.ts';
import type { Store } from '../store/store.ts';
import { waitForLock } from './closers.ts';
import { createServiceClock, createStoppableFetch, type Io } from './io.ts';
import { openConfiguredStore } from './open-store.ts';

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
  { administration }: Pick<Store, 'administration'>,
  io: AccountIo,
): AccountContext {
  const { account, dataDir, catalogueUrl, publicUrl, limits, probeCa } = config;
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
    nowUs,
    random,
    newSecret,
  };
}

/** Access of a command to the account. */
export interface AccountUse {
  /** The command changes nothing, so it does not wait for the lock. */
  readOnly?: boolean;
  /** The command sends the endpoint credentials to the catalogue, so they must exist. */
  needsCredentials?: boolean;
}

/** Opens the store; acquires the lock on the account's subscriptions unless `readOnly`. */
export async function openAccount(
  config: CompleteAccountConfig,
  io: AccountIo & Pick<Io, 'stderr'>,
  { readOnly = false, needsCredentials = false }: AccountUse,
): Promise<OpenedAccount> {
  const { dataDir, sharedLog } = config;
  const store = await openConfiguredStore({ dataDir, sharedLog }, io);
  let release: () => void = () => undefined;
  const lock = async () => {
    if (readOnly) return;
    const waiting = 'Waiting for another earshot command that is changing the account …';
    release = await waitForLock(store.acquireLock, 'subscriptions', { io, waiting });
  };
  try {
    await lock();
    // Read while holding the lock: a rotation may have ended during the wait.
    if (store.node !== null) {
      const { createFileSync } = await import('./shared-files.ts');
      await createFileSync(config.dataDir, store.node.log.files)();
    }
    const { endpoint } = config;
    const pairs = endpoint.source === 'variables' ? endpoint.pairs : readCredentialsFile(dataDir);
    const credentials = pairs?.at(-1);
    if (credentials === undefined && needsCredentials) {
      throw new AppError('configuration', 'There are no endpoint credentials for the catalogue.', {
        advice: 'Run `earshot credentials create`, start the receiver, and run `earshot register`.',
      });
    }
    const context = createAccountContext(config, credentials ?? none, store, io);
    const probe = config.probeCa === undefined ? context.probe : withNotice(context.probe, io);
    return {
      ...context,
      probe,
      store,
      withCredentials: async () => {
        if (credentials !== undefined) return { ...context, probe };
        const created = newCredentials(io);
        await writeCredentialsFile(config.dataDir, [created]);
        if (store.node !== null) {
          const { shareCredentials } = await import('./shared-files.ts');
          await shareCredentials(config.dataDir, store.node.log, [created], io.signal);
        }
        io.stderr.write('Endpoint credentials created in the data directory.\n');
        return { ...context, probe, credentials: created };
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

/** Prints once, before the first probe, that EARSHOT_PROBE_CA adds certificate authorities. */
function withNotice(probe: ProbeEndpoint, { stderr }: Pick<Io, 'stderr'>): ProbeEndpoint {
  let isPrinted = false;
  return (endpoint, credentials) => {
    if (!isPrinted) stderr.write(`${extraRoots}\n`);
    isPrinted = true;
    return probe(endpoint, credentials);
  };
}

const extraRoots =
  'EARSHOT_PROBE_CA adds certificate authorities to the public ones. The catalogue trusts only the public ones.';

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
