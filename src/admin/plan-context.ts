/** The context of plans and steps, and their records in the store. */

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
  queues: QueueAccess;
  nowUs: () => number;
  random: () => number;
  newSecret: () => string;
  /** Delay before listing the account after a creation without an answer; shorter in tests. */
  listDelayMs?: number;
}

/** Access to the queues of pull subscriptions. Calls reject as `PullQueue` does. */
export interface QueueAccess {
  /** Resolves if the queue can be read. */
  check(id: string): Promise<void>;
  /**
   * Reads the queue to its end: each entry is stored, then acknowledged. Resolves with the time before the last
   * request, until which nothing is missing.
   */
  drain(subscription: { name: string; id: string }): Promise<number>;
}

/** Context of one step. */
export interface StepContext extends Omit<AccountContext, 'limits' | 'probe' | 'newSecret'> {
  credentialsDigest: string;
  actor: HistoryActor;
  /** Reason, in addition to what the step does. */
  reason?: string;
  /** The account before the first step, and the time of that request. */
  listed: readonly CatalogueSubscription[];
  listedAtUs: number;
}

/**
 * Returns the registration of a name with the desired state. `found` is an adopted subscription: it
 * supplies the times when the store has no registration.
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
    // A new desired state overrides an earlier hold, and problems may be reported again.
    ...(actor === 'maintain' ? {} : { heldBy: null, reported: null }),
  };
}

/**
 * Records a change and its gap before the request, so that it can be resumed after an interruption.
 * When the catalogue refuses the request, nothing was created, and the earlier registration is
 * restored: as `unfinished` if the old subscription is already deleted.
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

/** Fields of a registration after a request to run; `atUs` is the time before the request. */
export function nowRunning(atUs: number) {
  return { activityAtUs: atUs, runningSeenAtUs: atUs, pausedSeenAtUs: null };
}

/** Fields of a registration that was listed as running; `askedAtUs` is the time of that request. */
export function seenRunning({ runningSeenAtUs }: Registration, askedAtUs: number) {
  return { runningSeenAtUs: Math.max(runningSeenAtUs ?? 0, askedAtUs), pausedSeenAtUs: null };
}

/** Fields of a registration whose subscription is paused. */
export function seenPaused({ pausedSeenAtUs }: Registration, { nowUs }: StepContext) {
  return { pausedSeenAtUs: pausedSeenAtUs ?? nowUs() };
}

/**
 * Lists the account. The list is at least as new as `askedAtUs`, so gaps start there: a later stop is
 * noticed in the next list.
 */
export async function listAccount({ client, nowUs }: Pick<AccountContext, 'client' | 'nowUs'>) {
  const beforeUs = nowUs();
  const listed = await client.list();
  // The clock may have been set back during the request.
  return { listed, askedAtUs: Math.min(beforeUs, nowUs()) };
}

/** Result of a step. */
export interface Done {
  /** The resulting registration. */
  save: Registration;
  /** Id of the changed subscription; by default that of the registration. */
  id?: string | null;
  /** True if it is running now, which closes gaps. */
  runs: boolean;
  action: HistoryAction;
  what: string;
  /** Time of the history entry; now by default. */
  atUs?: number;
}

/** Records the result of a step. */
export function commitDone(
  { save, id = save.subscriptionId, runs, action, what, atUs }: Done,
  context: StepContext,
): Promise<void> {
  const { name } = save;
  const { administration, nowUs } = context;
  const at = atUs === undefined ? context : { ...context, nowUs: () => atUs };
  return administration.commit({
    save,
    ...(runs ? { closeGaps: { subscription: name, toUs: nowUs() } } : {}),
    history: [historyEntry({ name, id }, action, what, at)],
  });
}

/** Returns an entry of the history. */
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

/** Returns a gap of a subscription with these events and filter. */
export function gapOf(
  { name, events, filter }: { name: string; events: readonly string[]; filter: string },
  fromUs: number,
  reason: string,
): NewGap {
  return { subscription: name, events, filter, fromUs, reason };
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

/** Returns the digest to record for a subscription; null for a pull subscription, which has no credentials. */
export function digestFor(
  { type }: Pick<DesiredSubscription, 'type'>,
  { credentialsDigest }: Pick<StepContext, 'credentialsDigest'>,
): string | null {
  return type === 'pull' ? null : credentialsDigest;
}

/**
 * Stores and acknowledges what is left in the queue of a pull subscription, before it is deleted or paused. The
 * catalogue may refuse to read the queue of a paused one: the gap of its pause is recorded.
 */
export async function drainBeforeEnd(
  name: string,
  { id, type, status }: CatalogueSubscription,
  { queues }: Pick<StepContext, 'queues'>,
): Promise<void> {
  if (type !== 'pull') return;
  try {
    await queues.drain({ name, id });
  } catch (error) {
    const isGone = isAppError(error, 'not_found');
    const isRefused = status !== 'running' && isAppError(error, 'invalid');
    if (!isGone && !isRefused) throw error;
  }
}
