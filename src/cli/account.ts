/** Opens what commands work with that look at or change the catalogue account. */

import type { AccountWorld } from '../admin/plan/carry-out-plan.ts';
import {
  createSubscriptionClient,
  type EndpointCredentials,
} from '../admin/service/subscription-client.ts';
import { createAccessTokens } from '../admin/session/access-tokens.ts';
import type { CompleteAccountConfig } from '../config/account-config.ts';
import { readCredentialsFile, writeCredentialsFile } from '../config/endpoint-credentials.ts';
import type { TakeLock } from '../domain/administration.ts';
import { AppError } from '../domain/app-error.ts';
import { createTakeLock } from '../store/process-lock.ts';
import { openStore, type Store } from '../store/store.ts';
import { createClosers } from './closers.ts';
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

/**
 * What the catalogue is given: `make` and keep a pair when there is none, `require` one, or `unused` by
 * commands that give it nothing.
 */
export type CredentialsNeed = 'make' | 'require' | 'unused';

/** Opens the store and holds the lock on the account's subscriptions until it is closed. */
export async function openAccount(
  config: CompleteAccountConfig,
  io: AccountIo & Pick<Io, 'stderr'>,
  need: CredentialsNeed,
): Promise<OpenedAccount> {
  const takeLock: TakeLock = createTakeLock(config.dataDir);
  const store = await openStore({ dataDir: config.dataDir, nowUs: io.nowUs });
  const closers = createClosers();
  closers.add(() => store.close());
  try {
    closers.add(await takeLock('subscriptions', { waitMs: lockWaitMs }));
    const credentials = await currentCredentials(config, io, need);
    return { store, world: accountWorld(config, credentials, store, io), close: closers.closeAll };
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

/** Read under the lock: a rotation may have ended while it was waited for. */
async function currentCredentials(
  { dataDir, endpoint }: CompleteAccountConfig,
  io: Pick<Io, 'newSecret' | 'stderr'>,
  need: CredentialsNeed,
): Promise<EndpointCredentials> {
  const pairs = endpoint.source === 'variables' ? endpoint.pairs : readCredentialsFile(dataDir);
  const current = pairs?.at(-1);
  if (current !== undefined) return current;
  if (need === 'unused') return { username: '', password: '' };
  if (need === 'require') {
    throw new AppError(
      'configuration',
      'There are no endpoint credentials for the catalogue. `earshot credentials create` makes some; then start the receiver, and run `earshot register`.',
    );
  }
  const made = newCredentials(io);
  await writeCredentialsFile(dataDir, [made]);
  io.stderr.write(
    'Endpoint credentials were made and kept in the data directory. A receiver that runs already must be restarted once to accept them.\n',
  );
  return made;
}
