/** Opens what commands work with that look at or change the catalogue account. */
import type { ProbeEndpoint } from '../admin/endpoint/endpoint-probe.ts';
import type { AccountWorld } from '../admin/plan/carry-out-plan.ts';
import {
  createSubscriptionClient,
  type EndpointCredentials,
} from '../admin/service/subscription-client.ts';
import { createAccessTokens } from '../admin/session/access-tokens.ts';
import type { CompleteAccountConfig } from '../config/account-config.ts';
import { readCredentialsFile, writeCredentialsFile } from '../config/endpoint-credentials.ts';
import { AppError, isAppError } from '../domain/app-error.ts';
import { createTakeLock } from '../store/engine/locks.ts';
import { openStore, type Store } from '../store/store.ts';
import type { Io } from './io.ts';
import { newCredentials } from './new-credentials.ts';
import { probeTrusting } from './probe-trusting.ts';
import { createServiceClock } from './service-clock.ts';
import { createStoppableFetch } from './stoppable-fetch.ts';

/** Another command may be in the middle of a change: this long nothing is said of it. */
const lockPatienceMs = 1_000;
const lockWaitMs = 60_000;

export interface OpenedAccount {
  store: Store;
  world: AccountWorld;
  /** Gives the lock back while `work` waits for something that may take minutes. */
  unlocked<Result>(work: () => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

/** What of the world the account's side needs. */
export type AccountIo = Pick<
  Io,
  'nowUs' | 'random' | 'newSecret' | 'fetch' | 'readFile' | 'signal'
>;

/** The world for a store that is open already. Throws `configuration` for a roots file that cannot be read. */
export function accountWorld(
  config: CompleteAccountConfig,
  credentials: EndpointCredentials,
  { administration }: Pick<Store, 'administration'>,
  io: AccountIo,
): AccountWorld {
  const { account, dataDir, catalogueUrl, publicUrl, limits, probeCa } = config;
  const { random, newSecret } = io;
  const takeLock = createTakeLock(dataDir);
  const own = { nowUs: io.nowUs, fetch: createStoppableFetch(io) };
  const tokens = createAccessTokens({ account, dataDir, ...own, takeLock });
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
    if (!readOnly) release = await takeAccountLock(config.dataDir, io);
  };
  try {
    await lock();
    const credentials = currentCredentials(config);
    if (credentials === undefined && needsCredentials) throw noCredentials();
    const world = accountWorld(config, credentials ?? none, store, io);
    const loud = config.probeCa !== undefined;
    return {
      store,
      world: loud ? { ...world, probe: announced(world.probe, io) } : world,
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

/** The same world with credentials: made, and kept in the data directory, if there were none. */
export async function withCredentials(
  world: AccountWorld,
  { dataDir }: Pick<CompleteAccountConfig, 'dataDir'>,
  io: Pick<Io, 'newSecret' | 'stderr'>,
): Promise<AccountWorld> {
  if (world.credentials !== none) return world;
  const credentials = newCredentials(io);
  await writeCredentialsFile(dataDir, [credentials]);
  io.stderr.write('Endpoint credentials were made, and are kept in the data directory.\n');
  return { ...world, credentials };
}

/** Read under the lock: a rotation may have ended while it was waited for. */
function currentCredentials({ dataDir, endpoint }: CompleteAccountConfig) {
  const pairs = endpoint.source === 'variables' ? endpoint.pairs : readCredentialsFile(dataDir);
  return pairs?.at(-1);
}

/** Says so before it waits for another command. */
async function takeAccountLock(dataDir: string, io: Pick<Io, 'stderr'>): Promise<() => void> {
  const takeLock = createTakeLock(dataDir);
  try {
    return await takeLock('subscriptions', { waitMs: lockPatienceMs });
  } catch (error) {
    if (!isAppError(error, 'conflict')) throw error;
    io.stderr.write('Waiting for another earshot command that changes the account …\n');
    return takeLock('subscriptions', { waitMs: lockWaitMs });
  }
}

function noCredentials(): AppError {
  return new AppError('configuration', 'There are no endpoint credentials for the catalogue.', {
    advice:
      '`earshot credentials create` makes some; then start the receiver, and run `earshot register`.',
  });
}
