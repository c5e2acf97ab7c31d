/** The doctor's checks of the catalogue account: a token can be had, the catalogue takes it, room is left. */
import type { AccessTokens, Account, DeliveryMark, Registration } from '../domain/account.ts';
import { shortDateUs } from '../domain/dates.ts';
import { type Finding, failedFinding } from '../domain/finding.ts';
import type { DesiredSubscription } from '../domain/subscription.ts';
import { lastDeliveryOf } from './maintain.ts';
import { type AccountLimits, sortAccount } from './plan.ts';
import { isDigestOf } from './plan-context.ts';
import { dayUs, type Note, type Review, review } from './review.ts';
import type {
  CatalogueSubscription,
  EndpointCredentials,
  SubscriptionClient,
} from './subscription-client.ts';

/** Gets a token, from the session that is kept if it lives. */
export async function checkToken(options: {
  account: Account;
  tokens: AccessTokens;
}): Promise<Finding[]> {
  const check = 'token';
  try {
    await options.tokens.get();
  } catch (error) {
    return [failedFinding(check, error, 'Check EARSHOT_ACCOUNT_USERNAME and its password.')];
  }
  if (options.account.kind === 'token') {
    const message =
      'EARSHOT_ACCESS_TOKEN is used as it is; it ends within minutes, and then nothing is maintained.';
    const advice = 'Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD in its place.';
    return [{ check, state: 'warn', message, advice }];
  }
  const message = 'There is a valid token, of a kept session or a login.';
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
    const count = listed.length === 1 ? 'one subscription' : `${listed.length} subscriptions`;
    const message = `It answers, and lists ${count} in the account.`;
    return { findings: [{ check, state: 'pass', message }], listed };
  } catch (error) {
    const advice = 'Check EARSHOT_CATALOGUE_URL and the connection of this machine.';
    return { findings: [failedFinding(check, error, advice)], listed: null };
  }
}

/** Counts everything in the account, what others made and pull subscriptions too. */
export function checkLimits(
  listed: readonly CatalogueSubscription[],
  { runningMax, totalMax }: AccountLimits,
): Finding[] {
  const check = 'limits';
  const alive = listed.filter(({ status }) => status !== 'cancelled');
  const running = alive.filter(({ status }) => status === 'running').length;
  const total = alive.length;
  const message = `${running} of ${runningMax} running, ${total} of ${totalMax} in all.`;
  if (running > runningMax || total > totalMax) {
    const advice =
      'The catalogue allows more than is configured: set EARSHOT_SUBSCRIPTIONS_RUNNING_MAX and EARSHOT_SUBSCRIPTIONS_MAX to what it allows.';
    return [{ check, state: 'warn', message, advice }];
  }
  if (total === totalMax) {
    const advice =
      'Delete what is not needed: without room a changed filter means that events are missed for a moment.';
    return [{ check, state: 'warn', message: `${message} There is no room for another.`, advice }];
  }
  return [{ check, state: 'pass', message }];
}

export interface SubscriptionsInput {
  listed: readonly CatalogueSubscription[];
  registrations: readonly Registration[];
  deliveryMarks: readonly DeliveryMark[];
  /** What `earshot.config.ts` names; null without the file. */
  inFile: readonly DesiredSubscription[] | null;
  publicUrl: string;
  /** What the receiver accepts. */
  pairs: readonly EndpointCredentials[];
  nowUs: number;
}

/** Notes that mean that notifications are being missed now; the others are warnings. */
const missing = /^(gone|drift-.*endpoint.*)$/;

