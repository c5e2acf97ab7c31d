/** Steps of the doctor for filters, and at the catalogue: login, limits, managed subscriptions, queues. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { AccessTokens, Account, DeliveryMark, Registration } from '../../admin/account.ts';
import { lastDeliveryOf } from '../../admin/account.ts';
import { type AccountLimits, countsOf, sortAccount } from '../../admin/differences.ts';
import { review } from '../../admin/maintain.ts';
import type { PullQueue } from '../../admin/pull-queue.ts';
import { openPullQueue } from '../../admin/queue-client.ts';
import { createAccessTokens } from '../../admin/session.ts';
import type { AccountConfig } from '../../admin/settings.ts';
import {
  type CatalogueSubscription,
  createSubscriptionClient,
  type SubscriptionClient,
} from '../../admin/subscription-client.ts';
import type { Io } from '../../core/cli/io.ts';
import { type DoctorSettings, needsOf, type Step } from '../../core/doctor/steps.ts';
import { isAppError } from '../../core/terms/app-error.ts';
import { hourUs, shortDateUs } from '../../core/terms/dates.ts';
import {
  type evaluation,
  type Finding,
  failedFinding,
  finding,
} from '../../core/terms/evaluation.ts';
import type { CredentialPair } from '../../core/terms/ports.ts';
import type { DesiredSubscription } from '../../core/terms/subscription.ts';
import { databaseFileName } from '../../store/engine/database.ts';
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
  const tokens = createAccessTokens({ account, dataDir, nowUs, fetch });
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

/** Gets a token, from the stored session if it is valid, and lists the subscriptions; `listed` is null if that fails. */
export async function checkAccount(options: {
  account: Account;
  tokens: AccessTokens;
  client: Pick<SubscriptionClient, 'list'>;
  limits: AccountLimits;
}): Promise<{ findings: Finding[]; listed: CatalogueSubscription[] | null }> {
  const { account, tokens, client, limits } = options;
  const login = account.kind === 'token' ? briefToken : finding('login', 'ok', 'The login works.');
  const nextStep = 'Check the account and EARSHOT_CATALOGUE_URL.';
  try {
    await tokens.get();
  } catch (error) {
    return { findings: [failedFinding('login', error, nextStep)], listed: null };
  }
  try {
    const listed = await client.list();
    return { findings: [login, limitsFinding(countsOf(listed), limits)], listed };
  } catch (error) {
    return { findings: [login, failedFinding('catalogue', error, nextStep)], listed: null };
  }
}

function limitsFinding(
  { running, total }: ReturnType<typeof countsOf>,
  { runningMax, totalMax }: AccountLimits,
): Finding {
  const text = `Subscriptions: ${running} of ${runningMax} running, ${total} of ${totalMax} in total.`;
  if (running <= runningMax && total < totalMax) return finding('catalogue', 'ok', text);
  const nextStep =
    'Delete a subscription that is not needed, or set EARSHOT_SUBSCRIPTIONS_RUNNING_MAX and EARSHOT_SUBSCRIPTIONS_MAX to the limits of the catalogue. While the account is full, a changed filter has a gap.';
  return finding('catalogue', 'warning', text, nextStep);
}

const briefToken = finding(
  'login',
  'warning',
  'EARSHOT_ACCESS_TOKEN expires within minutes. Maintenance then stops.',
  'Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD instead.',
);

export interface SubscriptionsInput {
  listed: readonly CatalogueSubscription[];
  registrations: readonly Registration[];
  deliveryMarks: readonly DeliveryMark[];
  /** Subscriptions in `earshot.config.ts`; null without the file. */
  inFile: readonly DesiredSubscription[] | null;
  publicUrl: string | null;
  /** Credentials that the receiver accepts. */
  pairs: readonly CredentialPair[];
  nowUs: number;
}

/** Checks each subscription, with one or more findings. */
export function checkSubscriptions(input: SubscriptionsInput): Finding[] {
  const { listed, registrations, inFile, publicUrl } = input;
  const { managed } = sortAccount(listed, { publicUrl, registrations });
  const known = new Map(registrations.map((one) => [one.name, one]));
  const namesInFile = (inFile ?? []).map(({ name }) => name);
  const names = [...new Set([...known.keys(), ...namesInFile, ...managed.keys()])].toSorted();
  if (names.length === 0) {
    const nextStep = 'When all checks above are ok, run `earshot register`.';
    return [finding('subscriptions', 'unknown', 'No subscription is registered yet.', nextStep)];
  }
  return names.flatMap((name) => {
    const registration = known.get(name);
    const candidates = managed.get(name) ?? [];
    if (registration !== undefined) return registered(registration, candidates, input);
    const [level, text] =
      candidates.length > 0
        ? (['critical', 'It is in the catalogue, but not in this data directory.'] as const)
        : (['warning', 'It is in earshot.config.ts, but not registered yet.'] as const);
    return [finding(`subscription ${name}`, level, text, 'Run `earshot register`.')];
  });
}

function registered(
  registration: Registration,
  candidates: readonly CatalogueSubscription[],
  { inFile, deliveryMarks, pairs, nowUs, publicUrl }: SubscriptionsInput,
): Finding[] {
  const { name } = registration;
  const lastDeliveryAtUs = lastDeliveryOf(name, deliveryMarks, nowUs);
  const { current, action, reason, notes } = review({
    ...{ registration, candidates, lastDeliveryAtUs, nowUs, publicUrl, pairs },
    inFile: inFile === null ? undefined : (inFile.find((one) => one.name === name) ?? null),
  });
  const findings: Finding[] = [];
  const add = (...args: Parameters<typeof evaluation>) =>
    findings.push(finding(`subscription ${name}`, ...args));
  if (current?.status === registration.status) {
    const lastUs = Math.max(current.lastNotificationAtUs ?? 0, lastDeliveryAtUs ?? 0);
    const last = lastUs === 0 ? 'none yet' : `${shortDateUs(lastUs)} UTC`;
    add('ok', `The subscription is ${current.status}, as desired. Last notification: ${last}.`);
  }
  if (action !== null) {
    const [level, command] =
      action === 'finish'
        ? (['warning', 'register'] as const)
        : (['critical', 'maintain'] as const);
    add(level, `The subscription needs maintenance: ${reason}.`, `Run \`earshot ${command}\`.`);
  }
  for (const { message, advice, isFailure } of notes)
    add(isFailure ? 'critical' : 'warning', message, advice);
  return findings;
}

/** Reads the oldest entry of a queue, and removes nothing. */
async function checkQueue(
  { name, subscriptionId, pausedSeenAtUs }: Registration,
  queue: Pick<PullQueue, 'read'>,
  nowUs: number,
): Promise<Finding> {
  const check = `queue ${name}`;
  try {
    const [oldest] = (await queue.read({ id: subscriptionId ?? '', entriesMax: 1 })).entries;
    const hours = Math.floor((nowUs - (oldest?.notificationUs ?? nowUs)) / hourUs);
    if (hours < 24) return finding(check, 'ok', 'The queue can be read.');
    const nextStep =
      'Start the receiver: `earshot start`. After three days, the catalogue removes the records from the entries.';
    return finding(check, 'warning', `The oldest unread entry is ${hours} hours old.`, nextStep);
  } catch (error) {
    // The catalogue may refuse to read the queue of a paused subscription; a missing one is reported above.
    const isExpected = pausedSeenAtUs !== null && isAppError(error, 'invalid');
    if (isExpected || isAppError(error, 'not_found'))
      return finding(check, 'unknown', error.message);
    return failedFinding(check, error, 'Check the account, and `earshot subscriptions list`.');
  }
}
