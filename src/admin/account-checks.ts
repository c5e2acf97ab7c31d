/** Checks of the catalogue account for `earshot doctor`: token, catalogue, limits, subscriptions, clock. */

import type { AccessTokens, Account, DeliveryMark, Registration } from '../domain/account.ts';
import { isAppError } from '../domain/app-error.ts';
import { shortDateUs } from '../domain/dates.ts';
import { type Finding, failedFinding } from '../domain/finding.ts';
import type { PullQueue } from '../domain/pull-queue.ts';
import type { DesiredSubscription } from '../domain/subscription.ts';
import { hourUs } from '../domain/time-units.ts';
import { isDigestOf } from './account-context.ts';
import { type AccountLimits, countsOf, sortAccount } from './differences.ts';
import { lastDeliveryOf } from './lifetime.ts';
import { review } from './maintain.ts';
import type {
  CatalogueSubscription,
  EndpointCredentials,
  SubscriptionClient,
} from './subscription-client.ts';

/** Gets a token, from the stored session if it is valid. */
export async function checkToken(options: {
  account: Account;
  tokens: AccessTokens;
}): Promise<Finding[]> {
  const check = 'token';
  try {
    await options.tokens.get();
  } catch (error) {
    return [
      failedFinding(check, error, 'Check EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD.'),
    ];
  }
  if (options.account.kind === 'token') {
    const message = 'EARSHOT_ACCESS_TOKEN expires within minutes. Maintenance then stops.';
    const advice = 'Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD instead.';
    return [{ check, state: 'warn', message, advice }];
  }
  const message = 'Got a valid token, from the stored session or a new login.';
  return [{ check, state: 'pass', message }];
}

/** Lists the account's subscriptions, and counts all of them; `listed` is null when that fails. */
export async function checkCatalogue(
  client: Pick<SubscriptionClient, 'list'>,
  { runningMax, totalMax }: AccountLimits,
): Promise<{ findings: Finding[]; listed: CatalogueSubscription[] | null }> {
  const check = 'catalogue';
  try {
    const listed = await client.list();
    const { running, total } = countsOf(listed);
    const message = `The catalogue answers. Subscriptions: ${running} of ${runningMax} running, ${total} of ${totalMax} in total.`;
    const isBeyond = running > runningMax || total > totalMax;
    const advice = isBeyond
      ? 'Set EARSHOT_SUBSCRIPTIONS_RUNNING_MAX and EARSHOT_SUBSCRIPTIONS_MAX to the limits of the catalogue.'
      : 'Delete a subscription that is not needed: while the account is full, a changed filter has a gap.';
    const finding: Finding =
      total < totalMax && !isBeyond
        ? { check, state: 'pass', message }
        : { check, state: 'warn', message, advice };
    return { findings: [finding], listed };
  } catch (error) {
    const advice = 'Check EARSHOT_CATALOGUE_URL and the connection of this machine.';
    return { findings: [failedFinding(check, error, advice)], listed: null };
  }
}

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
    const message = 'No subscription is registered yet.';
    const advice = 'When all checks above have passed, run `earshot register`.';
    return [{ check: 'subscriptions', state: 'skipped', message, advice }];
  }
  return names.flatMap((name) => {
    const registration = known.get(name);
    const candidates = managed.get(name) ?? [];
    return registration === undefined
      ? [unregistered(name, candidates)]
      : registered(registration, candidates, input);
  });
}

function unregistered(name: string, candidates: readonly CatalogueSubscription[]): Finding {
  const exists = candidates.length > 0;
  const message = exists
    ? 'The subscription exists in the catalogue, but possibly not with the endpoint credentials of this receiver.'
    : 'The subscription is in earshot.config.ts, but not registered yet.';
  const advice = `To ${exists ? 'adopt' : 'register'} it: \`earshot register\`.`;
  return { check: checkName(name), state: exists ? 'fail' : 'warn', message, advice };
}

