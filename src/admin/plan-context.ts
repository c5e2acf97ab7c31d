/** What every step of a plan works with, and what it leaves in the store. */

import { scryptSync, timingSafeEqual } from 'node:crypto';
import type {
  Administration,
  HistoryAction,
  HistoryActor,
  HistoryEntry,
  NewGap,
  Registration,
} from '../domain/account.ts';
import { isAppError } from '../domain/app-error.ts';
import type { DesiredSubscription } from '../domain/subscription.ts';
import type { ProbeEndpoint } from './endpoint-probe.ts';
import type { AccountLimits } from './plan.ts';
import type {
  CatalogueSubscription,
  EndpointCredentials,
  SubscriptionClient,
} from './subscription-client.ts';

/** What the account is managed with. */
export interface AccountContext {
  client: SubscriptionClient;
  administration: Administration;
  publicUrl: string;
  limits: AccountLimits;
  /** What the catalogue is given. */
  credentials: EndpointCredentials;
  probe: ProbeEndpoint;
  nowUs: () => number;
  random: () => number;
  newSecret: () => string;
  /** Time before the account is listed after a creation without an answer; tests shorten it. */
  listDelayMs?: number;
}

/** What a step of a plan works with. */
export interface StepContext extends Omit<AccountContext, 'limits' | 'probe' | 'newSecret'> {
  credentialsDigest: string;
  /** Who acts, and why when there is more to say than what is done. */
  actor: HistoryActor;
  reason?: string;
  /** The account before the first step, and a time when it was asked for. */
  listed: readonly CatalogueSubscription[];
  listedAtUs: number;
}

/**
 * The registration of a name as it will be: what the store remembers, and what is wanted. `found` is
 * what is adopted where nothing is remembered: its life began before.
 */
export async function registrationFor(
  desired: DesiredSubscription,
  { administration, actor, nowUs }: StepContext,
  found?: CatalogueSubscription,
): Promise<Registration> {
  const registrations = await administration.registrations();
  const before = registrations.find(({ name }) => name === desired.name);
  const atUs = found?.lastNotificationAtUs ?? found?.submittedAtUs ?? nowUs();
  return {
    subscriptionId: null,
    unfinished: false,
    credentialsDigest: null,
    activityAtUs: atUs,
    notifiedAtUs: atUs,
    runningSeenAtUs: null,
    pausedSeenAtUs: null,
    heldBy: null,
    reported: null,
    ...before,
    ...desired,
    // Whoever states what is wanted has the last word over what was held back and told before.
    ...(actor === 'maintain' ? {} : { heldBy: null, reported: null }),
  };
}

/**
 * Remembers what is about to be made, and since when events are missed, so that the next try knows of
 * it should we be cut off. When the catalogue refuses outright, nothing was made, and what was
 * remembered before is put back; `unfinished` if the old one is gone by then.
 */
export async function withIntent<Made>(
  intent: Registration,
  { administration }: Pick<StepContext, 'administration'>,
  make: () => Promise<Made>,
  { oldIsGone = false, openGap }: { oldIsGone?: boolean; openGap?: NewGap | null } = {},
): Promise<Made> {
  const { name } = intent;
  const before = (await administration.registrations()).find((one) => one.name === name);
  await administration.commit({
    save: { ...intent, unfinished: true },
    ...(openGap ? { openGap } : {}),
  });
  try {
    return await make();
  } catch (error) {
    if (isAppError(error) && error.code !== 'unavailable') {
      await administration.commit(
        before === undefined
          ? { removeRegistration: name }
          : { save: { ...before, unfinished: before.unfinished || oldIsGone } },
      );
    }
    throw error;
  }
}

/** What changes in a registration that was asked to run; the time is that before the request. */
export function nowRunning(atUs: number) {
  return { activityAtUs: atUs, runningSeenAtUs: atUs, pausedSeenAtUs: null };
}

/** What changes in a registration that was listed as running; the time is that of the question. */
export function seenRunning({ runningSeenAtUs }: Registration, askedAtUs: number) {
  return { runningSeenAtUs: Math.max(runningSeenAtUs ?? 0, askedAtUs), pausedSeenAtUs: null };
}

/**
 * The account as it was at some time from `askedAtUs` on. What stops after that is noticed next time,
 * so gaps are reckoned from there.
 */
export async function listAccount({ client, nowUs }: Pick<AccountContext, 'client' | 'nowUs'>) {
  const beforeUs = nowUs();
  const listed = await client.list();
  // The answer may have set the clock right.
  return { listed, askedAtUs: Math.min(beforeUs, nowUs()) };
}

/** A line of the history. */
export function historyEntry(
  subject: { name: string; id: string | null },
  action: HistoryAction,
  what: string,
  { actor, reason, nowUs }: Pick<StepContext, 'actor' | 'reason' | 'nowUs'>,
): HistoryEntry {
  return {
    atUs: nowUs(),
    subscription: subject.name,
    subscriptionId: subject.id,
    action,
    actor,
    reason: reason === undefined ? what : `${what}: ${reason}`,
  };
}

/** A gap in what is wanted of a subscription. */
export function gapOf(
  { name, events, filter }: { name: string; events: readonly string[]; filter: string },
  fromUs: number,
  reason: string,
): NewGap {
  return { subscription: name, events, filter, fromUs, reason };
}

const digestBytes = 32;

/** A quarter of Node's default: some 10 ms, as it runs beside a receiver. */
const cost = { N: 4096 };

/** A digest with its salt, as text. `salt` is random text. */
export function digestCredentials({ username, password }: EndpointCredentials, salt: string) {
  // A user name holds no colon, so that no two pairs give the same text.
  const digest = scryptSync(`${username}:${password}`, salt, digestBytes, cost);
  return `scrypt:${salt}:${digest.toString('hex')}`;
}

/** True when a digest is that of these credentials. */
export function isDigestOf(digest: string | null, credentials: EndpointCredentials): boolean {
  const [, salt] = digest?.split(':') ?? [];
  if (digest === null || salt === undefined) return false;
  const [known, given] = [digest, digestCredentials(credentials, salt)].map((text) =>
    Buffer.from(text),
  );
  if (known === undefined || given === undefined || known.length !== given.length) return false;
  return timingSafeEqual(known, given);
}
