/** The doctor's steps at the catalogue: token, list, our subscriptions, limits. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { checkCatalogue, checkLimits, checkToken } from '../../admin/doctor/account.ts';
import { checkSubscriptions } from '../../admin/doctor/subscriptions.ts';
import type { CatalogueSubscription } from '../../admin/service/catalogue-subscription.ts';
import { createSubscriptionClient } from '../../admin/service/subscription-client.ts';
import { createAccessTokens } from '../../admin/session/access-tokens.ts';
import type { AccountConfig } from '../../config/account-config.ts';
import type { Account } from '../../domain/account.ts';
import type { Finding } from '../../domain/finding.ts';
import { databaseFileName } from '../../store/engine/database.ts';
import { createTakeLock } from '../../store/engine/locks.ts';
import { openStoreReader } from '../../store/store.ts';
import type { Io } from '../io.ts';
import type { DoctorSettings } from './doctor-settings.ts';
import type { Step } from './run-steps.ts';

/** Repetitions included: somebody sits and waits. */
const catalogueTimeoutMs = 30_000;

export function accountSteps(settings: DoctorSettings, io: Io): Step[] {
  const { account: config, publicUrl = '', inFile = null } = settings;
  // A configuration that cannot be read has failed as a check, so nothing below runs then.
  const readable = config === undefined ? ['configuration'] : [];
  const entry = config?.account ? enter(config, config.account, io) : null;
  let listed: readonly CatalogueSubscription[] = [];
  return [
    {
      name: 'token',
      needs: readable,
      run: async () => (entry === null ? [noAccount] : checkToken(entry)),
    },
    {
      name: 'catalogue',
      needs: ['token'],
      run: async () => {
        if (entry === null) return [];
        const answered = await checkCatalogue(entry.client);
        listed = answered.listed ?? [];
        return answered.findings;
      },
    },
    {
      name: 'subscriptions',
      needs: ['catalogue', 'public URL'],
      run: async () => {
        const remembered = await readRemembered(settings.dataDir);
        const pairs = config?.endpoint.pairs ?? [];
        const nowUs = io.nowUs();
        return checkSubscriptions({ ...remembered, listed, inFile, publicUrl, pairs, nowUs });
      },
    },
    {
      name: 'limits',
      needs: ['catalogue'],
      run: async () => (config === undefined ? [] : checkLimits(listed, config.limits)),
    },
  ];
}

const noAccount: Finding = {
  check: 'token',
  state: 'skipped',
  message: 'No account is configured.',
  advice:
    'To register subscriptions, set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD: your account at the catalogue.',
};

function enter({ dataDir, catalogueUrl }: AccountConfig, account: Account, io: Io) {
  const { nowUs, fetch, random } = io;
  const takeLock = createTakeLock(dataDir);
  const tokens = createAccessTokens({ account, dataDir, nowUs, fetch, takeLock });
  const timing = { totalTimeoutMs: catalogueTimeoutMs };
  const client = createSubscriptionClient({ catalogueUrl, tokens, fetch, random, timing });
  return { account, tokens, client };
}

/** What earshot remembers of the account; nothing before there is a database. */
async function readRemembered(dataDir: string) {
  if (!existsSync(join(dataDir, databaseFileName))) return { registrations: [], deliveryMarks: [] };
  const store = openStoreReader(dataDir);
  try {
    const registrations = await store.administration.registrations();
    return { registrations, deliveryMarks: await store.administration.deliveryMarks() };
  } finally {
    await store.close();
  }
}