function registered(
  registration: Registration,
  candidates: readonly CatalogueSubscription[],
  { inFile, deliveryMarks, pairs, nowUs, publicUrl }: SubscriptionsInput,
): Finding[] {
  const { name, credentialsDigest: digest } = registration;
  const check = checkName(name);
  const lastDeliveryAtUs = lastDeliveryOf(name, deliveryMarks, nowUs);
  const { current, action, reason, notes } = review({
    ...{ registration, candidates, lastDeliveryAtUs, nowUs, publicUrl },
    inFile: inFile === null ? undefined : (inFile.find((one) => one.name === name) ?? null),
  });
  const findings: Finding[] = [];
  if (current?.status === registration.status) {
    const lastUs = Math.max(current.lastNotificationAtUs ?? 0, lastDeliveryAtUs ?? 0);
    const last = lastUs === 0 ? 'none yet' : `${shortDateUs(lastUs)} UTC`;
    const message = `The subscription is ${current.status}, as desired. Last notification: ${last}.`;
    findings.push({ check, state: 'pass', message });
  }
  if (action !== null) {
    const message = `The subscription needs maintenance: ${reason}.`;
    const advice = `To complete it: \`earshot ${action === 'finish' ? 'register' : 'maintain'}\`.`;
    findings.push({ check, state: action === 'finish' ? 'warn' : 'fail', message, advice });
  }
  for (const { message, advice, isFailure } of notes) {
    findings.push({ check, state: isFailure ? 'fail' : 'warn', message, advice });
  }
  // Without both there is nothing to compare.
  if (digest !== null && pairs.length > 0 && !pairs.some((pair) => isDigestOf(digest, pair))) {
    const message = 'The receiver does not accept the endpoint credentials that the catalogue has.';
    const advice = 'To send the current credentials to the catalogue: `earshot register`.';
    findings.push({ check, state: 'fail', message, advice });
  }
  return findings;
}

function checkName(name: string): string {
  return `subscription ${name}`;
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
    if (hours < 24) return { check, state: 'pass', message: 'The queue can be read.' };
    const message = `The queue can be read, but its oldest unread entry is ${hours} hours old.`;
    const advice =
      'Start the receiver: `earshot start`. After three days, the catalogue removes the records from the entries.';
    return { check, state: 'warn', message, advice };
  } catch (error) {
    // The catalogue may refuse to read the queue of a paused subscription; a missing one is reported above.
    const isExpected = pausedSeenAtUs !== null && isAppError(error, 'invalid');
    if (isExpected || isAppError(error, 'not_found')) {
      return { check, state: 'skipped', message: error.message };
    }
    return failedFinding(check, error, 'Check the account, and `earshot subscriptions list`.');
  }
}

/** Differences above these fail a check: beyond the second, certificates and one-time codes are invalid. */
const clockSeconds = { warn: 30, fail: 300 };

const clockTimeoutMs = 10_000;

/** Compares the clock with the `Date` header of the first URL that answers, with any status. */
export async function checkClock(options: {
  urls: readonly string[];
  fetch: typeof fetch;
  nowUs: () => number;
}): Promise<Finding[]> {
  const check = 'clock';
  for (const url of options.urls) {
    const ahead = await secondsAhead(url, options);
    if (ahead === null) continue;
    const seconds = Math.round(Math.abs(ahead));
    const { host } = new URL(url);
    if (seconds <= clockSeconds.warn) {
      const message = `The clock of this machine agrees with the clock of ${host}.`;
      return [{ check, state: 'pass', message }];
    }
    const side = ahead > 0 ? 'ahead of' : 'behind';
    const message = `The clock of this machine is ${seconds} s ${side} the clock of ${host}.`;
    const advice = 'Turn on time synchronization: `timedatectl set-ntp true`.';
    return [{ check, state: seconds > clockSeconds.fail ? 'fail' : 'warn', message, advice }];
  }
  const message = 'Neither the catalogue nor the identity provider returned a time.';
  return [{ check, state: 'skipped', message }];
}

/** Returns the seconds by which our clock is ahead; null when the service sends no time. */
async function secondsAhead(
  url: string,
  { fetch: send, nowUs }: { fetch: typeof fetch; nowUs: () => number },
): Promise<number | null> {
  const askedUs = nowUs();
  try {
    // A cache would return the time of an earlier answer.
    const headers = { 'Cache-Control': 'no-store' };
    const signal = AbortSignal.timeout(clockTimeoutMs);
    const answer = await send(url, { method: 'HEAD', redirect: 'manual', headers, signal });
    const thereMs = Date.parse(answer.headers.get('Date') ?? '');
    const agedMs = (Number(answer.headers.get('Age')) || 0) * 1000;
    // The middle between request and answer.
    const aheadMs = (askedUs + nowUs()) / 2000 - thereMs - agedMs;
    return Number.isNaN(aheadMs) ? null : aheadMs / 1000;
  } catch {
    return null;
  }
}
