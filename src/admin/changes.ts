/** The context of changes of the account and their records, and changes of one managed subscription. */

import { scryptSync, timingSafeEqual } from 'node:crypto';
import { AppError, isAppError } from '../core/terms/app-error.ts';
import type { CredentialPair } from '../core/terms/ports.ts';
import type { RequestedStatus } from '../core/terms/subscription.ts';
import type {
  Administration,
  AdministrationChange,
  HistoryAction,
  HistoryActor,
  HistoryEntry,
  Registration,
} from './account.ts';
import { type AccountLimits, sortAccount } from './differences.ts';
import type { ProbeEndpoint } from './endpoint-probe.ts';
import type { CatalogueSubscription, SubscriptionClient } from './subscription-client.ts';

/** Dependencies and settings for managing the account. */
export interface AccountContext {
  client: SubscriptionClient;
  administration: Administration;
  /** Null without a public host; then only pull subscriptions are possible. */
  publicUrl: string | null;
  limits: AccountLimits;
  /** Endpoint credentials that the catalogue is to use; null if there are none. Push subscriptions need them. */
  credentials: CredentialPair | null;
  /** Credentials that the receiver accepts: several during a rotation. */
  accepted: readonly CredentialPair[];
  probe: ProbeEndpoint;
  /** Reads the queue of a pull subscription to its end: each entry is stored, then acknowledged. Rejects as `PullQueue`. */
  drain: (subscription: { name: string; id: string }) => Promise<void>;
  nowUs: () => number;
  random: () => number;
  newSecret: () => string;
  /** Delay before listing the account again if a list is older than a confirmed request; shorter in tests. */
  listDelayMs?: number;
}

/** Throws `configuration` without endpoint credentials, which the catalogue needs for a push subscription. */
export function requireCredentials({
  credentials,
}: Pick<AccountContext, 'credentials'>): CredentialPair {
  if (credentials !== null) return credentials;
  throw new AppError('configuration', 'There are no endpoint credentials for the catalogue.', {
    advice: 'Run `earshot credentials create`, start the receiver, and run `earshot register`.',
  });
}

/**
 * Lists the account. The list is at least as new as `askedAtUs`, so gaps start there: a later stop is noticed in the
 * next list.
 */
export async function listAccount({ client, nowUs }: Pick<AccountContext, 'client' | 'nowUs'>) {
  const beforeUs = nowUs();
  const listed = await client.list();
  // The clock may have been set back during the request.
  return { listed, askedAtUs: Math.min(beforeUs, nowUs()) };
}

/**
 * Returns what a list shows about a registered subscription: while none of its subscriptions runs, there is a gap since
 * it was last seen running.
 */
export function observed(
  registration: Registration,
  candidates: readonly CatalogueSubscription[],
  askedAtUs: number,
  { nowUs }: Pick<AccountContext, 'nowUs'>,
): AdministrationChange & { save: Registration } {
  const { name, events, filter, runningSeenAtUs, pausedSeenAtUs } = registration;
  if (candidates.some(({ status }) => status === 'running')) {
    const seenAtUs = Math.max(runningSeenAtUs ?? 0, askedAtUs);
    return {
      save: { ...registration, runningSeenAtUs: seenAtUs, pausedSeenAtUs: null },
      closeGaps: { subscription: name, toUs: nowUs() },
    };
  }
  const isGone = candidates.length === 0;
  const save = {
    ...registration,
    pausedSeenAtUs: isGone ? pausedSeenAtUs : (pausedSeenAtUs ?? nowUs()),
  };
  if (runningSeenAtUs === null) return { save };
  const reason = isGone ? 'it was deleted' : 'it was paused';
  return { save, openGap: { subscription: name, events, filter, fromUs: runningSeenAtUs, reason } };
}

/** Fields of a registration after a request to run; `atUs` is the time before the request. */
export const nowRunning = (atUs: number) => ({
  activityAtUs: atUs,
  runningSeenAtUs: atUs,
  pausedSeenAtUs: null,
});

