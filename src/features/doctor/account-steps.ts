/** Steps of the doctor for filters, and at the catalogue: login, limits, managed subscriptions, queues. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Account } from '../../admin/account.ts';
import { checkAccount, checkQueue, checkSubscriptions } from '../../admin/account-checks.ts';
import { openPullQueue } from '../../admin/queue-client.ts';
import { createAccessTokens } from '../../admin/session.ts';
import type { AccountConfig } from '../../admin/settings.ts';
import {
  type CatalogueSubscription,
  createSubscriptionClient,
} from '../../admin/subscription-client.ts';
import type { Io } from '../../core/cli/io.ts';
import { type DoctorSettings, needsOf, type Step } from '../../core/doctor/steps.ts';
import { type Finding, finding } from '../../core/terms/evaluation.ts';
import type { DesiredSubscription } from '../../core/terms/subscription.ts';
import { databaseFileName } from '../../store/engine/database.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import { openStoreReader } from '../../store/store.ts';
import { tablesOf } from '../../store/tables.ts';
import { checkSubscriptionFilter } from '../subscriptions/filter-command.ts';

/** Timeout including retries; short, because a person waits for it. */
const catalogueTimeoutMs = 30_000;

export function accountSteps(settings: DoctorSettings, io: Io): Step[] {
  const { account: config, hasEndpoint, dataDir, publicUrl = null, inFile = null } = settings;
  const entry = config?.account ? openClient(config, config.account, io) : null;
  const nowUs = io.nowUs();
  let listed: readonly CatalogueSubscription[] = [];
  return [
    {
      name: 'login',
      needs: needsOf(config),
      run: async () => {
        if (entry === null || config === undefined) return [noAccount];
        const checked = await checkAccount({ ...entry, limits: config.limits });
        listed = checked.listed ?? [];
        return checked.findings;
      },
    },
    {
      name: 'subscriptions',
      needs: ['login', ...(hasEndpoint ? ['public URL'] : [])],
      run: async () => {
        const known = await readLocalState(dataDir, io);
        const pairs = config?.endpoint.pairs ?? [];
        const pull = known.registrations.filter((one) => one.type === 'pull' && one.subscriptionId);
        return [
          ...checkSubscriptions({ ...known, nowUs, listed, inFile, publicUrl, pairs }),
          ...(entry
            ? await Promise.all(pull.map((one) => checkQueue(one, entry.queue, nowUs)))
            : []),
        ];
      },
    },
  ];
}

const noAccount = finding(
  'login',
  'unknown',
  'No account is configured.',
  'To register subscriptions, set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD to your catalogue account.',
);

function openClient(config: AccountConfig, account: Account, io: Io) {
  const { dataDir, catalogueUrl } = config;
  const { nowUs, fetch, random } = io;
  const acquireLock = createAcquireLock(dataDir);
  const tokens = createAccessTokens({ account, dataDir, nowUs, fetch, acquireLock });
  const timing = { totalTimeoutMs: catalogueTimeoutMs };
  const client = createSubscriptionClient({ catalogueUrl, tokens, fetch, random, timing });
  return { account, tokens, client, queue: openPullQueue({ ...config, account }, io) };
}

/** Reads what earshot has stored about the account; empty without a database. */
async function readLocalState(dataDir: string, { features }: Pick<Io, 'features'>) {
  if (!existsSync(join(dataDir, databaseFileName))) {
    return { registrations: [], deliveryMarks: [] };
  }
  const store = openStoreReader(dataDir, tablesOf(features));
  try {
    const { administration } = store;
    const registrations = await administration.registrations();
    const deliveryMarks = await administration.deliveryMarks();
    return { registrations, deliveryMarks };
  } finally {
    await store.close();
  }
}

const filters = 'filters';

/** Checks the filters of subscriptions. */
export function filterSteps(settings: DoctorSettings, io: Pick<Io, 'features'>): Step[] {
  const { dataDir } = settings;
  const inFile = settings.inFile ?? null;
  const run = async () => {
    const { registrations } = await readLocalState(dataDir, io);
    const subscriptions = inFile ?? registrations;
    const findings = subscriptions.flatMap((one) =>
      filterFindings(one, registrations, inFile !== null),
    );
    if (findings.length > 0 || subscriptions.length === 0) return findings;
    return [finding(filters, 'ok', 'The filters of the subscriptions use only documented syntax.')];
  };
  return [{ name: filters, needs: [...needsOf(settings.inFile), 'data directory'], run }];
}

type Filtered = Pick<DesiredSubscription, 'name' | 'events' | 'filter'>;

/** A filter that the catalogue has accepted does not fail. Without a file, the registered subscriptions are checked. */
function filterFindings(
  subscription: Filtered,
  registered: readonly Filtered[],
  isInFile: boolean,
): Finding[] {
  const { name, filter } = subscription;
  const isAccepted = registered.some((one) => one.name === name && one.filter === filter);
  const command = isInFile ? `filter check --subscription ${name}` : `subscriptions show ${name}`;
  return checkSubscriptionFilter(subscription).flatMap((report) =>
    report.findings.map(({ severity, message, hint = '' }) => {
      const level = severity === 'error' && !isAccepted ? 'critical' : 'warning';
      const nextStep = `${hint} \`earshot ${command}\` shows it.`.trim();
      return finding(filters, level, `"${name}": ${message}`, nextStep);
    }),
  );
}
