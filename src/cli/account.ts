/** Opens what commands work with that look at or change the catalogue account. */
import { createAccessTokens } from '../admin/access-tokens.ts';
import type { AccountWorld } from '../admin/carry-out-plan.ts';
import {
  createSubscriptionClient,
  type EndpointCredentials,
} from '../admin/subscription-client.ts';
import type { CompleteAccountConfig } from '../config/account-config.ts';
import { writeCredentialsFile } from '../config/endpoint-credentials.ts';
import type { TakeLock } from '../domain/administration.ts';
import { createTakeLock } from '../store/process-lock.ts';
import { openStore, type Store } from '../store/store.ts';
import type { Io } from './io.ts';
import { newCredentials } from './new-credentials.ts';
import { probeTrusting } from './probe-trusting.ts';

/** Another command may be in the middle of a change; a rotation may take longer, and says so. */
const lockWaitMs = 30_000;

export interface OpenedAccount {
  store: Store;
  world: AccountWorld;
  close(): Promise<void>;
}

/** What of the world the account's side needs. */
export type AccountIo = Pick<Io, 'nowUs' | 'random' | 'newSecret' | 'fetch' | 'readFile'>;

/** The world for a store that is open already. Throws `configuration` for a roots file that cannot be read. */
export function accountWorld(
  config: CompleteAccountConfig,
  credentials: EndpointCredentials,
  { administration }: Pick<Store, 'administration'>,
  io: AccountIo,
): AccountWorld {
  const { account, dataDir, catalogueUrl, publicUrl, limits, probeCa } = config;
  const { nowUs, random, newSecret, fetch } = io;
  const takeLock = createTakeLock(dataDir);
  const tokens = createAccessTokens({ account, dataDir, nowUs, fetch, takeLock });
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

/** Opens the store and holds the lock on the account's subscriptions until it is closed. */
export async function openAccount(
  config: CompleteAccountConfig,
  io: AccountIo,
): Promise<OpenedAccount> {
  const takeLock: TakeLock = createTakeLock(config.dataDir);
  const store = await openStore({ dataDir: config.dataDir, nowUs: io.nowUs });
  try {
    const release = await takeLock('subscriptions', { waitMs: lockWaitMs });
    const credentials = config.endpoint.pairs.at(-1) ?? { username: '', password: '' };
    return {
      store,
      world: accountWorld(config, credentials, store, io),
      close: async () => {
        release();
        await store.close();
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The credentials that the catalogue is given; made and kept when there are none yet. */
export async function ensureCredentials(
  config: CompleteAccountConfig,
  io: Pick<Io, 'newSecret' | 'stderr'>,
): Promise<CompleteAccountConfig> {
  if (config.endpoint.source !== 'none') return config;
  const pairs = [newCredentials(io)];
  await writeCredentialsFile(config.dataDir, pairs);
  io.stderr.write(
    'Endpoint credentials were made and kept in the data directory. A receiver that runs already must be restarted once to accept them.\n',
  );
  return { ...config, endpoint: { source: 'file', pairs } };
}