/** Returns an entry of the history. `reason` is added to what was done. */
export function entryOf(
  subject: { name: string; id: string | null },
  action: HistoryAction,
  what: string,
  by: { actor: HistoryActor; reason?: string | undefined; atUs: number },
): HistoryEntry {
  const reason = by.reason === undefined ? what : `${what}: ${by.reason}`;
  const { name: subscription, id: subscriptionId } = subject;
  return { atUs: by.atUs, subscription, subscriptionId, action, actor: by.actor, reason };
}

/** Returns the action and the text of a history entry about a changed status. */
export const statusEntry = (status: RequestedStatus) =>
  ({ action: status === 'running' ? 'resumed' : 'paused', what: `now ${status}` }) as const;

const digestBytes = 32;

/** A quarter of Node's default: about 10 ms, so that it does not delay a running receiver. */
const cost = { N: 4096 };

/** Returns a digest with its salt, as text. `salt` is random text. */
export function digestCredentials({ username, password }: CredentialPair, salt: string) {
  // A user name has no colon, so two pairs never have the same text.
  const digest = scryptSync(`${username}:${password}`, salt, digestBytes, cost);
  return `scrypt:${salt}:${digest.toString('hex')}`;
}

/** True when the digest was made from these credentials. */
export function isDigestOf(digest: string | null, credentials: CredentialPair): boolean {
  const [, salt] = digest?.split(':') ?? [];
  if (digest === null || salt === undefined) return false;
  const [known, given] = [Buffer.from(digest), Buffer.from(digestCredentials(credentials, salt))];
  return known.length === given.length && timingSafeEqual(known, given);
}

/**
 * Stores and acknowledges what is left in the queue of a pull subscription, before it is deleted or paused. The
 * catalogue may refuse to read the queue of a paused one: the gap of its pause is recorded.
 */
export async function drain(
  name: string,
  { id, type, status }: CatalogueSubscription,
  { drain: read }: Pick<AccountContext, 'drain'>,
): Promise<void> {
  if (type !== 'pull') return;
  await read({ name, id }).catch((error: unknown) => {
    const isRefused = status !== 'running' && isAppError(error, 'invalid');
    if (!isRefused && !isAppError(error, 'not_found')) throw error;
  });
}

/**
 * Finds the managed subscriptions of a name, by the name or an id. Rejects with `not_found`, and with `conflict` for an
 * unmanaged one and for the id of one of several.
 */
export async function findManaged(
  nameOrId: string,
  { client, administration, publicUrl }: AccountContext,
): Promise<{ name: string; subscriptions: readonly CatalogueSubscription[] }> {
  const listed = await client.list();
  const registrations = await administration.registrations();
  const { managed, unmanaged } = sortAccount(listed, { publicUrl, registrations });
  const key = nameOrId.toLowerCase();
  const isSearched = ({ id }: CatalogueSubscription) => id.toLowerCase() === key;
  const names = [...new Set([...managed.keys(), ...registrations.map((one) => one.name)])];
  const subscriptionsOf = (name: string) => managed.get(name) ?? [];
  const name = names.find((one) => one === key || subscriptionsOf(one).some(isSearched));
  if (name !== undefined && (name === key || subscriptionsOf(name).length === 1))
    return { name, subscriptions: subscriptionsOf(name) };
  if (name !== undefined) {
    throw new AppError('conflict', `Several subscriptions have the name ${name}.`, {
      advice: 'To delete all of them, use the name. To keep one: `earshot register`.',
    });
  }
  if (unmanaged.some(isSearched)) {
    throw new AppError('conflict', `${nameOrId} is unmanaged: earshot never changes it.`, {
      advice: 'Change it on the website of the catalogue.',
    });
  }
  const message = `The account has no subscription ${nameOrId}. Managed: ${names.join(', ') || 'none'}.`;
  throw new AppError('not_found', message, {
    advice: 'To list all: `earshot subscriptions list`.',
  });
}
