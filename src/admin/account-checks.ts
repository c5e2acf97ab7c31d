/** Checks of the catalogue account for `earshot doctor`: token, catalogue, limits, subscriptions, clock. */
import type { AccessTokens, Account, DeliveryMark, Registration } from '../domain/account.ts';
import { isAppError } from '../domain/app-error.ts';
import { shortDateUs } from '../domain/dates.ts';
import { type Finding, failedFinding } from '../domain/finding.ts';
import type { PullQueue, QueueState } from '../domain/pull-queue.ts';
import type { DesiredSubscription } from '../domain/subscription.ts';
import { isDigestOf } from './account-context.ts';
import { type AccountLimits, countsOf, sortAccount } from './differences.ts';
import { lastDeliveryOf, type Review, review } from './maintain.ts';
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

/** Lists the account's subscriptions; `listed` is null when that fails. */
export async function checkCatalogue(client: Pick<SubscriptionClient, 'list'>): Promise<{
  findings: Finding[];
  listed: CatalogueSubscription[] | null;
}> {
  const check = 'catalogue';
  try {
    const listed = await client.list();
    const count = listed.length === 1 ? '1 subscription' : `${listed.length} subscriptions`;
    const message = `The catalogue answers. The account has ${count}.`;
    return { findings: [{ check, state: 'pass', message }], listed };
  } catch (error) {
    const advice = 'Check EARSHOT_CATALOGUE_URL and the connection of this machine.';
    return { findings: [failedFinding(check, error, advice)], listed: null };
  }
}

/** Counts all subscriptions of the account, including unmanaged and pull subscriptions. */
export function checkLimits(
  listed: readonly CatalogueSubscription[],
  { runningMax, totalMax }: AccountLimits,
): Finding[] {
  const check = 'limits';
  const { running, total } = countsOf(listed);
  const message = `Subscriptions: ${running} of ${runningMax} running, ${total} of ${totalMax} in total.`;
  if (running > runningMax || total > totalMax) {
    const advice =
      'The account has more subscriptions than the configured limits. Set EARSHOT_SUBSCRIPTIONS_RUNNING_MAX and EARSHOT_SUBSCRIPTIONS_MAX to the limits of the catalogue.';
    return [{ check, state: 'warn', message, advice }];
  }
  if (total === totalMax) {
    const advice =
      'Delete a subscription that is not needed. If you change a filter while the account is full, events are missed for a short time.';
    return [{ check, state: 'warn', message: `${message} The account is full.`, advice }];
  }
  return [{ check, state: 'pass', message }];
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
  const check = checkName(name);
  const exists = candidates.length > 0;
  const message = exists
    ? 'The subscription exists in the catalogue, but possibly not with the endpoint credentials of this receiver.'
    : 'The subscription is in earshot.config.ts, but not registered yet.';
  const advice = `To ${exists ? 'adopt' : 'register'} it: \`earshot register\`.`;
  return { check, state: exists ? 'fail' : 'warn', message, advice };
}

