/** The context of changes of the account and their records, and changes of one managed subscription. */
import { scryptSync, timingSafeEqual } from 'node:crypto';
import { AppError, isAppError } from '../core/terms/app-error.ts';
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
import type {
  CatalogueSubscription,
  EndpointCredentials,
  SubscriptionClient,
} from './subscription-client.ts';

/** Dependencies and settings for managing the account. */
export interface AccountContext {
  client: SubscriptionClient;
  administration: Administration;
  /** Null without a public host; then only pull subscriptions are possible. */
  publicUrl: string | null;
  limits: AccountLimits;
  /** Endpoint credentials that the catalogue is to use; null if there are none. Push subscriptions need them. */
  credentials: EndpointCredentials | null;
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
}: Pick<AccountContext, 'credentials'>): EndpointCredentials {
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

const digestBytes = 32;

/** A quarter of Node's default: about 10 ms, so that it does not delay a running receiver. */
const cost = { N: 4096 };

/** Returns a digest with its salt, as text. `salt` is random text. */
export function digestCredentials({ username, password }: EndpointCredentials, salt: string) {
  // A user name has no colon, so two pairs never have the same text.
  const digest = scryptSync(`${username}:${password}`, salt, digestBytes, cost);
  return `scrypt:${salt}:${digest.toString('hex')}`;
}

/** True when the digest was made from these credentials. */
export function isDigestOf(digest: string | null, credentials: EndpointCredentials): boolean {
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

type Context = Pick<AccountContext, 'client' | 'administration' | 'publicUrl' | 'nowUs' | 'drain'>;

/** A managed subscription found in the account. */
interface ManagedSubscription {
  name: string;
  current: CatalogueSubscription;
  /** True if the account has no other managed subscription of the name. */
  isOnly: boolean;
}

/**
 * Finds a managed subscription by name or id. Rejects with `not_found`, and with `conflict` for an unmanaged one and for
 * a name that several have: these are found by id only.
 */
export async function findManaged(
  nameOrId: string,
  context: Context,
): Promise<ManagedSubscription> {
  const { administration, publicUrl } = context;
  const { listed } = await listAccount(context);
  const registrations = await administration.registrations();
  const { managed, unmanaged } = sortAccount(listed, { publicUrl, registrations });
  const key = nameOrId.toLowerCase();
  const isSearched = ({ id }: CatalogueSubscription) => id.toLowerCase() === key;
  const found = [...managed].flatMap(([name, all]) =>
    all
      .filter((one) => name === key || isSearched(one))
      .map((current) => ({ name, current, isOnly: all.length === 1 })),
  );
  const [first] = found;
  if (first !== undefined && found.length === 1) return first;
  if (first !== undefined) {
    const ids = found.map(({ current }) => current.id).join(', ');
    throw new AppError('conflict', `Several subscriptions have the name ${nameOrId}: ${ids}.`, {
      advice: 'Use the id, or run `earshot register`, which keeps one of them.',
    });
  }
  if (unmanaged.some(isSearched)) {
    throw new AppError('conflict', `${nameOrId} is unmanaged: earshot never changes it.`, {
      advice: 'Change it on the website of the catalogue.',
    });
  }
  const names = [...managed.keys()].join(', ') || 'none';
  const message = `The account has no subscription ${nameOrId}. Managed: ${names}.`;
  throw new AppError('not_found', message, {
    advice: 'To list all: `earshot subscriptions list`.',
  });
}

/** Removes the registration of a subscription that no longer exists. False without one. */
export async function removeStaleRegistration(name: string, context: Context): Promise<boolean> {
  const { administration, nowUs } = context;
  const known = await administration.registrations();
  if (!known.some((one) => one.name === name)) return false;
  const by = { actor: 'subscriptions', atUs: nowUs() } as const;
  await administration.commit({
    removeRegistration: name,
    history: [entryOf({ name, id: null }, 'removed', 'no longer in the account', by)],
    closeGaps: { subscription: name, toUs: nowUs() },
  });
  return true;
}

/** Deletes a subscription, after the rest of its queue is stored, and the registration with the last one of the name. */
export async function deleteByCommand(
  { name, current, isOnly }: ManagedSubscription,
  context: Context,
): Promise<void> {
  const { client, administration, nowUs } = context;
  await drain(name, current, context);
  await client.delete(current.id);
  const closeGaps = { subscription: name, toUs: nowUs() };
  const by = { actor: 'subscriptions', atUs: nowUs() } as const;
  await administration.commit({
    ...(isOnly ? { removeRegistration: name, closeGaps } : {}),
    history: [entryOf({ name, id: current.id }, 'deleted', 'by command', by)],
  });
}
