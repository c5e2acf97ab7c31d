/** The context of changes of the account, and their records. */
import { scryptSync, timingSafeEqual } from 'node:crypto';
import type {
  Administration,
  AdministrationChange,
  HistoryAction,
  HistoryActor,
  HistoryEntry,
  Registration,
} from './account.ts';
import type { AccountLimits } from './differences.ts';
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
  /** Endpoint credentials that the catalogue is to use. */
  credentials: EndpointCredentials;
  probe: ProbeEndpoint;
  /** Reads the queue of a pull subscription to its end: each entry is stored, then acknowledged. Rejects as `PullQueue`. */
  drain: (subscription: { name: string; id: string }) => Promise<void>;
  nowUs: () => number;
  random: () => number;
  newSecret: () => string;
  /** Delay before listing the account after a creation without an answer; shorter in tests. */
  listDelayMs?: number;
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
  const [known, given] = [digest, digestCredentials(credentials, salt)].map((text) =>
    Buffer.from(text),
  );
  if (known === undefined || given === undefined || known.length !== given.length) return false;
  return timingSafeEqual(known, given);
}