function registered(
  registration: Registration,
  candidates: readonly CatalogueSubscription[],
  { inFile, deliveryMarks, pairs, nowUs, publicUrl }: SubscriptionsInput,
): Finding[] {
  const { name, credentialsDigest: digest } = registration;
  const check = checkName(name);
  const lastDeliveryAtUs = lastDeliveryOf(name, deliveryMarks, nowUs);
  const reviewed = review({
    ...{ registration, candidates, lastDeliveryAtUs, nowUs, publicUrl },
    inFile: inFile === null ? undefined : (inFile.find((one) => one.name === name) ?? null),
  });
  const { current, action, reason, notes } = reviewed;
  const findings: Finding[] = [];
  if (current?.status === registration.status) {
    findings.push({ check, state: 'pass', message: factsOf(reviewed, lastDeliveryAtUs, nowUs) });
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

/** Returns for example "The subscription is running, as desired; last notification 2026-05-02 10:00 UTC. …". */
function factsOf(
  { current, lifetime: { pausesAtUs, cancelsAtUs } }: Review,
  lastDeliveryAtUs: number | null,
  nowUs: number,
): string {
  const lastUs = Math.max(current?.lastNotificationAtUs ?? 0, lastDeliveryAtUs ?? 0);
  const last =
    lastUs === 0 ? 'no notification yet' : `last notification ${shortDateUs(lastUs)} UTC`;
  const days = (us: number) => `${Math.max(0, Math.ceil((us - nowUs) / dayUs))} days`;
  const pause = current?.status === 'running' ? `pauses it in ${days(pausesAtUs)} and ` : '';
  return `The subscription is ${current?.status}, as desired; ${last}. Without new notifications, the catalogue ${pause}deletes it in ${days(cancelsAtUs)}.`;
}

const dayUs = 86_400_000_000;

function checkName(name: string): string {
  return `subscription ${name}`;
}

/** Age of the oldest unread entry from which the reader counts as slow. */
const slowReaderUs = dayUs;

/** Reads the oldest entry of a queue, and removes nothing. `state`: as the reader of the queue last knew it. */
export async function checkQueue(options: {
  name: string;
  id: string;
  isPaused: boolean;
  queue: Pick<PullQueue, 'read'>;
  state: QueueState | undefined;
  nowUs: number;
}): Promise<Finding> {
  const { name, id, isPaused, queue, state, nowUs } = options;
  const check = `queue ${name}`;
  try {
    const [oldest] = (await queue.read({ id, entriesMax: 1 })).entries;
    if (oldest === undefined) {
      return { check, state: 'pass', message: 'The queue can be read. It has no unread entries.' };
    }
    const ageUs = oldest.notificationUs === null ? 0 : nowUs - oldest.notificationUs;
    const length =
      state?.length == null ? '' : ` At the last read, it had ${state.length} entries.`;
    const age = `The oldest unread entry is ${lagText(ageUs)} old.`;
    const message = `The queue can be read. ${age}${length}`;
    if (ageUs < slowReaderUs) return { check, state: 'pass', message };
    const advice =
      'Start the receiver: `earshot start`. After three days, the catalogue removes the records from the entries.';
    return { check, state: 'warn', message, advice };
  } catch (error) {
    if (isPaused && isAppError(error, 'invalid')) {
      const message = 'The catalogue does not permit reading the queue of a paused subscription.';
      return { check, state: 'skipped', message };
    }
    // The subscription check reports it.
    if (isAppError(error, 'not_found')) return { check, state: 'skipped', message: error.message };
    return failedFinding(check, error, 'Check the account, and `earshot subscriptions list`.');
  }
}

function lagText(us: number): string {
  const minutes = Math.max(0, Math.round(us / 60_000_000));
  if (minutes < 120) return `${minutes} minutes`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} hours` : `${Math.floor(hours / 24)} days`;
}

const secondsWarn = 30;

/** Beyond this, certificates and one-time codes fail. */
const secondsFail = 300;

const timeoutMs = 10_000;

const advice = 'Turn on time synchronization: `timedatectl set-ntp true`.';

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
    const seconds = Math.abs(ahead);
    const { host } = new URL(url);
    if (seconds <= secondsWarn) {
      return [
        {
          check,
          state: 'pass',
          message: `The clock of this machine agrees with the clock of ${host}.`,
        },
      ];
    }
    const side = ahead > 0 ? 'ahead of' : 'behind';
    const message = `The clock of this machine is ${inUnits(seconds)} ${side} the clock of ${host}.`;
    return [{ check, state: seconds > secondsFail ? 'fail' : 'warn', message, advice }];
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
    const response = await send(url, {
      method: 'HEAD',
      redirect: 'manual',
      // A cache would return the time of an earlier answer.
      headers: { 'Cache-Control': 'no-store' },
      signal: AbortSignal.timeout(timeoutMs),
    });
    const thereMs = Date.parse(response.headers.get('Date') ?? '');
    if (Number.isNaN(thereMs)) return null;
    const agedMs = (Number(response.headers.get('Age')) || 0) * 1000;
    // The middle between request and answer.
    const hereMs = (askedUs + nowUs()) / 2000;
    return (hereMs - thereMs - agedMs) / 1000;
  } catch {
    return null;
  }
}

function inUnits(seconds: number): string {
  return seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} minutes`;
}
