/** Opens what commands work with that look at or change the catalogue account. */

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
import { openStore, type Store } from '../store/store.ts';
import { waitForLock } from './closers.ts';
import { createServiceClock, createStoppableFetch, type Io } from './io.ts';

export interface OpenedAccount extends AccountContext {
  store: Store;
  /** The same with credentials: made, and kept in the data directory, if there were none. */
  withCredentials(): Promise<AccountContext>;
  /** Gives the lock back while `work` waits for something that may take minutes. */
  unlocked<Result>(work: () => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

/** What the account's side uses of the process. */
export type AccountIo = Pick<
  Io,
  'nowUs' | 'random' | 'newSecret' | 'fetch' | 'readFile' | 'signal'
>;

/** For a store that is open already. Throws `configuration` for a roots file that cannot be read. */
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

/** What a command does with the account. */
export interface AccountUse {
  /** Only looks: then no other command is waited for. */
  readOnly?: boolean;
  /** Gives the catalogue credentials, so that there must be some. */
  needsCredentials?: boolean;
}

/** Opens the store, and holds the lock on the account's subscriptions unless it only looks. */
export async function openAccount(
  config: CompleteAccountConfig,
  io: AccountIo & Pick<Io, 'stderr'>,
  { readOnly = false, needsCredentials = false }: AccountUse,
): Promise<OpenedAccount> {
  const store = await openStore({ dataDir: config.dataDir, nowUs: io.nowUs });
  let release: () => void = () => undefined;
  const lock = async () => {
    if (readOnly) return;
    const acquireLock = createAcquireLock(config.dataDir);
    const waiting = 'Waiting for another earshot command that changes the account …';
    release = await waitForLock(acquireLock, 'subscriptions', { io, waiting });
  };
  try {
    await lock();
    // Read under the lock: a rotation may have ended while it was waited for.
    const { dataDir, endpoint } = config;
    const pairs = endpoint.source === 'variables' ? endpoint.pairs : readCredentialsFile(dataDir);
    const credentials = pairs?.at(-1);
    if (credentials === undefined && needsCredentials) {
      throw new AppError('configuration', 'There are no endpoint credentials for the catalogue.', {
        advice:
          '`earshot credentials create` makes some; then start the receiver, and run `earshot register`.',
      });
    }
    const context = createAccountContext(config, credentials ?? none, store, io);
    const probe = config.probeCa === undefined ? context.probe : announced(context.probe, io);
    return {
      ...context,
      probe,
      store,
      withCredentials: async () => {
        if (credentials !== undefined) return { ...context, probe };
        const made = newCredentials(io);
        await writeCredentialsFile(config.dataDir, [made]);
        io.stderr.write('Endpoint credentials were made, and are kept in the data directory.\n');
        return { ...context, probe, credentials: made };
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

/** Says once, when it matters, that a trust was added which the catalogue does not share. */
function announced(probe: ProbeEndpoint, { stderr }: Pick<Io, 'stderr'>): ProbeEndpoint {
  let isTold = false;
  return (endpoint, credentials) => {
    if (!isTold) stderr.write(`${extraRoots}\n`);
    isTold = true;
    return probe(endpoint, credentials);
  };
}

const extraRoots =
  'EARSHOT_PROBE_CA: authorities besides the public ones are trusted here. The catalogue trusts the public ones only.';

/** Stands for credentials that are still to be made. */
const none: EndpointCredentials = { username: '', password: '' };

/** A pair that nobody has guessed or used: 256 random bits, no colon. */
export function newCredentials({ newSecret }: Pick<Io, 'newSecret'>): EndpointCredentials {
  return { username: `earshot-${newSecret().slice(0, 8)}`, password: newSecret() };
}

/** Without a file, only the public authorities are trusted. Throws `configuration` for one that cannot be read. */
export function probeTrusting(
  file: string | undefined,
  { readFile }: Pick<Io, 'readFile'>,
): ProbeEndpoint {
  if (file === undefined) return createEndpointProbe({});
  let pem: string;
  try {
    pem = readFile(file);
  } catch (cause) {
    throw new AppError('configuration', `EARSHOT_PROBE_CA names ${file}, which cannot be read.`, {
      advice: 'Name a PEM file, or unset it.',
      cause,
    });
  }
  return createEndpointProbe({ extraCaPems: [pem] });
}