/** For each subscription what is right about it, or what is not. */
export function checkSubscriptions(input: SubscriptionsInput): Finding[] {
  const { listed, registrations, inFile, publicUrl } = input;
  const { managed } = sortAccount(listed, { publicUrl, registrations });
  const known = new Map(registrations.map((one) => [one.name, one]));
  const wanted = (inFile ?? []).map(({ name }) => name);
  const names = [...new Set([...known.keys(), ...wanted, ...managed.keys()])].toSorted();
  if (names.length === 0) {
    const message = 'None is registered yet.';
    const advice = 'When all of the above is well: `earshot register`.';
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
  const there = candidates.length > 0;
  const message = there
    ? 'It is at the catalogue, and this installation has not given it its credentials.'
    : 'It is in earshot.config.ts, and not registered yet.';
  const advice = `\`earshot register\` ${there ? 'adopts' : 'registers'} it.`;
  return { check, state: there ? 'fail' : 'warn', message, advice };
}

function registered(
  registration: Registration,
  candidates: readonly CatalogueSubscription[],
  input: SubscriptionsInput,
): Finding[] {
  const { name } = registration;
  const { inFile, deliveryMarks } = input;
  const lastDeliveryAtUs = lastDeliveryOf(name, deliveryMarks, input.nowUs);
  const reviewed = review({
    ...input,
    registration,
    candidates,
    lastDeliveryAtUs,
    inFile: inFile === null ? undefined : (inFile.find((one) => one.name === name) ?? null),
  });
  const { current } = reviewed;
  const findings = [
    ...actionFindings(name, reviewed),
    ...reviewed.notes.map((note) => noteFinding(name, note)),
    ...credentialFindings(registration, input.pairs),
  ];
  if (current === null || current.status !== registration.status) return findings;
  const facts = factsOf(current, reviewed, lastDeliveryAtUs, input.nowUs);
  return [{ check: checkName(name), state: 'pass', message: facts }, ...findings];
}

/** Such as "Running, as wanted; last notification 2026-05-02; …". */
function factsOf(
  current: CatalogueSubscription,
  { lifetime: { pausesAtUs, cancelsAtUs } }: Review,
  lastDeliveryAtUs: number | null,
  nowUs: number,
): string {
  const lastUs = Math.max(current.lastNotificationAtUs ?? 0, lastDeliveryAtUs ?? 0);
  const last =
    lastUs === 0 ? 'no notification yet' : `last notification ${shortDateUs(lastUs)} UTC`;
  const days = (us: number) => `${Math.max(0, Math.ceil((us - nowUs) / dayUs))} days`;
  const pause = current.status === 'running' ? `pauses it in ${days(pausesAtUs)} and ` : '';
  return `It is ${current.status}, as wanted; ${last}; without another the catalogue ${pause}deletes it in ${days(cancelsAtUs)}.`;
}

const faultOfAction = {
  finish: ['warn', 'A change of it was cut short', '`earshot register` finishes it.'],
  resume: ['fail', 'It is paused, and nothing is delivered', '`earshot maintain` resumes it.'],
  recreate: ['fail', 'It is gone, and nothing is delivered', '`earshot maintain` makes it anew.'],
} as const;

function actionFindings(name: string, { action, reason }: Review): Finding[] {
  if (action === null) return [];
  const [state, what, advice] = faultOfAction[action];
  const message = action === 'finish' ? `${what}.` : `${what}: ${reason}.`;
  return [{ check: checkName(name), state, message, advice }];
}

function noteFinding(name: string, { code, message, advice }: Note): Finding {
  const state = missing.test(code) ? 'fail' : 'warn';
  return { check: checkName(name), state, message, advice: advice ?? adviceFor(code, name) };
}

function adviceFor(code: string, name: string): string {
  if (code === 'pause-ahead') return 'Check that its filter still matches something.';
  if (code === 'paused-by-command') return `\`earshot subscriptions resume ${name}\` resumes it.`;
  return '`earshot register --dry-run` shows what differs.';
}

function credentialFindings(
  { name, credentialsDigest }: Registration,
  pairs: readonly EndpointCredentials[],
): Finding[] {
  // Where neither is known there is nothing to compare.
  if (credentialsDigest === null || pairs.length === 0) return [];
  if (pairs.some((pair) => isDigestOf(credentialsDigest, pair))) return [];
  const message = 'The catalogue was given other endpoint credentials than the receiver accepts.';
  const advice = '`earshot register` gives it those of now.';
  return [{ check: checkName(name), state: 'fail', message, advice }];
}

function checkName(name: string): string {
  return `subscription ${name}`;
}

/** Beyond the first the user is warned; beyond the second certificates and one-time codes fail. */
const secondsWarn = 30;

const secondsFail = 300;

const timeoutMs = 10_000;

const advice = 'Let the clock be set by itself: `timedatectl set-ntp true`.';

/** Compares with the `Date` header of the first of the URLs that answers, whatever it answers. */
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
      return [{ check, state: 'pass', message: `It agrees with that of ${host}.` }];
    }
    const side = ahead > 0 ? 'ahead of' : 'behind';
    const message = `It is ${inUnits(seconds)} ${side} that of ${host}.`;
    return [{ check, state: seconds > secondsFail ? 'fail' : 'warn', message, advice }];
  }
  const message = 'Neither the catalogue nor the identity provider could be asked for the time.';
  return [{ check, state: 'skipped', message }];
}

/** How far our clock is ahead; null when the service does not tell. */
async function secondsAhead(
  url: string,
  { fetch: send, nowUs }: { fetch: typeof fetch; nowUs: () => number },
): Promise<number | null> {
  const askedUs = nowUs();
  try {
    const response = await send(url, {
      method: 'HEAD',
      redirect: 'manual',
      // A cache would hand out the time of an earlier answer.
      headers: { 'Cache-Control': 'no-store' },
      signal: AbortSignal.timeout(timeoutMs),
    });
    const thereMs = Date.parse(response.headers.get('Date') ?? '');
    if (Number.isNaN(thereMs)) return null;
    const agedMs = (Number(response.headers.get('Age')) || 0) * 1000;
    // Midway between question and answer.
    const hereMs = (askedUs + nowUs()) / 2000;
    return (hereMs - thereMs - agedMs) / 1000;
  } catch {
    return null;
  }
}

function inUnits(seconds: number): string {
  return seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} minutes`;
}
