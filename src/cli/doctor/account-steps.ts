/** Steps of the doctor at the catalogue: token, list, managed subscriptions, limits, filters. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  checkCatalogue,
  checkQueue,
  checkSubscriptions,
  checkToken,
} from '../../admin/account-checks.ts';
import { createAccessTokens } from '../../admin/session.ts';
import {
  type CatalogueSubscription,
  createSubscriptionClient,
} from '../../admin/subscription-client.ts';
import type { AccountConfig } from '../../config/config.ts';
import {
  type PlacedFinding,
  sinkFilterFindings,
  unknownSubscriptions,
} from '../../config/sinks.ts';
import { subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { ruleFilterFindings } from '../../config/summary-rules.ts';
import type { Account } from '../../domain/account.ts';
import type { Finding } from '../../domain/finding.ts';
import type { PullQueue } from '../../domain/pull-queue.ts';
import type { DesiredSubscription } from '../../domain/subscription.ts';
import type { SinkDefinition } from '../../sinks/registry.ts';
import { databaseFileName } from '../../store/engine/database.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import { openStoreReader } from '../../store/store.ts';
import { checkSubscriptionFilter } from '../filter-text.ts';
import type { Io } from '../io.ts';
import { openPullQueue } from '../pull-queue.ts';
import { type DoctorSettings, needsOf, type Step } from './steps.ts';

/** Timeout including retries; short, because a person waits for it. */
const catalogueTimeoutMs = 30_000;

export function accountSteps(settings: DoctorSettings, io: Io): Step[] {
  const { account: config, hasEndpoint, publicUrl = null, inFile = null } = settings;
  const entry = config?.account ? openClient(config, config.account, io) : null;
  let listed: readonly CatalogueSubscription[] = [];
  return [
    {
      name: 'token',
      needs: needsOf(config),
      run: async () => (entry === null ? [noAccount] : checkToken(entry)),
    },
    {
      name: 'catalogue',
      needs: ['token'],
      run: async () => {
        if (entry === null || config === undefined) return [];
        const answered = await checkCatalogue(entry.client, config.limits);
        listed = answered.listed ?? [];
        return answered.findings;
      },
    },
    {
      name: 'subscriptions',
      needs: ['catalogue', ...(hasEndpoint ? ['public URL'] : [])],
      run: async () => {
        const { registrations, deliveryMarks } = await readLocalState(settings.dataDir);
        const pairs = config?.endpoint.pairs ?? [];
        const known = { registrations, deliveryMarks, nowUs: io.nowUs() };
        return checkSubscriptions({ ...known, listed, inFile, publicUrl, pairs });
      },
    },
    {
      name: 'queues',
      needs: ['catalogue'],
      run: async () =>
        entry === null ? [] : checkQueues(settings.dataDir, entry.queue, io.nowUs()),
    },
  ];
}

const check = 'filters';

const noAccount: Finding = {
  check: 'token',
  state: 'skipped',
  message: 'No account is configured.',
  advice:
    'To register subscriptions, set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD to your catalogue account.',
};

/** Returns no finding without pull subscriptions. */
async function checkQueues(dataDir: string, queue: PullQueue, nowUs: number): Promise<Finding[]> {
  const { registrations } = await readLocalState(dataDir);
  const pull = registrations.filter((one) => one.type === 'pull' && one.subscriptionId !== null);
  return Promise.all(pull.map((one) => checkQueue(one, queue, nowUs)));
}

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
async function readLocalState(dataDir: string) {
  if (!existsSync(join(dataDir, databaseFileName))) {
    return { registrations: [], deliveryMarks: [], everRegistered: [] };
  }
  const store = openStoreReader(dataDir);
  try {
    const { administration, completeness } = store;
    const registrations = await administration.registrations();
    const deliveryMarks = await administration.deliveryMarks();
    const everRegistered = (await completeness.definitions()).map((one) => one.subscription);
    return { registrations, deliveryMarks, everRegistered };
  } finally {
    await store.close();
  }
}

type Filtered = Pick<DesiredSubscription, 'name' | 'events' | 'filter'>;

export function filterSteps({ dataDir, inFile, summaryRules, sinks }: DoctorSettings): Step[] {
  return [
    {
      name: check,
      needs: [...needsOf(inFile), 'data directory'],
      run: async () => {
        const { registrations, everRegistered } = await readLocalState(dataDir);
        const names = [...(inFile ?? []).map(({ name }) => name), ...everRegistered];
        const findings = [
          ...checkFilters(inFile ?? null, registrations),
          // Warnings only: errors have failed as part of the configuration.
          ...ruleFilterFindings(summaryRules ?? new Map()).map((one) =>
            warningOf(one, 'selects the products to summarize'),
          ),
          ...sinkFilterFindings(sinks ?? []).map((one) =>
            warningOf(one, 'selects the notifications to deliver'),
          ),
          ...checkSinkSubscriptions(sinks ?? [], names),
        ];
        // Passes only if there are no problems at all.
        const problems = findings.filter(({ state }) => state !== 'pass');
        return problems.length > 0 ? problems : findings;
      },
    },
  ];
}

/** Checks the filters of the desired state; without a file, those of the registered subscriptions. */
function checkFilters(
  inFile: readonly Filtered[] | null,
  registered: readonly Filtered[],
): Finding[] {
  const all = inFile ?? registered;
  if (all.length === 0) return [];
  const placeOf = ({ name }: Filtered) =>
    inFile === null ? `subscriptions show ${name}` : `filter check --subscription ${name}`;
  const findings = all.flatMap((one) => findingsOf(one, registered, placeOf(one)));
  if (findings.length > 0) return findings;
  return [{ check, state: 'pass', message: 'The filters use only documented syntax.' }];
}

function findingsOf(
  subscription: Filtered,
  registered: readonly Filtered[],
  command: string,
): Finding[] {
  const { name, filter } = subscription;
  const isAccepted = registered.some((one) => one.name === name && one.filter === filter);
  return checkSubscriptionFilter(subscription).flatMap(({ findings }) =>
    findings.map(({ severity, message, hint }): Finding => {
      // A filter that the catalogue has accepted does not fail the check.
      const fails = severity === 'error' && !isAccepted;
      return {
        check,
        state: fails ? 'fail' : 'warn',
        message: `"${name}": ${message}`,
        advice: `${hint === undefined ? '' : `${hint} `}\`earshot ${command}\` shows it.`,
      };
    }),
  );
}

/** Warns only: the subscription may be registered later. */
function checkSinkSubscriptions(
  sinks: readonly SinkDefinition[],
  known: readonly string[],
): Finding[] {
  return unknownSubscriptions(sinks, known).map(({ message, hint }) => {
    const advice = `${hint} Until this subscription exists, the sink receives none of its notifications.`;
    return { check, state: 'warn', message, advice };
  });
}

function warningOf(
  { where, finding: { message, hint } }: Pick<PlacedFinding, 'where' | 'finding'>,
  effect: string,
): Finding {
  const place = `The filter is in ${subscriptionsFileName}, and ${effect}.`;
  const advice = hint === undefined ? place : `${hint} ${place}`;
  return { check, state: 'warn', message: `${where}: ${message}`, advice };
}
