/** Checks of the catalogue account for `earshot doctor`: login, limits, subscriptions, queues, clock. */

import { isAppError } from '../core/terms/app-error.ts';
import { hourUs, shortDateUs } from '../core/terms/dates.ts';
import { type evaluation, type Finding, failedFinding, finding } from '../core/terms/evaluation.ts';
import type { DesiredSubscription } from '../core/terms/subscription.ts';
import type { AccessTokens, Account, DeliveryMark, Registration } from './account.ts';
import { lastDeliveryOf } from './account.ts';
import { isDigestOf } from './changes.ts';
import { type AccountLimits, countsOf, sortAccount } from './differences.ts';
import { review } from './maintain.ts';
import type { PullQueue } from './pull-queue.ts';
import type {
  CatalogueSubscription,
  EndpointCredentials,
  SubscriptionClient,
} from './subscription-client.ts';

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
  pairs: readonly EndpointCredentials[];
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
  const { name, credentialsDigest: digest } = registration;
  const lastDeliveryAtUs = lastDeliveryOf(name, deliveryMarks, nowUs);
  const { current, action, reason, notes } = review({
    ...{ registration, candidates, lastDeliveryAtUs, nowUs, publicUrl },
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
  // Without both there is nothing to compare.
  if (digest !== null && pairs.length > 0 && !pairs.some((pair) => isDigestOf(digest, pair))) {
    const text = 'The catalogue has other endpoint credentials than the receiver.';
    add('critical', text, 'Run `earshot register`.');
  }
  return findings;
}

/** Reads the oldest entry of a queue, and removes nothing. */
export async function checkQueue(
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

/** Differences above these are reported: beyond the second, certificates and one-time codes are invalid. */
const clockSeconds = { warning: 30, critical: 300 };

const clockTimeoutMs = 10_000;

/** Compares the clock with the `Date` header of the first URL that answers, with any status. */
export async function checkClock(
  urls: readonly string[],
  { fetch: send, nowUs }: { fetch: typeof fetch; nowUs: () => number },
): Promise<Finding> {
  const check = 'clock';
  for (const url of urls) {
    // A cache would return the time of an earlier answer.
    const headers = { 'Cache-Control': 'no-store' };
    const signal = AbortSignal.timeout(clockTimeoutMs);
    const request = { method: 'HEAD', redirect: 'manual', headers, signal } as const;
    const askedUs = nowUs();
    const answer = await send(url, request).catch(() => null);
    const thereMs = Date.parse(answer?.headers.get('Date') ?? '');
    if (Number.isNaN(thereMs)) continue;
    // The middle between request and answer, which a cache may have kept.
    const ageSeconds = Number(answer?.headers.get('Age')) || 0;
    const ahead = (askedUs + nowUs()) / 2e6 - thereMs / 1_000 - ageSeconds;
    const seconds = Math.round(Math.abs(ahead));
    const text = `The clock of this machine is ${seconds} s ${ahead > 0 ? 'ahead of' : 'behind'} the clock of ${new URL(url).host}.`;
    if (seconds <= clockSeconds.warning) return finding(check, 'ok', text);
    const level = seconds > clockSeconds.critical ? 'critical' : 'warning';
    return finding(check, level, text, 'Turn on time synchronization: `timedatectl set-ntp true`.');
  }
  return finding(check, 'unknown', 'No service returned a time.');
}
